"""Weights loaded otherwise than the checkpoint has them: --dtype float32, --quantization fp8."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shipfitter.core.facts import ModelFacts, Shard, WeightGroup
from shipfitter.core.versions import EngineVersion
from shipfitter.errors import InvalidSpecError

# Bytes per element after quantising a 2-byte checkpoint while loading.
# Source: vLLM vllm/model_executor/layers/quantization/online/.
_ONLINE_BYTES: Mapping[str, float] = MappingProxyType(
    {
        "fp8": 1.0,
        "fp8_per_tensor": 1.0,
        "fp8_per_channel": 1.0,
        "fp8_per_block": 1.0 + 4 / (128 * 128),
        "mxfp8": 1.0 + 1 / 32,
        "int8_per_channel_weight_only": 1.0,
        "nvfp4_per_token": 0.5 + 1 / 16,
        "ptpc_fp8": 1.0,
        # Four bits and an fp32 scale for 64 of them.
        # Source: vLLM vllm/model_executor/model_loader/bitsandbytes_loader.py.
        "bitsandbytes": 0.5 + 4 / 64,
        "experts_int8": 1.0,
    }
)
_EXPERTS_ONLY = frozenset(("experts_int8",))
# The file's own blocks are kept as they are stored: its total says their size.
_KEPT_AS_STORED = frozenset(("gguf",))
_CHECKPOINT_BYTES = 2
_LINEAR = frozenset((Shard.DIVIDED, Shard.KV_HEADS, Shard.EXPERTS))


def loaded_as(
    model: ModelFacts, *, dtype: str = "auto", quantization: str | None = None
) -> ModelFacts:
    """The facts with weights as these flags make the engine hold them.

    A checkpoint that is quantised already stays as it is: the engine takes its own method.
    Raises InvalidSpecError for a method the engine cannot apply while loading.
    """
    if model.quantization is not None:
        return model
    groups = model.weight_groups
    if quantization is not None and quantization not in _KEPT_AS_STORED:
        groups = tuple(_quantised(group, quantization) for group in groups)
        before = sum(group.loaded_bytes for group in model.weight_groups)
        model = replace(model, extra={**model.extra, "unquantised_bytes": before})
    if dtype == "float32":
        groups = tuple(replace(group, loaded_bytes=2 * group.loaded_bytes) for group in groups)
        return replace(
            model, weight_groups=groups, dtype=dtype, rotary_bytes=2 * model.rotary_bytes
        )
    return replace(model, weight_groups=groups, dtype=model.dtype if dtype == "auto" else dtype)


# Layers are quantised one by one as they arrive. Source: vLLM 0.13 (experts) and 0.15 (the rest)
# vllm/model_executor/layers/quantization; before, the whole model was there first.
_STREAMS_EXPERTS = EngineVersion(0, 13, 0)
_STREAMS_ALL = EngineVersion(0, 15, 0)


def quantised_peak_bytes(model: ModelFacts, loaded_bytes: int, version: EngineVersion) -> int:
    """The most that weights of one rank take while they are quantised; 0 where they are not."""
    before = int(model.extra.get("unquantised_bytes", 0))
    if not before:
        return 0
    after = sum(group.loaded_bytes for group in model.weight_groups)
    streams = _STREAMS_EXPERTS if model.moe is not None else _STREAMS_ALL
    unquantised = loaded_bytes * before // max(1, after)
    if version < streams:
        return unquantised
    return loaded_bytes + unquantised // max(1, model.num_hidden_layers)


def _quantised(group: WeightGroup, method: str) -> WeightGroup:
    """Only linear layers and experts; embedding, head, norms and towers stay."""
    if method not in _ONLINE_BYTES:
        known = ", ".join(_ONLINE_BYTES)
        raise InvalidSpecError(
            (f"quantization {method!r} cannot be applied to an unquantised checkpoint; of {known}",)
        )
    shards = frozenset((Shard.EXPERTS,)) if method in _EXPERTS_ONLY else _LINEAR
    if group.place != "layer" or group.shard not in shards:
        return group
    size = round(group.loaded_bytes * _ONLINE_BYTES[method] / _CHECKPOINT_BYTES)
    return replace(group, loaded_bytes=size)
