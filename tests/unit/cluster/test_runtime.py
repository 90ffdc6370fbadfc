"""The wired runtime with a small `decide`: who is woken, what is counted, what is survived."""

import threading
import time

import pytest

from shipfitter.cluster.queue import Key
from shipfitter.cluster.reconcile import Pass
from shipfitter.cluster.runtime import FAN_OUT, Runtime
from shipfitter.decide.world import Delete, Notice, Outcome, Settings
from unit.cluster.builders import (
    LABELS,
    conditions,
    deployment,
    gpu_node,
    model_deployment,
    scale,
    service,
)
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError

KEY = Key("team", "llama")
FACTS = {"uri": "pvc://claim/model"}  # no hub is asked: what is not there is told, not fetched


def body_of(name="llama", **changes):
    return {**model_deployment(name, model=FACTS, replicas=1), **changes}


class Decider:
    """Gives each deployment one GPU where one is free; keeps every world it saw."""

    def __init__(self):
        self.worlds = []
        self.lock = threading.Lock()
        self.at_once = 0
        self.most_at_once = 0
        self.fails = 0

    def __call__(self, body, world):
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.worlds.append((body["metadata"]["name"], world))
            fails, self.fails = self.fails, max(0, self.fails - 1)
        try:
            if fails:
                raise RuntimeError("on purpose")
            return self.outcome(body, world)
        finally:
            with self.lock:
                self.at_once -= 1

    def outcome(self, body, world):
        name = body["metadata"]["name"]
        free = sum(node.allocatable_gpus - node.used_gpus for node in world.nodes)
        placed = any(workload.name == f"{name}-v" for workload in world.workloads)
        if not placed and not free:
            return Outcome(
                status={"conditions": conditions("DoesNotFit", "False")}, requeue_after_seconds=300
            )
        applies = (scale(body["spec"]["replicas"], name), deployment(owner=name))
        return Outcome(applies=applies, status={"conditions": conditions("Fits")})

    def seen(self, name="llama"):
        with self.lock:
            return [world for each, world in self.worlds if each == name]


@pytest.fixture
def decider():
    return Decider()


@pytest.fixture
def start(api, client, decider):
    started = []

    def run(**settings):
        made = Runtime(
            client,
            decide=decider,
            fetch=lambda uri, **_: None,
            settings=Settings(settle_seconds=settings.pop("settle_seconds", 0.3)),
            **settings,
        )
        started.append(made)
        made.start()
        eventually(lambda: made.caches.synced)
        return made

    yield run
    for runtime in started:
        runtime.stop()
    api.drop_watches()


def create(api, runtime, name="llama", **changes):
    body = api.put("modeldeployments", body_of(name, **changes))
    runtime.noticed(body, deleted=False)
    return body


def reason(api, name="llama"):
    status = api.get("modeldeployments", name, "team").get("status") or {}
    return status.get("conditions", [{"reason": ""}])[0]["reason"]


def at_rest(runtime, decider):
    """Nothing is due and nothing in work, and stays so for a moment."""
    calm = time.monotonic()
    seen = len(decider.worlds)
    while time.monotonic() - calm < 0.5:
        if runtime.queue.busy or runtime.queue.waiting or len(decider.worlds) != seen:
            calm, seen = time.monotonic(), len(decider.worlds)
        time.sleep(0.02)


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


@pytest.mark.parametrize(
    "code", [pytest.param(409, id="conflict"), pytest.param(500, id="a server error")]
)
def test_weather_is_survived(api, start, code):
    api.put("nodes", gpu_node())
    api.refuse("PATCH", "/deployments/", *[RefusedError(code, "Weather")] * 2)
    create(api, start())
    eventually(lambda: reason(api) == "Fits" and api.get("deployments", "llama-v", "team"))


def test_a_refusal_is_told_and_the_status_written_all_the_same(api, start, caplog):
    api.put("nodes", gpu_node())
    api.refuse("PATCH", "/deployments/", *[RefusedError(422, "Invalid", "no such field")] * 50)
    create(api, start())
    eventually(lambda: any(each["reason"] == "ApplyRefused" for each in events(api)))
    assert reason(api) == "Fits"
    eventually(lambda: "team/llama: no such field; next try in" in caplog.text)


def events(api):
    with api.lock:
        return [body for (plural, _, _), body in api.objects.items() if plural == "events"]


def test_a_mistake_of_ours_is_tried_again(api, start, decider, caplog):
    api.put("nodes", gpu_node())
    decider.fails = 2
    create(api, start())
    eventually(lambda: reason(api) == "Fits")
    assert "on purpose" in caplog.text


def test_notices_become_events(api, start, decider):
    decider.outcome = lambda body, world: Outcome(
        notices=(Notice(type="Normal", reason="Fits", message="it fits"),)
    )
    create(api, start())
    eventually(lambda: [each["reason"] for each in events(api)] == ["Fits"])


def test_deletions_follow_what_was_applied(api, start, decider):
    old = api.put("deployments", {"metadata": {"name": "old", "namespace": "team"}, "spec": {}})
    gone = Delete(api_version="apps/v1", kind="Deployment", name="old", uid=old["metadata"]["uid"])
    decider.outcome = lambda body, world: Outcome(
        applies=(service(),), deletes=(gone,), status={"conditions": conditions("Fits")}
    )
    create(api, start())
    eventually(lambda: api.get("deployments", "old", "team") is None)
    methods = [(method, path.rsplit("/", 1)[-1]) for method, path, _, _ in api.requests]
    writes = [each for each in methods if each[0] in ("PATCH", "DELETE")]
    assert writes[:3] == [("PATCH", "llama"), ("PATCH", "status"), ("DELETE", "old")]


@pytest.mark.parametrize("how", ["event", "no event"])
def test_a_deleted_deployment_is_forgotten(api, start, decider, how):
    runtime = start()
    body = create(api, runtime)
    eventually(lambda: reason(api))
    at_rest(runtime, decider)
    api.remove("modeldeployments", "llama", "team")
    seen = len(decider.worlds)
    if how == "event":
        runtime.noticed(body, deleted=True)
    else:
        runtime.queue.add(KEY)
    at_rest(runtime, decider)
    assert len(decider.worlds) == seen
    assert KEY not in runtime.queue._due


def test_one_that_is_being_deleted_is_left_alone(api, start, decider):
    body = body_of()
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    runtime = start()
    runtime.noticed(api.put("modeldeployments", body), deleted=False)
    at_rest(runtime, decider)
    assert decider.worlds == []


def test_nothing_is_written_without_the_lease(api, start, decider):
    leading = threading.Event()
    runtime = start(may_act=leading.is_set)
    create(api, runtime)
    eventually(lambda: KEY in runtime.queue._due)  # taken, and put back for later
    assert decider.worlds == []
    leading.set()
    eventually(lambda: reason(api))


def test_other_namespaces_are_not_looked_at(api, start, decider):
    runtime = start(namespaces=("team",))
    api.put("nodes", gpu_node())
    create(api, runtime)
    eventually(lambda: reason(api))
    paths = {path for method, path, _, _ in api.requests if method == "GET"}
    assert "/apis/apps/v1/deployments" not in paths
    assert "/apis/apps/v1/namespaces/team/deployments" in paths
    assert "/api/v1/nodes" in paths


def test_a_hung_watch_is_named(start):
    runtime = start()
    assert runtime.caches.hung() == ()
    runtime.caches.nodes.last_activity_seconds -= 301
    assert runtime.caches.hung() == ("nodes",)


def test_a_stopped_runtime_ends_its_threads(start):
    runtime = start()
    runtime.stop()
    eventually(lambda: not any(worker.is_alive() for worker in runtime._workers))
    eventually(lambda: not any(watch.alive for watch in runtime.caches))


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
