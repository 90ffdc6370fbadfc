"""A checkpoint tensor's name, read: where it lives, how it is divided, what it becomes."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from shipfitter.core.facts import Shard
from shipfitter.core.tensor_names import (
    DIVIDED_OUTSIDE,
    EMBEDDING,
    FUSED_QKV,
    HEAD,
    KEY_VALUE,
    MERGED,
    REPLICATED,
    ROW_PARALLEL,
    TOWER,
    WHOLE_BLOCKS,
    WHOLE_IN_TOWER,
)

_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks)\.(\d+)\.")
_EXPERT = re.compile(r"(\.experts)\.\d+\.")
_PARTS = re.compile(  # gpt-oss writes experts.gate_up_proj_blocks, _scales, _bias
    r"^(?P<module>.+?)[._](?P<part>weight_scale_inv|weight_scale_2|weight_scales|weight_scale|"
    r"weight_packed|weight_blocks|weight_zero_point|weight_shape|weight_g_idx|weight_global_scale|"
    r"weight_nf4|weight_absmax|input_global_scale|input_scale|qweight|qzeros|scales|g_idx|blocks|"
    r"weight|bias)$"
)

# Parts of a checkpoint the engine never loads for generation.
# Source: vLLM model classes' load_weights and AutoWeightsLoader skip lists.
_SKIPPED = re.compile(
    r"(^|\.)(talker|token2wav|code2wav|eagle\d*)\.|rotary_emb\.|inv_freq$|masked_bias$|"
    r"\.attn\.bias$|\.(k|v|q)_scale$|weight_shape$|\.h\.\d+\.attn\.bias$"
)
# Multi-token prediction; its copies of embedding and head are replaced by the model's own.
_PREDICTION = re.compile(r"(^|\.)mtp\.")
_SHARED_WITH_MODEL = frozenset(("embed_tokens", "head"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRole:
    """What a tensor's name says. `layer` is -1 outside the hidden layers."""

    shard: Shard
    place: str
    layer: int = -1
    tensor: str = ""  # the engine's parameter it becomes part of
    module: str = ""  # last part of the module's path
    part: str = "weight"
    fused_qkv: bool = False
    key_value: bool = False


def tensor_role(name: str, *, num_hidden_layers: int) -> TensorRole | None:
    """The role of a tensor by its name; None where the engine never loads it."""
    pattern = _EXPERT.sub(r"\1.", name)
    found = _LAYER.search(pattern)
    if found is None:
        role = _role(pattern, -1)
        return _as_prediction(role, name) if _PREDICTION.search(name) else role
    start, end = found.span(1)
    layer = int(found.group(1))
    role = _role(pattern[:start] + "#" + pattern[end:], 0)
    if role is None or role.place != "layer":
        return role
    if layer >= num_hidden_layers or _PREDICTION.search(name):
        return _as_prediction(role, name)
    return replace(role, layer=layer, tensor=f"{layer}.{role.tensor}")


def _as_prediction(role: TensorRole | None, name: str) -> TensorRole | None:
    if role is None or _SHARED_WITH_MODEL.intersection(name.split(".")):
        return None
    return replace(role, place="prediction", tensor="", fused_qkv=False, key_value=False)


@lru_cache(maxsize=8192)
def _role(pattern: str, layer: int) -> TensorRole | None:
    if _SKIPPED.search(pattern):
        return None
    parsed = _PARTS.match(pattern)
    path, part = (parsed["module"], parsed["part"]) if parsed else (pattern, "weight")
    words = path.split(".")
    module = words[-1]
    if TOWER.intersection(words):
        whole = "norm" in module or not WHOLE_IN_TOWER.isdisjoint(words)
        shard = Shard.REPLICATED if whole else Shard.TOWER
        return TensorRole(shard=shard, place="other", module=module, part=part)
    if layer < 0:
        return _outside_layers(words, part)
    shard = _layer_shard(words, part)
    parent = ".".join(words[words.index("#") + 1 : -1])
    return TensorRole(
        shard=shard,
        place="layer",
        tensor=f"{parent}.{MERGED.get(module, module)}.{part}",
        module=module,
        part=part,
        fused_qkv=module in FUSED_QKV and shard is Shard.DIVIDED,
        key_value=module in KEY_VALUE and shard is Shard.DIVIDED,
    )


def _outside_layers(words: list[str], part: str) -> TensorRole:
    module = words[-1]
    if module in EMBEDDING or module == "embed_tokens_per_layer":
        return TensorRole(
            shard=Shard.VOCAB, place="embedding", tensor=module, module=module, part=part
        )
    if module in HEAD:
        return TensorRole(
            shard=Shard.VOCAB, place="head", tensor=f"{module}.{part}", module=module, part=part
        )
    if module in ("embed_positions", "wpe", "position_embeddings", "token_type_embeddings"):
        return TensorRole(shard=Shard.REPLICATED, place="embedding", module=module, part=part)
    shard = Shard.DIVIDED if not DIVIDED_OUTSIDE.isdisjoint(words) else Shard.REPLICATED
    return TensorRole(shard=shard, place="head", module=module, part=part)


def _layer_shard(words: list[str], part: str) -> Shard:
    module = words[-1]
    row_bias = part == "bias" and module in ROW_PARALLEL
    if "experts" in words:
        return Shard.REPLICATED if row_bias else Shard.EXPERTS
    if module in REPLICATED or not WHOLE_BLOCKS.isdisjoint(words) or "norm" in module or row_bias:
        return Shard.REPLICATED
    if part in ("weight_scale_2", "input_scale", "weight_global_scale", "input_global_scale"):
        return Shard.REPLICATED
    return Shard.DIVIDED
