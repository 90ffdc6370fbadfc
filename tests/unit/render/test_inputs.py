"""What a kept plan depends on, and what it does not."""

from dataclasses import replace

import pytest

from shipfitter.render.inputs import inputs_hash
from unit.render.plans import IMAGE, LLAMA_8B, resource

BASE = inputs_hash(resource(), facts=LLAMA_8B, image=IMAGE)


def fingerprint(*, facts=LLAMA_8B, image=IMAGE, **spec):
    return inputs_hash(resource(**spec), facts=facts, image=image)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"spec__replicas": 5}, id="replicas"),
        pytest.param({"spec__rollout": {"mode": "InPlace"}}, id="how changes are rolled out"),
        pytest.param({"spec__resize": {"mode": "Off"}}, id="what a resize may do"),
        pytest.param({"spec__verify": {"enabled": True}}, id="a load test"),
        pytest.param(
            {"spec__workload": {"prefer": "Balanced", "sizeFor": "Typical"},
             "spec__gpus": {"perReplica": {"max": 8}, "kvCacheDtype": "auto"},
             "spec__engine": {"kind": "vllm", "args": []}},
            id="defaults written out",
        ),
        pytest.param({"spec__gpus": {}, "spec__template": {}, "spec__placement": {}},
                     id="empty sections"),
        pytest.param({"spec__model__uri": "meta-llama/Llama-3.1-8B-Instruct"},
                     id="the model without its scheme"),
        pytest.param({"spec__model__revision": "main"}, id="the default revision"),
        pytest.param({"spec__engine__image": IMAGE, "spec__engine__version": "0.33.0"},
                     id="the image that runs anyway"),
        pytest.param({"metadata__labels": {"a": "b"}}, id="a label"),
    ],
)  # fmt: skip
def test_this_keeps_a_plan(spec):
    assert fingerprint(**spec) == BASE


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"spec__workload": {"maxModelLen": {"min": 4096}}}, id="what is wanted"),
        pytest.param({"spec__gpus": {"products": ["NVIDIA-L4"]}}, id="the GPUs allowed"),
        pytest.param({"spec__engine__args": ["--seed=1"]}, id="the engine's arguments"),
        pytest.param({"spec__template": {"spec": {"runtimeClassName": "nvidia"}}}, id="overlay"),
        pytest.param({"spec__model__alternatives": [{"uri": "a/b"}]}, id="the alternatives"),
        pytest.param({"image": "vllm/vllm-openai:v0.34.0"}, id="the engine's image"),
        pytest.param({"facts": replace(LLAMA_8B, revision="f" * 40)}, id="the model's commit"),
        pytest.param({"facts": replace(LLAMA_8B, checkpoint_bytes=1)}, id="the model's size"),
        pytest.param({"spec__engine": {"image": "x@sha256:0", "version": "0.32.0"}},
                     id="a version that the image does not tell"),
    ],
)  # fmt: skip
def test_this_asks_for_a_new_plan(changes):
    assert fingerprint(**changes) != BASE


@pytest.mark.parametrize(
    ("path", "values"),
    [
        pytest.param("spec__gpus__products", ["NVIDIA-L4", "NVIDIA-L40S"], id="products"),
        pytest.param(
            "spec__placement__tolerations",
            [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
            id="tolerations",
        ),
        pytest.param("spec__imagePullSecrets", [{"name": "a"}, {"name": "b"}], id="pull secrets"),
    ],
)
def test_the_order_of_some_lists_says_nothing(path, values):
    one, other = fingerprint(**{path: values}), fingerprint(**{path: values[::-1]})
    assert one == other != BASE


def test_the_hash_is_the_same_in_every_release():
    """A change of this value would plan, and may roll, every deployment on an upgrade."""
    assert BASE == "05262958f42d7170"
