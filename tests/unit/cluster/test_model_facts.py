"""Model facts: asked once, kept in the cluster, tried again by themselves."""

import json
import threading

import pytest

from shipfitter.cluster.kept_facts import KeptFacts, key_of
from shipfitter.cluster.model_facts import ModelCache, pinned_revision
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.errors import HubUnavailableError, ModelNotFoundError, UserError
from unit.cluster.builders import model_deployment
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}
URI = "hf://org/model"


def facts(revision="c0ffee"):
    return model_facts(CONFIG, name="org/model", checkpoint_bytes=2_000_000, revision=revision)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Hub:
    """Answers with what stands in `answer`, or waits while `open` is not set."""

    def __init__(self):
        self.asked = []
        self.answer = facts()
        self.open = threading.Event()
        self.open.set()

    def __call__(self, uri, *, revision, endpoint, timeout_seconds, may_be_known=True):
        self.asked.append((uri, revision))
        assert self.open.wait(10)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hub():
    return Hub()


@pytest.fixture
def woken():
    return []


@pytest.fixture
def cache(client, hub, clock, woken):
    return ModelCache(KeptFacts(client), hub, on_news=woken.append, clock=clock)


def resolve(cache, body):
    """The models once nothing is pending, and kept as after every pass."""
    answers = []

    def known():
        answers.append(cache.resolve(key_of(body), body))
        cache.keep(key_of(body), body, answers[-1])
        return not answers[-1].pending

    eventually(known)
    return answers[-1]


def test_a_model_is_asked_for_in_the_background(cache, hub, woken):
    body = model_deployment()
    hub.open.clear()
    first = cache.resolve(key_of(body), body)
    assert (first.models, first.pending) == ({}, True)
    hub.open.set()
    eventually(lambda: woken == [key_of(body)])
    assert cache.resolve(key_of(body), body).models == {URI: facts()}
    assert hub.asked == [(URI, None)]


def test_facts_are_kept_beside_the_deployment(api, client, cache, hub):
    body = model_deployment()
    resolve(cache, body)
    stored = api.get("configmaps", "llama-model-facts", "team")
    assert stored["metadata"]["ownerReferences"][0]["uid"] == "uid-llama"
    (text,) = stored["data"].values()
    assert json.loads(text)["commit"] == "c0ffee"

    restarted = ModelCache(KeptFacts(client), hub)
    hub.answer = HubUnavailableError("the hub is down")
    assert restarted.resolve(key_of(body), body).models == {URI: facts()}
    assert len(hub.asked) == 1


def test_a_revision_is_resolved_once_for_a_deployment(cache, hub, clock):
    resolve(cache, model_deployment())
    hub.answer = facts("newer")
    clock.now = 100_000.0
    assert resolve(cache, model_deployment()).models[URI].revision == "c0ffee"
    assert resolve(cache, model_deployment("other")).models[URI].revision == "newer"


def test_deployments_share_what_was_just_asked(cache, hub, clock):
    resolve(cache, model_deployment())
    clock.now = 60.0
    resolve(cache, model_deployment("other"))
    assert len(hub.asked) == 1


def test_a_changed_revision_is_asked_for(cache, hub):
    resolve(cache, model_deployment())
    hub.answer = facts("v2-commit")
    body = model_deployment(model={"uri": URI, "revision": "v2"})
    assert resolve(cache, body).models[URI].revision == "v2-commit"
    assert hub.asked == [(URI, None), (URI, "v2")]


def test_alternatives_are_models_too(cache, hub):
    model = {"uri": "org/model", "alternatives": [{"uri": "hf://org/model-fp8", "revision": "r"}]}
    got = resolve(cache, model_deployment(model=model))
    assert set(got.models) == {URI, "hf://org/model-fp8"}
    assert set(hub.asked) == {(URI, None), ("hf://org/model-fp8", "r")}


def test_a_failure_is_an_answer_and_is_tried_again(cache, hub, clock, woken):
    body = model_deployment()
    hub.answer = ModelNotFoundError("no such model")
    got = resolve(cache, body)
    assert str(got.models[URI]) == "no such model"
    assert 0 < got.retry_after_seconds <= 10.0
    hub.answer = facts()
    assert len(hub.asked) == 1, "not before its time"
    woken.clear()
    clock.now = 10.0
    assert isinstance(cache.resolve(key_of(body), body).models[URI], UserError)
    eventually(lambda: woken == [key_of(body)])
    assert cache.resolve(key_of(body), body).models == {URI: facts()}


def test_waits_grow_to_five_minutes(cache, hub, clock):
    hub.answer = HubUnavailableError("down")
    body, waits = model_deployment(), []
    for asked in range(1, 9):
        resolve(cache, body)
        eventually(lambda wanted=asked: len(hub.asked) == wanted)
        eventually(lambda: not next(iter(cache._questions.values())).asked)
        waits.append(cache.resolve(key_of(body), body).retry_after_seconds)
        clock.now += waits[-1]
    assert waits[0] <= 10.0
    assert 225.0 <= waits[-1] <= 300.0
    assert waits == sorted(waits) or all(wait > 200 for wait in waits[-3:])


def test_the_same_failure_again_wakes_nobody(cache, hub, clock, woken):
    body = model_deployment()
    hub.answer = HubUnavailableError("down")
    resolve(cache, body)
    woken.clear()
    clock.now = 20.0
    cache.resolve(key_of(body), body)
    eventually(lambda: len(hub.asked) == 2)
    eventually(lambda: not next(iter(cache._questions.values())).asked)
    assert woken == []


def test_a_mistake_of_ours_is_told_to_the_user_too(cache, hub, caplog):
    hub.answer = RuntimeError("oops")
    got = resolve(cache, model_deployment())
    assert "hf://org/model could not be read (RuntimeError: oops)" in str(got.models[URI])


def test_facts_in_the_spec_need_no_hub(api, cache, hub):
    model = {"uri": URI, "facts": {"config": CONFIG, "weightsBytes": 2_000_000}}
    got = resolve(cache, model_deployment(model=model))
    assert isinstance(got.models[URI], ModelFacts)
    assert hub.asked == []


def test_broken_facts_in_the_spec_are_the_users_to_mend(cache):
    got = resolve(cache, model_deployment(model={"uri": URI, "facts": {"weightsBytes": -1}}))
    assert "spec.model.facts.config" in str(got.models[URI])


def test_a_model_on_a_claim_says_what_to_write(cache, hub):
    got = resolve(cache, model_deployment(model={"uri": "pvc://models/llama"}))
    assert "spec.model.facts" in str(got.models["pvc://models/llama"])
    assert hub.asked == []


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"model": None}, id="no model"),
        pytest.param({"model": {"uri": 7}}, id="a uri that is a number"),
        pytest.param({"model": {"alternatives": "none"}}, id="alternatives that are no list"),
    ],
)
def test_what_is_malformed_is_left_to_the_parser(cache, spec):
    body = {**model_deployment(), "spec": spec}
    got = cache.resolve(key_of(body), body)
    assert (got.models, got.pending) == ({}, False)


def test_facts_that_could_not_be_kept_are_kept_later(api, cache):
    api.refuse("PATCH", "configmaps", RefusedError(500, "InternalError"))
    resolve(cache, model_deployment())
    assert api.get("configmaps", "llama-model-facts", "team") is None
    resolve(cache, model_deployment())
    assert api.get("configmaps", "llama-model-facts", "team")


def test_kept_facts_of_an_older_shape_are_read_anew_at_the_same_commit(api, client, cache, hub):
    body = model_deployment()
    resolve(cache, body)
    stored = api.get("configmaps", "llama-model-facts", "team")
    ((name, text),) = stored["data"].items()
    entry = {**json.loads(text), "facts": {"from": "the past"}}
    api.put("configmaps", {**stored, "data": {name: json.dumps(entry)}})
    restarted = ModelCache(KeptFacts(client), hub)
    assert resolve(restarted, body).models == {URI: facts()}
    assert hub.asked[-1] == (URI, "c0ffee")


def test_facts_of_an_earlier_object_of_the_name_do_not_count(cache, hub, clock):
    resolve(cache, model_deployment())
    anew = model_deployment()
    anew["metadata"]["uid"] = "another"
    hub.answer = facts("newer")
    clock.now = 100_000.0
    assert resolve(cache, anew).models[URI].revision == "newer"


STATUS = {
    "observedGeneration": 1,
    "model": {"revision": "pinned"},
    "plan": {"variants": [{"modelUri": URI}]},
}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(STATUS, "pinned", id="the status still knows the commit"),
        pytest.param({**STATUS, "observedGeneration": 0}, "", id="the spec changed since"),
        pytest.param({**STATUS, "plan": {}}, "", id="the commit is another model's"),
        pytest.param(None, "", id="no status"),
    ],
)
def test_the_pin_in_the_status(status, want):
    assert pinned_revision({**model_deployment(), "status": status}, URI) == want


def test_a_pin_is_what_the_hub_is_asked_for(cache, hub):
    resolve(cache, {**model_deployment(), "status": STATUS})
    assert hub.asked == [(URI, "pinned")]
