"""Mistakes that both the API server's rules and our own parser must refuse, with the same words."""

import copy
from dataclasses import dataclass, field
from typing import Any

from shipfitter.api import rules
from shipfitter.api.base import Rule


@dataclass(frozen=True)
class Mistake:
    what: str
    rule: Rule
    path: str
    changes: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        return changed(minimal(), self.changes)


def minimal(name: str = "llama") -> dict[str, Any]:
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-8B-Instruct"}},
    }


def changed(body: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The body with values set at dotted paths."""
    result = copy.deepcopy(body)
    for path, value in changes.items():
        *parents, last = path.split(".")
        node = result
        for key in parents:
            node = node.setdefault(key, {})
        node[last] = value
    return result


MISTAKES = (
    Mistake(
        "a name with a dot", rules.NAME_RULE, "metadata.name", {"metadata.name": "llama-3.1"}
    ),
    Mistake(
        "a name that starts with a digit", rules.NAME_RULE, "metadata.name",
        {"metadata.name": "3-llamas"},
    ),
    Mistake(
        "a name of 41 characters", rules.NAME_RULE, "metadata.name", {"metadata.name": "a" * 41}
    ),
    Mistake(
        "the name whose Service would collide with the engine's own variables",
        rules.NAME_RULE, "metadata.name", {"metadata.name": "vllm"},
    ),
    Mistake(
        "a model without an organisation", rules.URI_RULE, "spec.model.uri",
        {"spec.model.uri": "llama"},
    ),
    Mistake(
        "a name that the hub refuses", rules.URI_RULE, "spec.model.uri",
        {"spec.model.uri": "hf://org/a--b"},
    ),
    Mistake(
        "a clone address", rules.URI_RULE, "spec.model.uri", {"spec.model.uri": "hf://org/a.git"},
    ),
    Mistake(
        "a scheme we do not know", rules.URI_RULE, "spec.model.uri",
        {"spec.model.uri": "s3://bucket/llama"},
    ),
    Mistake(
        "a path that climbs out of its claim", rules.URI_RULE, "spec.model.uri",
        {"spec.model.uri": "pvc://models/../etc"},
    ),
    Mistake(
        "an alternative that is no model", rules.URI_RULE, "spec.model.alternatives[0].uri",
        {"spec.model.alternatives": [{"uri": "https://example/llama"}]},
    ),
    Mistake(
        "a least length above the best", rules.MIN_UP_TO_PREFERRED, "spec.workload.maxModelLen",
        {"spec.workload.maxModelLen": {"min": 8192, "preferred": 4096}},
    ),
    Mistake(
        "more sequences at least than at best",
        rules.MIN_UP_TO_PREFERRED, "spec.workload.maxNumSeqs",
        {"spec.workload.maxNumSeqs": {"min": 65, "preferred": 64}},
    ),
    Mistake(
        "an image by digest without a version", rules.VERSION_FOR_IMAGE, "spec.engine.version",
        {"spec.engine.image": "vllm/vllm-openai@sha256:" + "0" * 64},
    ),
    Mistake(
        "an image whose tag is no version", rules.VERSION_FOR_IMAGE, "spec.engine.version",
        {"spec.engine.image": "registry.example:5000/ours/vllm:latest"},
    ),
    Mistake(
        "an image without a tag behind a registry's port",
        rules.VERSION_FOR_IMAGE, "spec.engine.version",
        {"spec.engine.image": "registry.example:5000/vllm"},
    ),
    Mistake(
        "an empty product list", rules.PRODUCTS_NOT_EMPTY, "spec.gpus.products",
        {"spec.gpus.products": []},
    ),
    Mistake(
        "more ranks than a replica may have by default",
        rules.TENSOR_PARALLEL_WITHIN_REPLICA, "spec.gpus.tensorParallelSize",
        {"spec.gpus.tensorParallelSize": 16},
    ),
    Mistake(
        "more ranks than the GPUs of a replica",
        rules.TENSOR_PARALLEL_WITHIN_REPLICA, "spec.gpus.tensorParallelSize",
        {"spec.gpus.tensorParallelSize": 4, "spec.gpus.perReplica.max": 2},
    ),
    Mistake(
        "a toleration of any value that names one",
        rules.EXISTS_HAS_NO_VALUE, "spec.placement.tolerations[0]",
        {"spec.placement.tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
    ),
    Mistake(
        "a variable with two sources", rules.ONE_ENV_SOURCE, "spec.engine.env[0]",
        {
            "spec.engine.env": [
                {"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
            ]
        },
    ),
)  # fmt: skip

# Right in the eyes of both: the rules must not refuse what people really write.
RIGHT: dict[str, dict[str, Any]] = {
    "a model without its scheme": {"spec.model.uri": "Qwen/Qwen3-32B"},
    "a claim's root": {"spec.model.uri": "pvc://models"},
    "a path on a claim": {"spec.model.uri": "pvc://models.v1/llama/3.1_8b/"},
    "a tag with a build": {"spec.engine.image": "registry.example:5000/vllm:v0.33.0-cu129"},
    "a release candidate": {"spec.engine.image": "vllm/vllm-openai:v0.33.0rc1"},
    "a private tag with its version": {
        "spec.engine.image": "vllm:ours",
        "spec.engine.version": "0.33.0",
    },
    "a pinned length": {"spec.workload.maxModelLen": {"min": 4096, "preferred": 4096}},
    "sixteen ranks in a replica of sixteen": {
        "spec.gpus.tensorParallelSize": 16,
        "spec.gpus.perReplica.max": 16,
    },
    "no replicas": {"spec.replicas": 0},
    "a name of forty characters": {"metadata.name": "a" * 40},
    "a name of one letter": {"metadata.name": "a"},
}
