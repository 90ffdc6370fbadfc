"""The wired runtime: what it survives, what it tells, and how it ends."""

import threading

import pytest

from shipfitter.decide.world import Delete, Notice, Outcome
from unit.cluster.builders import (
    conditions,
    gpu_node,
    service,
)
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError
from unit.cluster.runtime_stage import KEY, at_rest, body_of, create, events, reason


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
