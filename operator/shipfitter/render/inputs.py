"""What a kept plan depends on: while this hash holds, no restart and no upgrade rolls a pod.

Outside it: replicas and how changes are rolled out, nodes, free GPUs, calibrations, and whatever a
newer release of ours would compute differently.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from shipfitter.api.engine_version import engine_version
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import canonical_uri
from shipfitter.core.model import ModelFacts

_NOT_INPUTS = ("replicas", "rollout", "resize", "verify")
_HASH_LENGTH = 16
# Lists in which the order says nothing.
_UNORDERED = (("gpus", "products"), ("placement", "tolerations"), ("imagePullSecrets",))


def inputs_hash(resource: ModelDeployment, *, facts: ModelFacts, image: str) -> str:
    """The fingerprint of intent, model and engine."""
    inputs = {
        "intent": intent_fields(resource, image=image),
        "model": model_fingerprint(facts),
        "image": image,
    }
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def intent_fields(resource: ModelDeployment, *, image: str) -> dict[str, Any]:
    """The spec without defaults: to write one out, or a release that adds a field, is no change."""
    spec = resource.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for name in _NOT_INPUTS:
        spec.pop(name, None)
    for choice in (spec["model"], *spec["model"].get("alternatives", ())):
        choice["uri"] = canonical_uri(choice["uri"])
        if choice.get("revision") == "main":
            del choice["revision"]
    engine = spec.get("engine", {})
    engine.pop("image", None)  # the image that runs is an input of its own
    if engine.get("version") == engine_version(image):
        engine.pop("version", None)
    for path in _UNORDERED:
        _sort(spec, path)
    pruned: dict[str, Any] = _without_empty(spec)
    return pruned


def _sort(spec: dict[str, Any], path: tuple[str, ...]) -> None:
    (*sections, name) = path
    for section in sections:
        spec = spec.get(section) or {}
    if spec.get(name):
        spec[name] = sorted(spec[name], key=lambda each: json.dumps(each, sort_keys=True))


def _without_empty(value: Any) -> Any:
    """Nested mappings and lists without what is empty: an empty section says nothing."""
    if isinstance(value, Mapping):
        pruned = {key: _without_empty(child) for key, child in value.items()}
        return {key: child for key, child in pruned.items() if child not in ({}, [], None)}
    if isinstance(value, list):
        return [_without_empty(child) for child in value]
    return value


def model_fingerprint(facts: ModelFacts) -> dict[str, Any]:
    """What identifies a model and its sizes, in terms that no release of ours changes."""
    return {
        "revision": facts.revision,
        "architecture": facts.architecture,
        "hidden_size": facts.hidden_size,
        "num_hidden_layers": facts.num_hidden_layers,
        "num_key_value_heads": facts.num_key_value_heads,
        "head_dim": facts.head_dim,
        "vocab_size": facts.vocab_size,
        "checkpoint_bytes": facts.checkpoint_bytes,
        "quantization": facts.quantization.method if facts.quantization else "",
    }
