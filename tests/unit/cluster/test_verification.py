"""Load tests: one Job for each plan, understood by its last words, refused without harm."""

import json

import pytest

from shipfitter.cluster.inspection_state import own_job
from shipfitter.cluster.kept_facts import key_of
from shipfitter.cluster.verification import Verifications, load_test
from unit.cluster.builders import model_deployment
from unit.cluster.fake_objects import RefusedError
from unit.cluster.test_model_facts import Clock

WISHED = {"verify": {"enabled": True}}
FIGURES = {"requests": 16, "failed": 0, "preemptions": 0, "outputTokensPerSecond": 499.46}
LABELS = {
    "shipfitter.dev/modeldeployment": "llama",
    "app.kubernetes.io/component": "verification",
}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tests(api, client, clock):
    def live():
        return [own_job(each) for (plural, *_), each in api.objects.items() if plural == "jobs"]

    return Verifications(client=client, jobs=live, clock=clock)


def job(name="llama-verify-1", owner="uid-llama", digest="d1"):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": LABELS,
            "annotations": {
                "shipfitter.dev/plan-hash": digest,
                "shipfitter.dev/load": '{"atOnce": 8}',
                "shipfitter.dev/restarts": '{"pod-1": 2}',
            },
            "ownerReferences": [{"kind": "ModelDeployment", "name": "llama", "uid": owner}],
        },
        "spec": {"activeDeadlineSeconds": 2700, "template": {}},
    }


def pod_of(made, **state):
    status = {"containerStatuses": [{"name": "load", "image": "vllm", "state": state}]}
    labels = {"batch.kubernetes.io/controller-uid": made["metadata"].get("uid", "")}
    metadata = {"name": "llama-verify-1-x", "namespace": "team", "labels": labels}
    return {"metadata": metadata, "status": status}


def ended(code=0, message=""):
    return {"exitCode": code, "message": message, "reason": "Completed" if not code else "Error"}


def look(tests, body=None):
    body = body or model_deployment(**WISHED)
    return tests.look(key_of(body), body)


def test_nobody_is_asked_where_nobody_wishes_it(api, tests):
    assert look(tests, model_deployment()) == ()
    assert not api.sent("GET", "jobs")


def test_a_job_is_made_found_and_understood(api, tests):
    body = model_deployment(**WISHED)
    assert tests.start(key_of(body), job()) is None
    (running,) = look(tests)
    assert (running.name, running.plan_hash, running.running) == ("llama-verify-1", "d1", True)
    assert (running.load, running.restarts) == ({"atOnce": 8}, {"pod-1": 2})
    (made,) = [each for (plural, *_), each in api.objects.items() if plural == "jobs"]
    api.put("pods", pod_of(made, terminated=ended(0, json.dumps(FIGURES))))
    (done,) = look(tests)
    assert (done.running, done.figures, done.succeeded) == (False, FIGURES, True)


def test_a_job_that_is_no_longer_wished_for_is_still_seen(tests):
    body = model_deployment(**WISHED)
    tests.start(key_of(body), job())
    assert len(look(tests, model_deployment())) == 1


def test_a_refused_job_is_told_and_tried_again_with_growing_waits(api, tests, clock):
    body = model_deployment(**WISHED)
    waits = []
    for _ in range(3):
        api.refuse("PATCH", "jobs", RefusedError(403, "Forbidden", "quota says no"))
        waits.append(tests.start(key_of(body), job()))
        (refused,) = look(tests)
        assert (refused.plan_hash, refused.uid) == ("d1", "")
        assert "quota says no" in refused.trouble
        clock.now += waits[-1] + 0.1
        assert look(tests) == (), "it is time to try again"
    assert waits == sorted(waits)
    assert tests.start(key_of(body), job()) is None
    assert [each.trouble for each in look(tests)] == [""]


@pytest.mark.parametrize(
    ("state", "want"),
    [
        pytest.param(ended(1, '{"error": "out of time"}'), "out of time", id="it says why"),
        pytest.param(ended(137), "exit code 137", id="it was killed"),
        pytest.param(ended(1, "line\nImportError: vllm"), "ImportError: vllm", id="a traceback"),
        pytest.param(ended(0, "[]"), "without figures", id="words that are none"),
        pytest.param(ended(0, '{"requests": -1}'), "without figures", id="figures that are none"),
        pytest.param(ended(0, "{}"), "without figures", id="nothing"),
    ],
)
def test_a_test_without_figures_says_why(state, want):
    found = load_test(job(), [pod_of(job(), terminated=state)])
    assert want in found.error
    assert not found.succeeded
    assert not found.running


def test_what_is_not_its_to_say_is_not_taken_from_it():
    words = json.dumps({**FIGURES, "planHash": "x", "engineError": "x", "atOnce": 9, "at": "x"})
    assert load_test(job(), [pod_of(job(), terminated=ended(0, words))]).figures == FIGURES


def test_a_job_of_an_earlier_deployment_of_the_name_tests_no_plan():
    assert load_test(job(), [], ours=False).plan_hash == ""


@pytest.mark.parametrize(
    ("condition", "pods", "want"),
    [
        pytest.param(
            {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"},
            [pod_of(job(), waiting={"reason": "ErrImagePull"})],
            "did not end within 2700 s: its image vllm cannot be pulled",
            id="out of time",
        ),
        pytest.param(
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"},
            [],
            "lost its pod",
            id="its pod is lost",
        ),
    ],
)
def test_a_job_without_last_words(condition, pods, want):
    found = load_test({**job(), "status": {"conditions": [condition]}}, pods)
    assert want in found.error
    assert not found.running


def test_what_keeps_it_waiting_is_told():
    found = load_test(job(), [pod_of(job(), waiting={"reason": "ImagePullBackOff"})])
    assert found.running
    assert "cannot be pulled" in found.trouble


def test_annotations_that_somebody_spoilt_are_no_reason_to_stop():
    spoilt = job()
    spoilt["metadata"]["annotations"]["shipfitter.dev/restarts"] = "[1]"
    spoilt["metadata"]["annotations"]["shipfitter.dev/load"] = "nothing"
    assert load_test(spoilt, []).restarts == {}
