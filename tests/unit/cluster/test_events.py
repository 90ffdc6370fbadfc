"""Events: one for each transition, counted when it repeats, never in the way."""

import pytest

from shipfitter.cluster.events import EventPoster
from shipfitter.decide.world import Notice
from unit.cluster.builders import model_deployment
from unit.cluster.fake_objects import RefusedError

FITS = Notice(type="Normal", reason="Fits", message="it fits")


@pytest.fixture
def poster(client):
    return EventPoster(client, instance="operator-1")


def events(api):
    return [body for (plural, _, _), body in api.objects.items() if plural == "events"]


def test_an_event_is_about_the_deployment(api, poster):
    poster.post(model_deployment(), FITS)
    (event,) = events(api)
    assert event["regarding"]["uid"] == "uid-llama"
    assert (event["type"], event["reason"], event["note"]) == ("Normal", "Fits", "it fits")
    assert (event["action"], event["reportingController"]) == (
        "Reconcile",
        "shipfitter.dev/operator",
    )


def test_the_same_words_are_counted_not_repeated(api, poster):
    for _ in range(3):
        poster.post(model_deployment(), FITS)
    (event,) = events(api)
    assert event["series"]["count"] == 3


def test_another_process_counts_on(api, client, poster):
    poster.post(model_deployment(), FITS)
    EventPoster(client, instance="operator-2").post(model_deployment(), FITS)
    (event,) = events(api)
    assert event["series"]["count"] == 2


def test_other_words_are_another_event(api, poster):
    poster.post(model_deployment(), FITS)
    poster.post(model_deployment(), Notice(type="Warning", reason="DoesNotFit", message="no"))
    assert len(events(api)) == 2


def test_a_long_message_is_cut_to_what_the_api_takes(api, poster):
    poster.post(model_deployment(), Notice(type="Normal", reason="Fits", message="x" * 3000))
    assert len(events(api)[0]["note"]) == 1024


@pytest.mark.parametrize("code", [403, 404, 500])
def test_an_event_that_cannot_be_posted_stops_nothing(api, poster, caplog, code):
    api.refuse("POST", "events", RefusedError(code, "Refused", "not now"))
    poster.post(model_deployment(), FITS)
    assert "team/llama: event not posted: not now" in caplog.text
