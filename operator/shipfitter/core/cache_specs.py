"""What each layer keeps: bytes of a page, tokens in it, and which layers may share a group."""

from dataclasses import dataclass, replace
from math import lcm
from typing import NamedTuple

from shipfitter.core.cache_dtype import (
    SPARSE_ROW_BYTES,
    cache_dtype_for,
    head_scale_bytes,
    model_dtype_bytes,
    side_bytes,
)
from shipfitter.core.defaults import LISTED_FOR_PREFIX_CACHING
from shipfitter.core.model import LayerFacts, LayerKind, ModelFacts, StateShape
from shipfitter.core.releases import rules_for
from shipfitter.core.rules import EngineRules
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion
from shipfitter.errors import UnknownArchitectureError
from shipfitter.units import ceil_div, round_up

# Source: vLLM vllm/v1/attention/backends/mla/indexer.py: 128 fp8 elements and one fp32 scale.
INDEXER_BYTES = 132
_DRAFTING = frozenset(
    {LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.MLA, LayerKind.COMPRESSED}
)
ATTENTION = frozenset({LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.MLA})
# Source: vLLM vllm/model_executor/models/config.py MambaModelConfig, when config.json is silent.
STATE_CHUNK_TOKENS = 256
_PADS_LATENT_TO = 128  # bytes; engines around 0.7 kept latent rows of 640 elements
_PADDED_LATENT = (EngineVersion(0, 7, 2), EngineVersion(0, 8, 0))
_HYBRID_IN_PLATFORM = EngineVersion(0, 20, 0)


_RECURRENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}  # --mamba-ssm-cache-dtype


class CacheKey(NamedTuple):
    """All that a layer's pages depend on besides the model."""

    version: EngineVersion
    tensor_parallel_size: int
    pipeline_parallel_size: int
    cache_dtype: str  # as asked
    block_tokens: int
    caches_prefixes: bool
    num_speculative_tokens: int
    decode_context_parallel_size: int
    hybrid_manager: bool
    compute_capability: tuple[int, int] | None
    recurrent_dtype: str = "auto"
    drafts_with_own_layers: bool = False
    pipeline_partition: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpec:
    """One layer's cache on one rank."""

    index: int  # position in the model; drafter layers come after the last
    kind: LayerKind
    block_tokens: int
    page_bytes: int
    window_tokens: int = 0
    shape: tuple[object, ...] = ()  # heads, dims, dtype: layers that differ cannot merge

    @property
    def merge_key(self) -> tuple[object, ...]:
        """Equal for layers that may share a group."""
        return (self.kind, self.block_tokens, self.page_bytes, self.window_tokens, self.shape)


def layer_specs(model: ModelFacts, key: CacheKey) -> tuple[LayerSpec, ...]:
    """The cache of every layer that has one, drafter layers included, in layer order.

    Source: vLLM vllm/v1/kv_cache_interface.py.
    """
    rules = rules_for(key.version)
    dtype = cache_dtype_for(model, key.cache_dtype, key.version, key.compute_capability)
    layers = model.layers + drafter_layers(model, own_layers=key.drafts_with_own_layers)
    per_token = {
        index: _token_bytes(layer, model, key, dtype)
        for index, layer in enumerate(layers)
        if layer.kind in ATTENTION or layer.kind is LayerKind.CROSS
    }
    states = {
        index: state_bytes(layer.state, model, key)
        for index, layer in enumerate(layers)
        if layer.state is not None
    }
    block_tokens, state_page = key.block_tokens, max(states.values(), default=0)
    if states and per_token:
        block_tokens = _hybrid_block(model, key, rules, state_page, max(per_token.values()))
        state_page = block_tokens * max(per_token.values())
    specs = []
    for index, layer in enumerate(layers):
        if index in per_token:
            specs.append(_attention(index, layer, block_tokens, per_token[index]))
        if index in states:  # Falcon-H1 keeps a state beside its attention cache
            specs.append(
                LayerSpec(
                    index=index,
                    kind=LayerKind.STATE,
                    block_tokens=block_tokens,
                    page_bytes=state_page,
                    shape=(layer.state,),
                )
            )
    return tuple(specs)


def drafter_layers(model: ModelFacts, *, own_layers: bool) -> tuple[LayerFacts, ...]:
    """The layers that draft: the checkpoint's own, of the last kind of attention, or a drafter's.

    Source: vLLM vllm/v1/spec_decode: an MTP layer joins the cache as one more attention layer, and
    so do the layers of a separate drafter.
    """
    separate: tuple[LayerFacts, ...] = tuple(model.extra.get("drafter_layers", ()))
    count = int(model.extra.get("num_mtp_layers", 0)) if own_layers else 0
    attention = [layer for layer in model.layers if layer.kind in _DRAFTING]
    if not count or not attention or separate:
        return separate
    return (replace(attention[-1], compress_ratio=0),) * count


def _attention(index: int, layer: LayerFacts, block_tokens: int, token_bytes: int) -> LayerSpec:
    windowed = layer.kind in (LayerKind.SLIDING, LayerKind.CHUNKED)
    return LayerSpec(
        index=index,
        kind=layer.kind,
        block_tokens=block_tokens,
        page_bytes=block_tokens * token_bytes,
        window_tokens=layer.window_tokens if windowed else 0,
        shape=(layer.num_key_value_heads, layer.head_dim, layer.v_head_dim, layer.latent_dim),
    )


def _token_bytes(layer: LayerFacts, model: ModelFacts, key: CacheKey, dtype: str) -> int:
    """Bytes one token takes in one layer on one rank."""
    if layer.kind is LayerKind.MLA:
        return _latent_bytes(layer, model, key, dtype)
    heads = max(1, layer.num_key_value_heads // key.tensor_parallel_size)
    values = layer.v_head_dim or layer.head_dim
    one_head = side_bytes(layer.head_dim, dtype, model) + side_bytes(values, dtype, model)
    return heads * (one_head + head_scale_bytes(dtype))


def _latent_bytes(layer: LayerFacts, model: ModelFacts, key: CacheKey, dtype: str) -> int:
    """One latent row, the same on every tensor-parallel rank, and the indexer's keys beside it."""
    row_bytes = SPARSE_ROW_BYTES.get(dtype)
    if row_bytes is None:
        elements = layer.latent_dim
        if _PADDED_LATENT[0] <= key.version < _PADDED_LATENT[1]:
            elements = round_up(elements, _PADS_LATENT_TO)
        row_bytes = side_bytes(elements, dtype, model)
    indexer_bytes = layer.indexer_bytes_per_token
    if rules_for(key.version).indexer_on_every_layer and traits_of(model).is_sparse:
        indexer_bytes = INDEXER_BYTES
    return row_bytes + indexer_bytes


def state_bytes(state: StateShape | None, model: ModelFacts, key: CacheKey) -> int:
    """Bytes of one layer's convolution and recurrent state on one rank.

    Source: vLLM vllm/model_executor/layers/mamba/mamba_utils.py. The convolution keeps the draft
    tokens too, except in the two families that cannot draft.
    """
    if state is None:
        raise UnknownArchitectureError(
            f"{model.name}: recurrent layers without a state shape; give the model's config.json"
        )
    tensor_parallel_size = key.tensor_parallel_size
    channels = state.conv_channels
    if state.n_groups and tensor_parallel_size > 1 and state.n_groups % tensor_parallel_size:
        groups = round_up(state.n_groups, tensor_parallel_size)
        channels += 2 * (groups - state.n_groups) * state.group_state_size
    drafts = 0 if state.family in ("mamba1", "short_conv") else key.num_speculative_tokens
    depth = max(0, state.conv_kernel - 1 + drafts) if channels else 0
    conv_bytes = ceil_div(channels, tensor_parallel_size) * depth * model_dtype_bytes(model)
    heads = ceil_div(state.recurrent_heads, tensor_parallel_size)
    element_bytes = _RECURRENT_BYTES.get(key.recurrent_dtype, state.recurrent_dtype_bytes)
    return conv_bytes + heads * state.recurrent_elements_per_head * element_bytes


def _hybrid_block(
    model: ModelFacts, key: CacheKey, rules: EngineRules, state_page: int, token_bytes: int
) -> int:
    """Tokens of an attention block made large enough for one state.

    Source: vLLM vllm/platforms/interface.py _align_hybrid_block_size; up to 0.19
    vllm/model_executor/models/config.py HybridAttentionMambaModelConfig.
    """
    align = _hybrid_alignment(model, key, rules)
    if keeps_state_per_block(model, key):
        chunk = lcm(int(model.extra.get("mamba_chunk_size", STATE_CHUNK_TOKENS)), align)
        return round_up(ceil_div(state_page, token_bytes), chunk)
    return max(align * ceil_div(state_page, align * token_bytes), key.block_tokens)


def _hybrid_alignment(model: ModelFacts, key: CacheKey, rules: EngineRules) -> int:
    attention = [layer for layer in model.layers if layer.kind in ATTENTION]
    blackwell = key.compute_capability is not None and key.compute_capability[0] == 10
    if any(layer.kind is LayerKind.MLA for layer in attention):
        kernel_block = 128 if blackwell else rules.hybrid_kernel_block_mla
    elif blackwell and key.version < _HYBRID_IN_PLATFORM and attention[0].head_dim == 256:
        kernel_block = 32
    else:
        kernel_block = rules.hybrid_kernel_block
    align = max(kernel_block, key.block_tokens if key.version >= _HYBRID_IN_PLATFORM else 0)
    if rules.state_blocks_of_64 and key.caches_prefixes and prefills_gdn_in_flashinfer(model, key):
        align = lcm(align, 64)
    return align


def prefills_gdn_in_flashinfer(model: ModelFacts, key: CacheKey) -> bool:
    """True where FlashInfer's gated-delta-net kernel runs: compute capability 9.0 and newer.

    Assumed: CUDA 13 images on 10.x and 12.x; key heads of 128, which every such model has.
    """
    if key.compute_capability is None or key.compute_capability < (9, 0):
        return False
    return "gdn" in traits_of(model).state_families


def keeps_state_per_block(model: ModelFacts, key: CacheKey) -> bool:
    """True in the mode that keeps one state for every block (classes that are listed, to 0.27)."""
    return (
        key.caches_prefixes
        and EngineVersion(0, 12, 0) <= key.version < EngineVersion(0, 28, 0)
        and model.architecture in LISTED_FOR_PREFIX_CACHING
    )
