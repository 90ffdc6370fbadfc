"""Bytes one batched token takes at the peak of the profile run's forward pass.

Each line is a sum of buffers that are alive at once in the compiled code of one kind of layer:
a compiled piece keeps its arguments until it returns, so attention outputs survive the MLP.

Source: vLLM 0.32's models and Inductor's generated code, run on meta tensors and read buffer by
buffer; public logs agree within -13 to +19 %.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.forward_eager import (
    eager_attention_elements,
    eager_dense_elements,
    eager_recurrent_elements,
)
from shipfitter.core.identity import SameModel
from shipfitter.core.model import LayerFacts, LayerKind, MlaFacts, ModelFacts, MoeFacts
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import ceil_div, round_up

# Source: vLLM vllm/model_executor/layers/quantization/mxfp4.py: Marlin pads both dimensions.
MXFP4_INTERMEDIATE_MULTIPLE = 128
MXFP4_HIDDEN_MULTIPLE = 256
FP8_SCALE_GROUP = 128  # one fp32 scale for so many quantised activations


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardShape:
    """How the forward pass grows, on one rank."""

    bytes_per_token: int
    workspace_bytes_per_token: int  # experts' workspace: stays allocated
    latent_bytes_per_token: int = 0  # the other candidate for the peak: latent attention ...
    latent_scratch_bytes_per_row: int = 0  # ... with its scratch, once per row and not per token

    def peak_bytes(self, tokens: int, latent_rows: int) -> int:
        """Transient bytes of a forward pass, the experts' workspace not included."""
        latent_bytes = (
            tokens * self.latent_bytes_per_token + latent_rows * self.latent_scratch_bytes_per_row
        )
        return max(tokens * self.bytes_per_token, latent_bytes)


@lru_cache(maxsize=1024)
def forward_shape(same: SameModel, layout: ParallelLayout, eager: bool = False) -> ForwardShape:
    """The forward pass of a model under a layout; the heaviest kind of layer decides."""
    model = same.facts
    tensor_parallel_size = layout.tensor_parallel_size
    dtype_bytes = model_dtype_bytes(model)
    kept = _kept_by_recurrent_layers(model, tensor_parallel_size)
    kinds = {
        (layer.kind, layer.mlp, layer.intermediate_size, layer.num_attention_heads): layer
        for layer in model.layers
    }
    per_token = max(
        _eager_bytes(layer, model, layout, dtype_bytes)
        if eager
        else _layer_bytes(layer, model, layout, kept, dtype_bytes)
        for layer in kinds.values()
    )
    workspace = _experts_workspace(model, model.moe, layout) * dtype_bytes if model.moe else 0
    latent, scratch = (0, 0)
    if model.mla is not None:
        latent, scratch = _latent_elements(model, model.mla, tensor_parallel_size, eager)
    return ForwardShape(
        bytes_per_token=per_token,
        workspace_bytes_per_token=workspace,
        latent_bytes_per_token=latent * dtype_bytes,
        latent_scratch_bytes_per_row=scratch * dtype_bytes,
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a recurrent layer leaves alive through the MLP that follows it."""

    projected: int  # in_proj's output: the gate is a view into it
    output: int


def _kept_by_recurrent_layers(model: ModelFacts, tensor_parallel_size: int) -> _Kept:
    states = [layer.state for layer in model.layers if layer.state is not None]
    if not states:
        return _Kept(0, 0)
    state = max(states, key=lambda one: one.in_proj_width)
    value_width = state.recurrent_heads * isqrt(state.recurrent_elements_per_head)
    return _Kept(
        ceil_div(state.in_proj_width, tensor_parallel_size),
        ceil_div(value_width, tensor_parallel_size),
    )


_ROTATES_HEADS = frozenset({LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED})


def _layer_bytes(
    layer: LayerFacts, model: ModelFacts, layout: ParallelLayout, kept: _Kept, dtype_bytes: int
) -> int:
    hidden = model.hidden_size
    attended = _attention_output(layer, layout.tensor_parallel_size)
    if layer.kind is LayerKind.STATE:
        attended = kept.projected + kept.output
    elif layer.state is not None:  # attention and Mamba side by side
        attended += kept.projected + kept.output
    if layer.mlp != "moe" or model.moe is None:
        inner = ceil_div(layer.intermediate_size, layout.tensor_parallel_size)
        return dtype_bytes * (max(3 * inner + 2 * hidden, _summed(hidden, layout)) + attended)
    shared = _shared_rows(model, model.moe) * hidden
    if layer.kind is LayerKind.STATE:
        attended = kept.projected + _widest_attention(model, layout.tensor_parallel_size)
    # DeepSeek-V4 carries several residual streams; two of the hidden rows are of them all.
    streams = 2 * (int(model.extra.get("residual_streams", 1)) - 1) * hidden
    routed = dtype_bytes * (5 * hidden + shared + attended + streams)
    if layout.tensor_parallel_size > 1:
        routed += _quantised_input_bytes(model, model.moe, layout)
    beside = dtype_bytes * (_shared_expert_elements(model, model.moe, layout) + attended)
    rotary = dtype_bytes * _rotary_elements(layer, model, layout.tensor_parallel_size)
    return max(routed, beside, rotary)


def _shared_rows(model: ModelFacts, moe: MoeFacts) -> int:
    """The shared expert's output and its sum with the others'; Llama 4 keeps the first alone."""
    if not moe.shared_expert_intermediate_size:
        return 0
    return 1 if model.architecture.startswith("Llama4") else 2


def _shared_expert_elements(model: ModelFacts, moe: MoeFacts, layout: ParallelLayout) -> int:
    """A wide shared expert: gate, up, their product, four hidden rows and the router's scores."""
    inner = ceil_div(moe.shared_expert_intermediate_size, layout.tensor_parallel_size)
    return 3 * inner + 4 * model.hidden_size + moe.num_experts if inner else 0


def _summed(hidden: int, layout: ParallelLayout) -> int:
    """Sums over the ranks are kept until the next norm adds them up: three of them, and two more.

    They outweigh a narrow MLP, and one of many ranks.
    """
    return 5 * hidden if layout.tensor_parallel_size > 1 else 0


def _eager_bytes(
    layer: LayerFacts, model: ModelFacts, layout: ParallelLayout, dtype_bytes: int
) -> int:
    ranks = layout.tensor_parallel_size
    attention = max(
        eager_attention_elements(model, layer, ranks), eager_recurrent_elements(model, layer, ranks)
    )
    if layer.mlp != "moe" or model.moe is None:
        inner = ceil_div(layer.intermediate_size, ranks)
        return dtype_bytes * max(attention, eager_dense_elements(model, inner, ranks))
    return dtype_bytes * attention


def _attention_output(layer: LayerFacts, tensor_parallel_size: int) -> int:
    width = layer.num_attention_heads * (layer.v_head_dim or layer.head_dim)
    return ceil_div(width, tensor_parallel_size)


def _widest_attention(model: ModelFacts, tensor_parallel_size: int) -> int:
    return max(
        (
            _attention_output(layer, tensor_parallel_size)
            for layer in model.layers
            if layer.kind is not LayerKind.STATE
        ),
        default=0,
    )


def _rotary_elements(layer: LayerFacts, model: ModelFacts, tensor_parallel_size: int) -> int:
    """At rotary: qkv, the query twice and its output, the keys, hidden and residual."""
    if layer.kind not in _ROTATES_HEADS:
        return 0
    keys = max(1, layer.num_key_value_heads // tensor_parallel_size) * layer.head_dim
    queries = ceil_div(layer.num_attention_heads, tensor_parallel_size) * layer.head_dim
    return (queries + 2 * keys) + 3 * queries + keys + 2 * model.hidden_size


def _expert_intermediate(moe: MoeFacts, layout: ParallelLayout) -> int:
    if layout.enable_expert_parallel:
        return moe.moe_intermediate_size
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    return ceil_div(moe.moe_intermediate_size, ranks)


def _quantised_input_bytes(model: ModelFacts, moe: MoeFacts, layout: ParallelLayout) -> int:
    """Experts of fp8 blocks also hold their 8-bit inputs, and a scale for each 128 of them."""
    if model.quantization is None or model.quantization.weight_block is None:
        return 0
    elements = moe.num_experts_per_tok * _expert_intermediate(moe, layout) + model.hidden_size
    return elements + 4 * elements // FP8_SCALE_GROUP


def _experts_workspace(model: ModelFacts, moe: MoeFacts, layout: ParallelLayout) -> int:
    """Elements per token that Triton's and Marlin's experts keep for good.

    Source: vLLM vllm/model_executor/layers/fused_moe: workspace_shapes of both; their manager
    never gives a workspace back.
    """
    inner, hidden = _expert_intermediate(moe, layout), model.hidden_size
    if model.quantization is not None and model.quantization.method == "mxfp4":
        inner = round_up(inner, MXFP4_INTERMEDIATE_MULTIPLE)
        hidden = round_up(hidden, MXFP4_HIDDEN_MULTIPLE)
    return moe.num_experts_per_tok * (max(inner, hidden) + max(2 * inner, hidden))


def _latent_elements(
    model: ModelFacts, mla: MlaFacts, tensor_parallel_size: int, eager: bool
) -> tuple[int, int]:
    """Latent attention: elements per token, and per row of the scratch made for the profile run.

    Source: vLLM vllm/v1/attention/backends/mla/common.py: without metadata it still takes the
    up-projected keys and values of a whole chunk.
    """
    heads = ceil_div(model.num_attention_heads, tensor_parallel_size)
    queries = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    latent = mla.kv_lora_rank + mla.qk_rope_head_dim
    per_token = model.hidden_size + queries + heads * mla.v_head_dim + latent
    if eager:  # the residual, and the latent before its norm
        per_token += model.hidden_size + latent
    return per_token, heads * (mla.qk_nope_head_dim + mla.v_head_dim)


# Source: vLLM vllm/v1/attention/backends/mla/common.py: the chunked-context workspace.
_MOST_LATENT_ROWS = 65536


def latent_rows(max_model_len: int, max_num_seqs: int, block_tokens: int) -> int:
    """Rows of the scratch that latent attention takes in the profile run."""
    return min(max(8 * max_model_len, 4 * max_num_seqs * block_tokens), _MOST_LATENT_ROWS)
