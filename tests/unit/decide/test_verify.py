"""Verify: once for each plan, told as it is, and a death under load is a refusal."""

from dataclasses import replace

import pytest

from builders_decide import NOW, Settled, condition, manifests, serving
from builders_plan import node
from shipfitter.render.load_size import plan_hash
from shipfitter.render.workload import template_of
from shipfitter.status.load_test import LoadTest

NODES = (node("a", "L40S", 2),)
VERIFY = {"verify": {"enabled": True}}
FIGURES = {
    "requests": 512, "failed": 0, "preemptions": 3,
    "outputTokensPerSecond": 1234.5, "meanFirstTokenMilliseconds": 310.2,
}  # fmt: skip
LOAD = {"atOnce": 256, "inputTokens": 1920, "outputTokens": 256}
CRASH = "RuntimeError: something that nobody explains"


@pytest.fixture(scope="module")
def settled():
    return Settled(*NODES, **VERIFY)


def test_of(settled, **changes):
    """The load test of the plan in force."""
    values = {
        "name": "llama-verify-1",
        "uid": "u1",
        "plan_hash": plan_hash(settled.status["plan"]),
        "load": LOAD,
    }
    return LoadTest(**{**values, **changes})


test_of.__test__ = False


def step(settled, *, status=None, spec=None, **changes):
    at = Settled.__new__(Settled)
    at.__dict__.update(settled.__dict__)
    at.status = status or settled.status
    return at.decide(*NODES, spec=spec, **{"now_seconds": NOW + 60, **changes})


def stored(settled, **record):
    digest = plan_hash(settled.status["plan"])
    return {**settled.status, "verify": {"planHash": digest, **LOAD, **record}}


def crashed(settled, message=CRASH, *, ready=False, **changes):
    template = template_of(settled.workload.body)
    values = {"ready": ready, "exit_code": 1, "restarts": 1, "template_hash": template}
    pod = serving(settled.variant, "a", termination_message=message, **{**values, **changes})
    return (pod,)


def test_off_by_default():
    quiet = Settled(*NODES)
    outcome = quiet.decide(*NODES)
    assert outcome.load_test is None
    assert not condition(outcome, "Verified")
    assert "verify" not in outcome.status


def test_a_plan_that_serves_is_put_under_load_at_typical_length(settled):
    outcome = step(settled)
    job = outcome.load_test
    assert job["metadata"]["annotations"]["shipfitter.dev/plan-hash"] == plan_hash(
        outcome.status["plan"]
    )
    said = condition(outcome, "Verified")
    assert (said["status"], said["reason"]) == ("False", "Verifying")
    seqs = outcome.status["plan"]["variants"][0]["maxNumSeqs"]
    assert f"{seqs} requests at once of 1,920 + 256 tokens" in said["message"]
    assert not outcome.notices


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param((), id="no pod yet"),
        pytest.param("starting", id="a pod that starts"),
        pytest.param("another", id="a pod of another plan besides"),
    ],
)
def test_a_rollout_is_waited_for(settled, pods):
    if pods == "starting":
        pods = (serving(settled.variant, "a", ready=False),)
    elif pods == "another":
        pods = (*settled.pods, serving("llama-old", "a", number=7))
    outcome = step(settled, pods=pods)
    assert outcome.load_test is None
    assert "once all replicas of it serve" in condition(outcome, "Verified")["message"]


def test_while_it_runs_nothing_is_made_anew(settled):
    outcome = step(settled, load_tests=(test_of(settled, trouble="no node takes its pod"),))
    assert outcome.load_test is None
    assert not outcome.deletes
    said = condition(outcome, "Verified")["message"]
    assert said.startswith("Job llama-verify-1 puts the engines under load: 256 requests at once")
    assert said.endswith("no node takes its pod")


def test_its_figures_are_stored_then_its_job_goes_and_it_is_not_repeated(settled):
    done = test_of(settled, running=False, figures=FIGURES)
    first = step(settled, load_tests=(done,))
    assert first.status["verify"] == {
        "planHash": plan_hash(settled.status["plan"]),
        "at": "2027-01-15T08:01:00Z",
        **LOAD,
        **FIGURES,
    }
    assert not first.deletes, "not before the status is stored"
    said = condition(first, "Verified")
    assert (said["status"], said["reason"]) == ("True", "Verified")
    assert said["message"] == (
        "512 answered; 256 requests at once of 1,920 + 256 tokens, 1,234 tokens/s, "
        "first token after 310 ms, 3 preemptions"
    )
    assert [notice.reason for notice in first.notices] == ["Verified"]
    second = step(settled, status=first.status, load_tests=(done,))
    assert [(each.kind, each.name, each.uid) for each in second.deletes] == [
        ("Job", "llama-verify-1", "u1")
    ]
    third = step(settled, status=second.status)
    assert third.load_test is None
    assert third.status == first.status


@pytest.mark.parametrize(
    ("found", "reason", "words"),
    [
        pytest.param(
            {"figures": {**FIGURES, "failed": 12}},
            "LoadFailed",
            "12 of 512 requests failed; 256 requests",
            id="requests that failed",
        ),
        pytest.param({"error": "out of time"}, "VerifyFailed", "out of time", id="no figures"),
        pytest.param(
            {"figures": {**FIGURES, "failed": 12}, "restarts": {"llama-gone-7": 0}},
            "VerifyFailed",
            "an engine was taken away meanwhile",
            id="requests that failed since an engine was scaled away",
        ),
    ],
)
def test_what_went_wrong_is_told_and_not_repeated(settled, found, reason, words):
    test = test_of(settled, running=False, **found)
    outcome = step(settled, load_tests=(test,))
    said = condition(outcome, "Verified")
    assert (said["status"], said["reason"]) == ("False", reason)
    assert words in said["message"]
    again = step(settled, status=outcome.status, load_tests=(test,))
    assert again.load_test is None
    assert bool(again.deletes) is test.succeeded, "a failed Job stays for its log"


def test_another_plan_is_verified_anew(settled):
    old = test_of(settled, plan_hash="of the plan before")
    status = {**settled.status, "verify": {"planHash": "of the plan before", **FIGURES}}
    outcome = step(settled, status=status, load_tests=(old,))
    assert outcome.load_test is not None
    assert [each.name for each in outcome.deletes] == ["llama-verify-1"]


def test_switched_off_it_leaves_nothing(settled):
    status = stored(settled, **FIGURES)
    off = {"verify": {"enabled": False}}
    outcome = step(settled, status=status, spec=off, load_tests=(test_of(settled),))
    assert [each.kind for each in outcome.deletes] == ["Job"]
    assert "verify" not in outcome.status
    assert not condition(outcome, "Verified")
    back = step(settled, load_tests=(test_of(settled, going=True),))
    assert back.load_test is None, "the Job of that name is still on its way out"


@pytest.mark.parametrize(
    "ready", [pytest.param(False, id="it starts again"), pytest.param(True, id="it serves again")]
)
def test_an_engine_that_dies_under_load_gets_a_smaller_plan(settled, ready):
    tests = (test_of(settled),)
    outcome = step(settled, pods=crashed(settled, ready=ready), load_tests=tests)
    before, after = (
        each["plan"]["variants"][0]["gpuMemoryUtilization"]
        for each in (settled.status, outcome.status)
    )
    assert after < before
    assert len(manifests(outcome, "Deployment")) == 1
    assert outcome.status["recovery"]["attempts"] == 1
    assert CRASH in outcome.status["recovery"]["lastError"]
    assert [each.name for each in outcome.deletes] == ["llama-verify-1"]
    assert condition(outcome, "Verified")["reason"] == "Verifying"


def test_a_death_before_the_load_is_not_of_the_load(settled):
    pods = crashed(settled, ready=True)
    test = test_of(settled, restarts={pods[0].name: 1})
    outcome = step(settled, pods=pods, load_tests=(test,))
    assert outcome.status["plan"] == settled.status["plan"]
    assert condition(outcome, "Verified")["reason"] == "Verifying"


def test_a_death_for_want_of_the_nodes_own_memory_is_no_reason_for_a_smaller_plan(settled):
    pods = crashed(settled, "", exit_code=137, ended_reason="OOMKilled")
    outcome = step(settled, pods=pods, load_tests=(test_of(settled),))
    assert outcome.status["plan"] == settled.status["plan"]


def test_while_a_smaller_plan_waits_its_turn_the_death_is_remembered(settled):
    waits = {
        "attempts": 1, "lastError": "x", "lastStep": "y", "bounds": [],
        "inputsHash": settled.status["plan"]["inputsHash"],
        "nextAttemptAt": "2027-01-15T08:01:30Z",
    }  # fmt: skip
    status = {**settled.status, "recovery": waits}
    pods, tests = crashed(settled), (test_of(settled),)
    first = step(settled, status=status, pods=pods, load_tests=tests)
    assert first.status["plan"] == settled.status["plan"]
    assert condition(first, "Verified")["reason"] == "LoadFailed"
    healthy = tuple(replace(pod, ready=True) for pod in pods)
    later = step(settled, status=first.status, pods=healthy, now_seconds=NOW + 100)
    assert later.status["recovery"]["attempts"] == 2
    assert CRASH in later.status["recovery"]["lastError"]


def test_an_engine_of_long_ago_has_no_client_that_runs_without_a_gpu():
    old = Settled(*NODES, engine={"image": "vllm/vllm-openai:v0.11.0"}, **VERIFY)
    outcome = old.decide(*NODES)
    assert condition(outcome, "Verified")["reason"] == "VerifyUnsupported"
    assert outcome.load_test is None
