"""Tensors of one layer's attention, by kind."""

from collections.abc import Iterator, Mapping
from typing import Any

from world.hub.stored_linears import Linear

Piece = Linear | tuple[str, tuple[int, ...]]


def grouped(
    prefix: str,
    text: Mapping[str, Any],
    *,
    qk_norm: bool = False,
    bias: bool = False,
    output_bias: bool = False,
    gated: bool = False,
) -> Iterator[Piece]:
    """Query, key, value and output projection; a gated query is twice as wide."""
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    kv_heads = text.get("num_key_value_heads") or heads
    head_dim = text.get("head_dim") or hidden // heads
    name = f"{prefix}self_attn."
    yield Linear(f"{name}q_proj", heads * head_dim * (2 if gated else 1), hidden, bias)
    yield Linear(f"{name}k_proj", kv_heads * head_dim, hidden, bias)
    yield Linear(f"{name}v_proj", kv_heads * head_dim, hidden, bias)
    yield Linear(f"{name}o_proj", hidden, heads * head_dim, output_bias)
    if qk_norm:
        yield f"{name}q_norm.weight", (head_dim,)
        yield f"{name}k_norm.weight", (head_dim,)


def latent(prefix: str, text: Mapping[str, Any]) -> Iterator[Piece]:
    """Multi-head latent attention as DeepSeek stores it."""
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    nope, rope, value = (
        text["qk_nope_head_dim"],
        text["qk_rope_head_dim"],
        text["v_head_dim"],
    )
    rank, query_rank = text["kv_lora_rank"], text.get("q_lora_rank")
    name = f"{prefix}self_attn."
    if query_rank:
        yield Linear(f"{name}q_a_proj", query_rank, hidden)
        yield f"{name}q_a_layernorm.weight", (query_rank,)
        yield Linear(f"{name}q_b_proj", heads * (nope + rope), query_rank)
    else:
        yield Linear(f"{name}q_proj", heads * (nope + rope), hidden)
    yield Linear(f"{name}kv_a_proj_with_mqa", rank + rope, hidden)
    yield f"{name}kv_a_layernorm.weight", (rank,)
    yield Linear(f"{name}kv_b_proj", heads * (nope + value), rank)
    yield Linear(f"{name}o_proj", hidden, heads * value)


def gated_delta(prefix: str, text: Mapping[str, Any]) -> Iterator[Piece]:
    """Gated DeltaNet as Qwen3-Next stores it."""
    hidden, kernel = text["hidden_size"], text["linear_conv_kernel_dim"]
    key_width = text["linear_key_head_dim"] * text["linear_num_key_heads"]
    value_heads, value_dim = text["linear_num_value_heads"], text["linear_value_head_dim"]
    value_width = value_heads * value_dim
    name = f"{prefix}linear_attn."
    yield Linear(f"{name}in_proj_qkvz", 2 * key_width + 2 * value_width, hidden)
    yield Linear(f"{name}in_proj_ba", 2 * value_heads, hidden)
    yield f"{name}conv1d.weight", (2 * key_width + value_width, 1, kernel)
    yield f"{name}A_log", (value_heads,)
    yield f"{name}dt_bias", (value_heads,)
    yield f"{name}norm.weight", (value_dim,)
    yield Linear(f"{name}out_proj", hidden, value_width)
