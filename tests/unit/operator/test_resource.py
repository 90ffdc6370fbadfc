"""kopf as we use it: one raw handler, and settings for a long life."""

import asyncio

import pytest

from shipfitter.cluster.connection import Credentials
from shipfitter.operator import resource

CREDENTIALS = Credentials(
    server="https://api",
    ca_path="/ca",
    insecure=False,
    scheme="Bearer",
    token="secret",
    certificate_path=None,
    private_key_path=None,
)


def test_no_handler_that_would_write_on_users_objects():
    handlers = resource.registry(lambda body, deleted: None, lambda: CREDENTIALS)
    assert len(list(handlers._watching.get_all_handlers())) == 1
    for quiet in (handlers._changing, handlers._spawning, handlers._indexing, handlers._webhooks):
        assert list(quiet.get_all_handlers()) == []


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        pytest.param(None, False, id="listed"),
        pytest.param("ADDED", False, id="added"),
        pytest.param("MODIFIED", False, id="modified"),
        pytest.param("DELETED", True, id="deleted"),
    ],
)
def test_an_event_is_passed_on_as_it_is(kind, want):
    noticed = []
    handlers = resource.registry(
        lambda body, deleted: noticed.append((body, deleted)), lambda: CREDENTIALS
    )
    (handler,) = handlers._watching.get_all_handlers()
    asyncio.run(handler.fn(event={"type": kind, "object": {"metadata": {"name": "llama"}}}))
    assert noticed == [({"metadata": {"name": "llama"}}, want)]


def test_kopf_speaks_to_the_same_server_as_the_same_identity():
    handlers = resource.registry(lambda body, deleted: None, lambda: CREDENTIALS)
    (handler,) = handlers._activities.get_all_handlers()
    found = handler.fn()
    assert (found.server, found.scheme, found.token) == ("https://api", "Bearer", "secret")


def test_settings_are_bounded_in_time_and_need_no_cluster_wide_rights():
    chosen = resource.settings(streaming_lists=True)
    assert not chosen.posting.enabled
    assert chosen.scanning.disabled
    assert chosen.watching.inactivity_timeout == 90.0
    assert chosen.networking.request_timeout == 30.0
    assert chosen.networking.connect_timeout == 5.0
    assert chosen.admission.server is None
    assert chosen.persistence.finalizer == "shipfitter.dev/finalizer"
    # The API server parses whole seconds only; kopf sends the number as it is written.
    assert str(chosen.watching.server_timeout) == "300"
