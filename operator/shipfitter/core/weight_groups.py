"""Tensors of a checkpoint to the groups of bytes the engine holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from shipfitter.core.facts import (
    LayerFacts,
    LayerKind,
    Shard,
    StateShape,
    TensorHeader,
    WeightGroup,
)
from shipfitter.core.tensors import TensorRole, tensor_role
from shipfitter.units import MIB, round_up

_VOCABULARY_MULTIPLE = 64  # Source: vLLM vocab_parallel_embedding.py DEFAULT_VOCAB_PADDING_SIZE
_ELEMENT_BYTES = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4"), 1),
    **dict.fromkeys(("BF16", "F16", "I16", "U16"), 2),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F64", "I64", "U64"), 8),
}
_FLOATS = frozenset(("BF16", "F16", "F32", "F64"))
_MODEL_DTYPE_BYTES = 2  # Source: vLLM vllm/config/model.py: float32 is cast down on every GPU
_NAMED_FROM_BYTES = 8 * MIB  # below the allocator's large blocks, padding included
# Kept in float32 whatever the model's dtype. Source: vLLM mamba mixers and fused MoE routers.
_FLOAT32 = frozenset(("A_log", "e_score_correction", "hc_attn_fn", "hc_ffn_fn", "ape", "attn_sink"))

_AUDIO = frozenset(("audio_tower", "embed_audio"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRules:
    """What the config adds to the names: how quantised parts are kept after loading."""

    layers: tuple[LayerFacts, ...]
    ties_embeddings: bool
    tower_divided: bool = True
    without_audio: bool = False  # an audio tower in the file is left out
    keeps_zero_points: bool = True  # symmetric GPTQ drops them when it repacks
    keeps_group_index: bool = False  # only with activation order
    float32_scales: bool = False  # per-channel and per-block scales of 8-bit weights
    expert_pad: tuple[int, int] = (1, 1)  # (intermediate, hidden) multiples
    expert_sizes: tuple[int, int] = (0, 0)  # (intermediate, hidden) before padding


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTensor:
    """One stored tensor, and the groups of what the engine keeps of it (none: not loaded)."""

    stored_bytes: int
    quantised: bool
    groups: tuple[WeightGroup, ...]


def stored_bytes(header: TensorHeader) -> int:
    """Bytes of a tensor in the file."""
    return prod(header.shape) * _ELEMENT_BYTES[header.dtype]


def load(headers: Iterable[TensorHeader], rules: LoadRules) -> tuple[LoadedTensor, ...]:
    """Each stored tensor with what it becomes."""
    return tuple(_load(header, rules) for header in headers)


def merge(groups: Iterable[WeightGroup]) -> tuple[WeightGroup, ...]:
    """Groups that share everything but bytes become one; the order of tensors does not matter.

    Small tensors lose their name: only a big allocation is rounded up noticeably.
    """
    groups = tuple(groups)
    tensors: dict[str, int] = {}
    for group in groups:
        tensors[group.tensor] = tensors.get(group.tensor, 0) + group.loaded_bytes
    sums: dict[tuple[Shard, str, int, int, str, int, int, bool], int] = {}
    for group in groups:
        key = (
            group.shard,
            group.place,
            group.layer,
            group.kv_heads,
            group.tensor if tensors[group.tensor] >= _NAMED_FROM_BYTES else "",
            group.padded_size,
            group.padded_multiple,
            group.unpacked,
        )
        sums[key] = sums.get(key, 0) + group.loaded_bytes
    return tuple(
        WeightGroup(
            shard=key[0],
            place=key[1],
            layer=key[2],
            kv_heads=key[3],
            tensor=key[4],
            padded_size=key[5],
            padded_multiple=key[6],
            unpacked=key[7],
            loaded_bytes=size,
        )
        for key, size in sorted(sums.items())
        if size
    )


def _load(header: TensorHeader, rules: LoadRules) -> LoadedTensor:
    role = tensor_role(header.name, num_hidden_layers=len(rules.layers))
    size = stored_bytes(header)
    quantised = header.dtype not in _FLOATS
    loaded = role is not None and _is_loaded(role, rules) and not _is_left_out(header.name, rules)
    groups = _groups(header, role, rules) if role is not None and loaded else ()
    return LoadedTensor(stored_bytes=size, quantised=quantised, groups=groups)


def _is_loaded(role: TensorRole, rules: LoadRules) -> bool:
    if role.part == "qzeros":
        return rules.keeps_zero_points
    if role.part in ("g_idx", "weight_g_idx"):
        return rules.keeps_group_index
    shares_cache = role.place == "layer" and rules.layers[role.layer].kind is LayerKind.NONE
    if shares_cache and rules.layers[role.layer].num_attention_heads and _is_of_keys(role):
        return False
    tied_head = role.place == "head" and role.shard is Shard.VOCAB and rules.ties_embeddings
    return not tied_head


def _is_of_keys(role: TensorRole) -> bool:
    """Keys and values: layers that read another's cache have none, though files may (Gemma 4).

    Source: vLLM vllm/model_executor/models/gemma4.py _gemma4_layer_weights_mapper.
    """
    return role.key_value or role.module == "k_norm"


def _is_left_out(name: str, rules: LoadRules) -> bool:
    return rules.without_audio and not _AUDIO.isdisjoint(name.split("."))


def _loaded_bytes(header: TensorHeader, role: TensorRole, rules: LoadRules) -> int:
    count = prod(header.shape)
    if header.dtype not in _FLOATS:
        return count * _ELEMENT_BYTES[header.dtype]
    if role.module in _FLOAT32:
        return count * 4
    if rules.float32_scales and role.part in ("weight_scale", "weight_scale_inv"):
        return count * 4
    return count * _MODEL_DTYPE_BYTES


def _groups(header: TensorHeader, role: TensorRole, rules: LoadRules) -> tuple[WeightGroup, ...]:
    size = _loaded_bytes(header, role, rules)
    if role.shard is Shard.VOCAB:
        rows = header.shape[0]
        size = size // rows * round_up(rows, _VOCABULARY_MULTIPLE)
    if role.shard is Shard.EXPERTS:
        return (_expert_group(size, role, rules),)
    shard = role.shard
    if shard is Shard.TOWER and not rules.tower_divided:
        shard = Shard.REPLICATED
    if role.place != "layer":
        return (_group(shard, size, role),)
    layer = rules.layers[role.layer]
    replicable, heads = _replicable_bytes(size, role, layer)
    if not replicable:
        return (_group(shard, size, role),)
    parts = (
        _group(Shard.KV_HEADS, replicable, role, kv_heads=heads),
        _group(shard, size - replicable, role),
    )
    return tuple(part for part in parts if part.loaded_bytes)


def _replicable_bytes(size: int, role: TensorRole, layer: LayerFacts) -> tuple[int, int]:
    """Bytes that ranks beyond a number of heads (or groups) repeat, and that number."""
    attention = layer.kind not in (LayerKind.STATE, LayerKind.MLA)
    heads = layer.num_key_value_heads
    if attention and role.key_value:
        return size, heads
    if attention and role.fused_qkv and layer.num_attention_heads:
        return size * 2 * heads // (layer.num_attention_heads + 2 * heads), heads
    state = layer.state
    if state is not None and state.n_groups and role.module in ("in_proj", "conv1d"):
        return size * _group_share(state, role.module) // 1000, state.n_groups
    return 0, 0


def _group_share(state: StateShape, module: str) -> int:
    """Thousandths of a Mamba-2 projection that belong to B and C."""
    shared = 2 * state.n_groups * state.group_state_size
    return 1000 * shared // (state.conv_channels if module == "conv1d" else state.in_proj_width)


def _group(shard: Shard, size: int, role: TensorRole, *, kv_heads: int = 0) -> WeightGroup:
    return WeightGroup(
        shard=shard,
        loaded_bytes=size,
        place=role.place,
        layer=role.layer,
        kv_heads=kv_heads,
        tensor=role.tensor,
    )


def _expert_group(size: int, role: TensorRole, rules: LoadRules) -> WeightGroup:
    """Experts; where a kernel pads them, the hidden side here, the rank's own side per layout."""
    multiple, hidden_multiple = rules.expert_pad
    intermediate, hidden = rules.expert_sizes
    if hidden_multiple > 1 and role.part != "bias":
        size = size * round_up(hidden, hidden_multiple) // hidden
    return WeightGroup(
        shard=Shard.EXPERTS,
        loaded_bytes=size,
        place=role.place,
        layer=role.layer,
        tensor=role.tensor,
        padded_size=intermediate if multiple > 1 else 0,
        padded_multiple=multiple,
    )
