"""Writing: the order of it, what is left out, and that it may be cut off anywhere."""

import itertools

import pytest

from shipfitter.cluster.apply import Applier, NameTakenError, same_meaning
from shipfitter.cluster.caches import Caches
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.queue import Key
from shipfitter.decide.world import Delete
from unit.cluster.builders import (
    conditions,
    config_map,
    deployment,
    model_deployment,
    owned,
    scale,
    service,
)
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError

KEY = Key("team", "llama")
ALL = (scale(2), deployment(), service(), config_map())


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def caches(api, client):
    made = Caches(client)
    made.start()
    eventually(lambda: made.synced)
    yield made
    made.stop()
    api.drop_watches()


@pytest.fixture
def applier(client, caches, clock):
    return Applier(client, caches, clock=clock)


def patches(api):
    """Kind, manager and replicas of every apply so far, in order."""
    return [
        (body["kind"], query["fieldManager"], body.get("spec", {}).get("replicas"))
        for method, _, query, body in api.requests
        if method == "PATCH"
    ]


def test_what_pods_need_comes_before_them_and_what_stands_beside_them_after(api, applier):
    applier.apply(KEY, ALL)
    assert patches(api) == [
        ("ConfigMap", "shipfitter", None),
        ("Deployment", "shipfitter", 2),
        ("Deployment", "shipfitter-scale", 2),
        ("Service", "shipfitter", None),
    ]


def test_a_workload_is_born_with_its_scale_and_later_left_to_it(api, applier):
    applier.apply(KEY, (scale(0), deployment()))
    assert patches(api)[0] == ("Deployment", "shipfitter", 0)
    applier.apply(KEY, (scale(3), deployment("vllm:2")))
    assert patches(api)[-2:] == [
        ("Deployment", "shipfitter", None),
        ("Deployment", "shipfitter-scale", 3),
    ]


def test_applying_again_what_is_there_sends_nothing(api, applier):
    applier.apply(KEY, ALL)
    sent = len(patches(api))
    applier.apply(KEY, ALL[1:])
    applier.apply(KEY, ALL[1:])
    # The Deployment's first manifest carried its scale; from the second on it is the same.
    assert len(patches(api)) == sent + 1


def test_a_changed_manifest_is_sent(api, applier):
    applier.apply(KEY, (service(),))
    applier.apply(KEY, (service(9000),))
    assert api.get("services", "llama", "team")["spec"]["ports"] == [{"port": 9000}]


def test_what_somebody_edited_is_put_right(api, caches, applier):
    applier.apply(KEY, (service(),))
    live = api.get("services", "llama", "team")
    api.put("services", {**live, "spec": {"ports": [{"port": 1}]}})
    eventually(lambda: caches.objects[0].store.value("team/llama").wish != _wish(applier))
    applier.apply(KEY, (service(),))
    assert api.get("services", "llama", "team")["spec"]["ports"] == [{"port": 8000}]


def _wish(applier):
    return applier._written[KEY]["Service", "llama", "shipfitter"].wish


def test_what_somebody_deleted_comes_back(api, caches, applier):
    applier.apply(KEY, (service(),))
    api.remove("services", "llama", "team")
    eventually(lambda: caches.objects[0].store.value("team/llama") is None)
    applier.apply(KEY, (service(),))
    assert api.get("services", "llama", "team")


def test_kinds_we_do_not_watch_are_sent_again_after_a_while(api, clock, applier):
    applier.apply(KEY, (config_map(),))
    applier.apply(KEY, (config_map(),))
    assert len(patches(api)) == 1
    api.remove("configmaps", "llama-logging", "team")
    clock.now = 600.0
    applier.apply(KEY, (config_map(),))
    assert api.get("configmaps", "llama-logging", "team")


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param({}, id="nobody's"),
        pytest.param({"ownerReferences": [{"kind": "Helm", "name": "llama"}]}, id="somebody's"),
        pytest.param(owned("llama", "other"), id="another ModelDeployment's"),
    ],
)
def test_an_object_that_is_not_ours_is_never_taken(api, applier, owners):
    api.put("services", {"metadata": {**owners, "name": "llama", "namespace": "team"}})
    with pytest.raises(NameTakenError, match="Service llama exists and does not belong") as taken:
        applier.apply(KEY, ALL)
    assert not taken.value.retryable
    assert patches(api) == []


def test_our_own_object_is_known_again_after_a_restart(api, client, applier):
    applier.apply(KEY, ALL)
    restarted = Applier(client, Caches(client))
    restarted.apply(KEY, ALL)
    assert len(patches(api)) == 8


def test_the_first_refusal_ends_it(api, applier):
    api.refuse("PATCH", "deployments", RefusedError(422, "Invalid", "no such field"))
    with pytest.raises(ApiError, match="no such field"):
        applier.apply(KEY, ALL)
    assert patches(api)[-1][:2] == ("Deployment", "shipfitter")


@pytest.mark.parametrize("cut", range(4))
def test_cut_off_anywhere_and_started_anew_it_ends_the_same(api, client, caches, cut):
    steps = itertools.count()

    class CutClient:
        def __getattr__(self, name):
            return getattr(client, name)

        def apply(self, manifest, *, manager):
            if next(steps) == cut:
                raise KeyboardInterrupt
            return client.apply(manifest, manager=manager)

    with pytest.raises(KeyboardInterrupt):
        Applier(CutClient(), caches).apply(KEY, ALL)
    Applier(client, caches).apply(KEY, ALL)
    assert api.get("deployments", "llama-v", "team")["spec"]["replicas"] == 2
    assert api.get("services", "llama", "team")
    assert api.get("configmaps", "llama-logging", "team")


def test_deletion_means_the_incarnation_that_was_seen(api, applier):
    applier.apply(KEY, (deployment(),))
    seen = api.get("deployments", "llama-v", "team")["metadata"]["uid"]
    delete = Delete(api_version="apps/v1", kind="Deployment", name="llama-v", uid="another")
    applier.delete(KEY, (delete,))
    assert api.get("deployments", "llama-v", "team")
    applier.delete(
        KEY, (Delete(api_version="apps/v1", kind="Deployment", name="llama-v", uid=seen),)
    )
    assert api.get("deployments", "llama-v", "team") is None


def test_status_is_replaced_whole(api, applier):
    body = api.put("modeldeployments", {**model_deployment(), "status": {"old": 1}})
    assert applier.write_status(body, {"conditions": conditions("Fits")})
    stored = api.get("modeldeployments", "llama", "team")
    assert stored["status"] == {"conditions": conditions("Fits")}
    assert stored["metadata"]["generation"] == body["metadata"]["generation"]


def test_status_that_says_the_same_is_not_written(api, applier):
    body = api.put("modeldeployments", {**model_deployment(), "status": {"replicas": 1}})
    assert not applier.write_status(body, {"replicas": 1, "plan": None, "observed": []})
    assert api.sent("PATCH") == []


def test_status_is_not_written_on_an_object_made_anew(api, applier):
    body = api.put("modeldeployments", model_deployment())
    api.remove("modeldeployments", "llama", "team")
    anew = model_deployment()
    anew["metadata"]["uid"] = "another"
    api.put("modeldeployments", anew)
    with pytest.raises(ApiError):
        applier.write_status(body, {"replicas": 1})
    assert "status" not in api.get("modeldeployments", "llama", "team")


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param(None, {}, True, id="no status and an empty one"),
        pytest.param({"a": None}, {}, True, id="null and absent"),
        pytest.param({"a": {"b": []}}, {}, True, id="empty all the way down"),
        pytest.param({"a": 0}, {}, False, id="zero is something"),
        pytest.param({"a": ""}, {}, False, id="an empty string is something"),
        pytest.param({"a": (1, 2)}, {"a": [1, 2]}, True, id="tuples are lists in JSON"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, False, id="order of a list counts"),
    ],
)
def test_same_meaning(one, other, want):
    assert same_meaning(one, other) is want
