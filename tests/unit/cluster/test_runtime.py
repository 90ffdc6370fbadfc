"""The wired runtime: who is woken by what, and which GPUs are counted."""

import threading
import time

from shipfitter.cluster.reconcile import Pass
from shipfitter.cluster.runtime import FAN_OUT, Runtime
from shipfitter.decide.world import Outcome, Settings
from unit.cluster.builders import (
    LABELS,
    gpu_node,
    service,
)
from unit.cluster.fake_api import eventually
from unit.cluster.runtime_stage import KEY, at_rest, body_of, create, reason


def test_a_deployment_becomes_a_workload_and_a_status(api, start, decider):
    api.put("nodes", gpu_node())
    create(api, start())
    eventually(lambda: reason(api) == "Fits")
    assert api.get("deployments", "llama-v", "team")["spec"]["replicas"] == 1
    assert decider.seen()[0].nodes[0].allocatable_gpus == 2


def test_events_that_differ_only_in_status_wake_nobody(api, start, decider):
    runtime = start()
    create(api, runtime)
    eventually(lambda: reason(api))
    at_rest(runtime, decider)
    seen = len(decider.worlds)
    stored = api.get("modeldeployments", "llama", "team")
    runtime.noticed({**stored, "status": {"other": 1}}, deleted=False)
    runtime.noticed(
        {**stored, "metadata": {**stored["metadata"], "managedFields": [1]}}, deleted=False
    )
    at_rest(runtime, decider)
    assert len(decider.worlds) == seen
    runtime.noticed({**stored, "metadata": {**stored["metadata"], "generation": 2}}, deleted=False)
    eventually(lambda: len(decider.worlds) > seen)


def test_two_deployments_never_count_the_same_gpu(api, start, decider):
    api.put("nodes", gpu_node(gpus=2))
    runtime = start()
    names = [f"m{number}" for number in range(6)]
    for name in names:
        create(api, runtime, name)
    eventually(lambda: all(reason(api, name) for name in names))
    assert sorted(reason(api, name) for name in names) == ["DoesNotFit"] * 4 + ["Fits"] * 2
    assert decider.most_at_once == 1


def test_own_promises_do_not_count_against_oneself(api, start, decider):
    api.put("nodes", gpu_node(gpus=1))
    runtime = start()
    create(api, runtime)
    eventually(lambda: reason(api) == "Fits")
    runtime.queue.add(KEY)
    eventually(lambda: len(decider.seen()) > 1)
    assert decider.seen()[-1].nodes[0].used_gpus == 0


def test_a_new_node_wakes_everybody_once_it_rests(api, start, decider):
    runtime = start(settle_seconds=0.5)
    create(api, runtime)
    eventually(lambda: reason(api) == "DoesNotFit")
    at_rest(runtime, decider)
    began = time.monotonic()
    for gpus in (1, 2, 4):
        api.put("nodes", gpu_node(gpus=gpus))
    eventually(lambda: reason(api) == "Fits")
    assert time.monotonic() - began >= 0.5
    assert decider.seen()[-1].nodes[0].allocatable_gpus == 4


def test_a_heartbeat_wakes_nobody(api, start, decider):
    node = api.put("nodes", gpu_node())
    runtime = start(settle_seconds=0.0)
    create(api, runtime)
    eventually(lambda: reason(api) == "Fits")
    at_rest(runtime, decider)
    seen = len(decider.worlds)
    beat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2027"}]
    api.put("nodes", {**node, "status": {**node["status"], "conditions": beat}})
    eventually(lambda: runtime.caches.nodes.last_activity_seconds)
    at_rest(runtime, decider)
    assert len(decider.worlds) == seen


def test_nodes_that_never_rest_do_not_stop_plans_for_ever(api, client, decider):
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock = Clock()
    settings = Settings(settle_seconds=10.0)
    runtime = Runtime(
        client, decide=decider, fetch=lambda uri, **_: None, settings=settings, clock=clock
    )
    for watch in runtime.caches:
        watch.synced.set()
    runtime.noticed(body_of(), deleted=False)
    assert runtime.queue.take() == KEY
    runtime.queue.done(KEY)
    while runtime.queue.take() != KEY:
        runtime._capacity_changed("n1")
        clock.now += 5.0
        if runtime.queue.take() == FAN_OUT:
            runtime._fan_out()
        assert clock.now < 80.0, "six times the settling delay is enough"
    assert clock.now >= 60.0


def test_drift_of_an_own_object_is_seen(api, start, decider):
    api.put("nodes", gpu_node())
    decider.outcome = lambda body, world: Outcome(applies=(service(),))
    create(api, start())
    eventually(lambda: api.get("services", "llama", "team"))
    api.remove("services", "llama", "team")
    eventually(lambda: api.get("services", "llama", "team"))


def test_a_pod_is_seen_with_its_last_words(api, start, decider):
    runtime = start()
    create(api, runtime)
    ended = {"terminated": {"exitCode": 1, "message": "CUDA out of memory"}}
    api.put(
        "pods",
        {
            "metadata": {"name": "p", "namespace": "team", "labels": LABELS},
            "spec": {"nodeName": "n1", "containers": [{"name": "engine"}]},
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "engine", "state": ended, "restartCount": 1}],
            },
        },
    )
    eventually(lambda: decider.seen() and decider.seen()[-1].pods)
    (pod,) = decider.seen()[-1].pods
    assert (pod.variant, pod.termination_message) == ("llama-v", "CUDA out of memory")


def test_gpus_that_our_pod_leaves_wake_those_who_wait(api, start, decider):
    api.put("nodes", gpu_node(gpus=1))
    holding = {
        "metadata": {
            "name": "p",
            "namespace": "team",
            "labels": {**LABELS, "shipfitter.dev/modeldeployment": "other"},
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "engine", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running"},
    }
    api.put("pods", holding)
    create(api, start())
    eventually(lambda: reason(api) == "DoesNotFit")
    api.remove("pods", "p", "team")
    eventually(lambda: reason(api) == "Fits")


def test_a_free_gpu_count_knows_other_peoples_pods(api, start, decider):
    api.put("nodes", gpu_node(gpus=2))
    api.put(
        "pods",
        {
            "metadata": {"name": "train", "namespace": "research"},
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": "x", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            },
            "status": {"phase": "Running"},
        },
    )
    create(api, start())
    eventually(lambda: reason(api) == "DoesNotFit")
    (node,) = decider.seen()[-1].nodes
    assert node.used_gpus == 2


def test_looking_again_gets_rarer_while_nothing_changes(start):
    runtime = start()
    quiet = Pass(again_after_seconds=5.0)
    waits = [runtime._patience(KEY, quiet) for _ in range(6)]
    assert waits == [7.5, 11.25, 16.875, 25.3125, 30.0, 30.0]
    assert runtime._patience(KEY, Pass(again_after_seconds=5.0, changed=True)) == 5.0
    assert runtime._patience(KEY, Pass(again_after_seconds=300.0)) == 300.0
    assert runtime._patience(KEY, Pass()) is None


def test_while_one_is_being_written_another_counts_its_gpus(api, client, decider):
    api.put("nodes", gpu_node(gpus=1))
    writing, go_on = threading.Event(), threading.Event()

    class SlowClient:
        def __getattr__(self, name):
            return getattr(client, name)

        def apply(self, manifest, *, manager):
            writing.set()
            assert go_on.wait(10)
            return client.apply(manifest, manager=manager)

    slow = Runtime(SlowClient(), decide=decider, fetch=lambda uri, **_: None, settings=Settings())
    slow.start()
    try:
        create(api, slow)
        assert writing.wait(10)
        create(api, slow, "qwen")
        eventually(lambda: reason(api, "qwen") == "DoesNotFit")
        go_on.set()
        eventually(lambda: reason(api) == "Fits")
    finally:
        go_on.set()
        slow.stop()
        api.drop_watches()
