"""A checkpoint tensor's name, read: where it lives, how it is divided, what it becomes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from shipfitter.core.facts import Shard

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
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
_TOWER = frozenset(
    (
        "visual",
        "vision_tower",
        "vision_model",
        "vision_encoder",
        "vision_embedder",
        "audio_tower",
        "audio_model",
        "multi_modal_projector",
        "mm_projector",
        "mlp1",
        "embed_vision",
        "embed_audio",
        "image_newline",
        "patch_merger",
        "pre_mm_projector_norm",
        "connector",
        "aligner",
        "audio_projector",
        "vision_language_adapter",
    )
)
# Parts of towers that no parallel layer holds; every rank has them whole.
# Source: vLLM vllm/model_executor/models/{siglip,clip,pixtral,mistral3,qwen3_vl,gemma3_mm}.py and
# gemma4_unified.py.
_WHOLE_IN_TOWER = frozenset(
    (
        "patch_embed",
        "patch_embedding",
        "patch_conv",
        "position_embedding",
        "pos_embed",
        "pos_embedding",
        "merging_layer",
        "mm_input_projection_weight",
        "embedding_projection",
    )
)
_EMBEDDING = frozenset(
    (
        "embed_tokens",
        "wte",
        "word_embeddings",
        "embeddings",
        "tok_embeddings",
        "embed_in",
    )
)
_HEAD = frozenset(
    (
        "lm_head",
        "output",
        "embed_out",
    )
)
_KEY_VALUE = frozenset(
    (
        "k_proj",
        "v_proj",
        "wk",
        "wv",
    )
)
_FUSED_QKV = frozenset(
    (
        "qkv_proj",
        "query_key_value",
        "c_attn",
        "W_pack",
        "Wqkv",
        "wqkv",
        "qkv",
    )
)
_ROW_PARALLEL = frozenset(
    (
        "o_proj",
        "down_proj",
        "w2",
        "fc2",
        "c_proj",
        "out_proj",
        "dense",
        "dense_4h_to_h",
        "wo",
    )
)
_REPLICATED = frozenset(
    (
        "gate",
        "router",
        "q_a_proj",
        "kv_a_proj_with_mqa",
        "shared_expert_gate",
        "per_layer_input_gate",
        "per_layer_projection",
        "fc1_latent_proj",
        "fc2_latent_proj",
        "f_a_proj",
        "g_a_proj",
        "wq_a",
        "wkv",
        "attn_sink",
        "hc_attn_fn",
        "hc_ffn_fn",
        "weights_proj",
        "e_score_correction",
    )
)
_WHOLE_BLOCKS = frozenset(("indexer", "router", "compressor"))

# Modules the engine keeps in one tensor.
# Source: vLLM packed_modules_mapping of the classes; MergedColumnParallelLinear, QKVParallelLinear.
_MERGED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "wq", "wk", "wv"), "qkv_proj"),
        **dict.fromkeys(("gate_proj", "up_proj", "w1", "w3"), "gate_up_proj"),
        **dict.fromkeys(("q_a_proj", "kv_a_proj_with_mqa"), "fused_qkv_a_proj"),
        **dict.fromkeys(("wq_a", "wkv"), "fused_wqa_wkv"),
        **dict.fromkeys(("in_proj_qkv", "in_proj_z"), "in_proj_qkvz"),
        **dict.fromkeys(("in_proj_a", "in_proj_b"), "in_proj_ba"),
    }
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
    if _TOWER.intersection(words):
        whole = "norm" in module or not _WHOLE_IN_TOWER.isdisjoint(words)
        shard = Shard.REPLICATED if whole else Shard.TOWER
        return TensorRole(shard=shard, place="other", module=module, part=part)
    if layer < 0:
        return _outside_layers(module, part)
    shard = _layer_shard(words, part)
    parent = ".".join(words[words.index("#") + 1 : -1])
    return TensorRole(
        shard=shard,
        place="layer",
        tensor=f"{parent}.{_MERGED.get(module, module)}.{part}",
        module=module,
        part=part,
        fused_qkv=module in _FUSED_QKV and shard is Shard.DIVIDED,
        key_value=module in _KEY_VALUE and shard is Shard.DIVIDED,
    )


def _outside_layers(module: str, part: str) -> TensorRole:
    if module in _EMBEDDING or module == "embed_tokens_per_layer":
        return TensorRole(
            shard=Shard.VOCAB, place="embedding", tensor=module, module=module, part=part
        )
    if module in _HEAD:
        return TensorRole(
            shard=Shard.VOCAB, place="head", tensor=f"{module}.{part}", module=module, part=part
        )
    if module in ("embed_positions", "wpe"):
        return TensorRole(shard=Shard.REPLICATED, place="embedding", module=module, part=part)
    shard = Shard.DIVIDED if module == "per_layer_model_projection" else Shard.REPLICATED
    return TensorRole(shard=shard, place="head", module=module, part=part)


def _layer_shard(words: list[str], part: str) -> Shard:
    module = words[-1]
    row_bias = part == "bias" and module in _ROW_PARALLEL
    if "experts" in words:
        return Shard.REPLICATED if row_bias else Shard.EXPERTS
    if module in _REPLICATED or not _WHOLE_BLOCKS.isdisjoint(words) or "norm" in module or row_bias:
        return Shard.REPLICATED
    if part in ("weight_scale_2", "input_scale", "weight_global_scale", "input_global_scale"):
        return Shard.REPLICATED
    return Shard.DIVIDED
