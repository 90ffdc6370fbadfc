"""LeaderWorkerSets: found when they come, counted by their pods, heard after their pods went."""

import threading

import pytest

from shipfitter.cluster import ledger, trim
from shipfitter.cluster.kinds import LEADER_WORKER_SET
from shipfitter.cluster.last_words import KEPT_SECONDS, LastWords
from shipfitter.cluster.queue import Key
from shipfitter.cluster.store import Change
from shipfitter.cluster.watch import Watch
from shipfitter.decide.world import Apply
from unit.cluster.fake_api import FakeApi, client_of
from unit.cluster.fake_objects import RefusedError

LLAMA = Key("team", "llama")
LABELS = {"shipfitter.dev/modeldeployment": "llama", "shipfitter.dev/variant": "llama-v"}
POD = {
    "spec": {
        "containers": [{"name": "engine", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "nodeSelector": {"zone": "a"},
    }
}
GROUP = {
    "apiVersion": LEADER_WORKER_SET.api_version,
    "kind": LEADER_WORKER_SET.kind,
    "metadata": {"name": "llama-v", "namespace": "team", "uid": "u", "labels": LABELS},
    "spec": {
        "replicas": 3,
        "leaderWorkerTemplate": {"size": 2, "leaderTemplate": POD, "workerTemplate": POD},
    },
    "status": {"replicas": 3, "readyReplicas": 1},
}


def own_pod(name="llama-v-0", **changes):
    values = {
        "namespace": "team",
        "name": name,
        "owner": "llama",
        "variant": "llama-v",
        "phase": "Running",
        "ready": False,
        "created": "2026-01-01T00:00:00Z",
    }
    return trim.OwnPod(**{**values, **changes})


def test_a_group_asks_for_all_its_pods():
    trimmed = trim.own_workload(GROUP)
    assert (trimmed.replicas, trimmed.pods_per_replica, trimmed.pods) == (3, 2, 6)
    assert trimmed.gpus == {"nvidia.com/gpu": 8}
    assert trimmed.node_selector == {"zone": "a"}


def test_pods_of_groups_that_are_not_there_yet_are_claimed():
    pods = [own_pod(node="n1", gpus={"nvidia.com/gpu": 8}), own_pod("llama-v-0-1")]
    (claim,) = ledger.claims([trim.own_workload(GROUP)], pods)
    assert claim.pods == 5, "one of six has its node"


def test_a_promise_of_groups_counts():
    applies = (
        Apply(manifest={k: v for k, v in GROUP.items() if k != "status"}),
        Apply(
            manifest={
                **{k: GROUP[k] for k in ("apiVersion", "kind", "metadata")},
                "spec": {"replicas": 5},
            },
            manager="shipfitter-scale",
        ),
    )
    (made,) = ledger.promised(LLAMA, applies, {})
    assert made.pods == 10


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({**LABELS, "shipfitter.dev/serves": "true"}, True, id="a leader"),
        pytest.param(LABELS, False, id="a worker"),
    ],
)
def test_who_serves(labels, want):
    pod = {"metadata": {"name": "p", "namespace": "team", "labels": labels}, "spec": POD["spec"]}
    assert trim.own_pod(pod).serves is want


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def words():
    clock = Clock()
    return LastWords(clock=clock), clock


ENDED = {"exit_code": 1, "termination_message": "CUDA out of memory"}


def test_a_pod_that_ended_and_went_is_remembered_for_a_while(words):
    kept, clock = words
    running, ended = own_pod(), own_pod(**ENDED)
    kept.take(Change("team/llama-v-0", running, ended))
    assert kept.of(LLAMA) == [], "it is still there, and speaks for itself"
    kept.take(Change("team/llama-v-0", own_pod(**ENDED, terminating=True), None))
    assert [pod.termination_message for pod in kept.of(LLAMA)] == ["CUDA out of memory"]
    assert kept.of(Key("team", "other")) == []
    clock.now = KEPT_SECONDS + 1
    assert kept.of(LLAMA) == []


def test_a_pod_made_anew_under_its_name_hides_nothing(words):
    kept, _ = words
    kept.take(Change("team/llama-v-0", None, own_pod(**ENDED)))
    anew = own_pod(created="2026-01-01T00:01:00Z")
    kept.take(Change("team/llama-v-0", own_pod(**ENDED), anew))
    assert [pod.exit_code for pod in kept.of(LLAMA)] == [1]


def test_a_pod_that_was_asked_to_stop_has_no_last_words(words):
    kept, _ = words
    stopping = own_pod(terminating=True)
    kept.take(Change("team/llama-v-0", own_pod(), stopping))
    kept.take(Change("team/llama-v-0", stopping, own_pod(terminating=True, exit_code=137)))
    kept.take(Change("team/llama-v-0", own_pod(terminating=True, exit_code=137), None))
    assert kept.of(LLAMA) == []


def test_a_kind_that_comes_later_is_noticed_and_one_that_goes_too():
    api = FakeApi()
    with api.running():
        missing = RefusedError(404, "the server could not find the requested resource")
        api.refuse("GET", "leaderworkersets", missing, missing)
        client = client_of(api)
        news = threading.Event()
        watch = Watch(
            client,
            LEADER_WORKER_SET,
            trim.own_workload,
            optional=True,
            absent_seconds=0.05,
            on_presence=news.set,
        )
        watch.start()
        try:
            assert watch.synced.wait(5)
            assert news.wait(5)
            assert watch.present
        finally:
            watch.stop()
            client.close()
