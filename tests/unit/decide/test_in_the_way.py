"""What keeps pods from being made or placed, in words that a person can use."""

import pytest

from builders_decide import Settled, condition, serving
from builders_plan import node
from shipfitter.decide import LiveWorkload
from shipfitter.status.apply_refused import with_refusal
from shipfitter.status.refused_pods import refused_pods
from shipfitter.status.scheduling import is_device, lacking

EXCEEDED = (
    'pods "llama-1-abc" is forbidden: exceeded quota: team, requested: requests.cpu=4, used: '
    "requests.cpu=6, limited: requests.cpu=8"
)
MUST = (
    'pods "llama-1-abc" is forbidden: failed quota: team: must specify limits.cpu for: engine; '
    "limits.memory for: engine"
)
SECURITY = 'pods "llama-1-abc" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot'


def failing(message):
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    return {"status": {"conditions": [{**condition, "message": message}]}}


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        pytest.param(
            EXCEEDED, "QuotaExceeded", "exceeded quota: team, requested: requests.cpu=4", id="full"
        ),
        pytest.param(
            MUST,
            "LimitsRequired",
            "ResourceQuota team takes no pod without limits.cpu, limits.memory: set them in "
            "spec.resources, or let a LimitRange give a default",
            id="limits are asked for",
        ),
        pytest.param(
            SECURITY, "PodsRefused", 'violates PodSecurity "restricted:latest"', id="a policy"
        ),
    ],
)
def test_pods_that_are_not_made(message, reason, words):
    told = refused_pods([{"status": {}}, failing(message)])
    assert told is not None
    assert told[0] == reason
    assert words in told[1]
    assert "abc" not in told[1], "the name is another one each time"


def test_they_are_told_where_replicas_are_missing_and_in_a_rollout_that_they_stop():
    settled = Settled(node("a", "L40S", 8), replicas=2)
    live = LiveWorkload(name=settled.variant, body={**settled.workload.body, **failing(SECURITY)})
    missing = settled.decide(node("a", "L40S", 8), workloads=(live,), pods=settled.pods[:1])
    assert condition(missing, "Available")["reason"] == "PodsRefused"
    assert condition(missing, "Ready")["message"].startswith(
        "1 of 2 replicas serve; the API server"
    )


SCHEDULER = {  # what the scheduler says; what is missing; whether that is a GPU
    "GPUs": (
        "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node "
        "affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful.",
        ("Insufficient nvidia.com/gpu",),
        True,
    ),
    "room for the weights": (
        "0/2 nodes are available: 1 Insufficient ephemeral-storage, 1 node(s) didn't match Pod's "
        "node affinity/selector. preemption: not eligible due to preemptionPolicy=Never.",
        ("Insufficient ephemeral-storage",),
        False,
    ),
    "CPU and memory": (
        "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory. no new claims to "
        "deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found.",
        ("Insufficient cpu", "Insufficient memory"),
        False,
    ),
    "a toleration": (
        "0/1 nodes are available: 1 node(s) had untolerated taint {team: other}. preemption: no",
        ("had untolerated taint {team: other}",),
        False,
    ),
}


@pytest.mark.parametrize("case", SCHEDULER)
def test_what_nodes_lack(case):
    message, want, device = SCHEDULER[case]
    found = lacking(message)
    assert found == want
    assert any(map(is_device, found)) is device


def test_a_pod_that_lacks_something_else_does_not_wait_for_a_gpu():
    settled = Settled(node("a", "L40S"))
    pod = serving(
        settled.variant,
        "",
        ready=False,
        phase="Pending",
        gpus=0,
        waiting_for_gpu_since=1.0,
        unschedulable=("Insufficient ephemeral-storage",),
    )
    told = condition(settled.decide(node("a", "L40S"), pods=(pod,)), "Available")
    assert told["reason"] == "Unschedulable"
    assert "Insufficient ephemeral-storage (spec.resources.requests says less" in told["message"]


def told_of(status, words, prior=None):
    told = with_refusal(status, prior or {}, words=words, now_seconds=2000.0)
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in told["conditions"]}


def test_a_refusal_stands_in_the_status_and_is_no_news_the_second_time():
    settled = Settled(node("a", "L40S"))
    status = settled.decide(node("a", "L40S"), pods=()).status
    told = told_of(status, "denied by policy")
    assert told["Ready"] == told["Available"] == ("False", "ApplyRefused", "denied by policy")
    assert told["Stalled"][:2] == ("True", "ApplyRefused")
    assert told["Planned"][0] == "True"
    once = with_refusal(status, {}, words="denied", now_seconds=2000.0)
    assert with_refusal(status, once, words="denied", now_seconds=3000.0) == once


def test_a_refusal_while_earlier_pods_serve_is_told_beside_them():
    settled = Settled(node("a", "L40S"))
    told = told_of(settled.decide(node("a", "L40S")).status, "denied by policy")
    assert told["Ready"][0] == "True"
    assert told["Reconciling"] == ("True", "ApplyRefused", "denied by policy")
