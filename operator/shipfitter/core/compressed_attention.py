"""DeepSeek-V4's attention: what a layer keeps, and its weights.

Each layer has a window of latent rows. Most also keep one row for every 4 or 128 tokens before it,
made by a compressor with a state of its own; layers of 4 have an indexer over those rows.

Source: vLLM 0.20 vllm/model_executor/models/deepseek_v4.py, layers/deepseek_compressor.py,
layers/deepseek_v4_attention.py.
"""

from collections.abc import Iterator
from typing import Any

from shipfitter.core.facts import LayerKind
from shipfitter.core.modules import Module, linear, plain
from shipfitter.core.text_config import TextConfig

INDEXED_RATIO = 4  # layers that compress by this much have an indexer


def compress_ratio(config: TextConfig, index: int) -> int:
    """Tokens in one compressed row of a layer; 0 where it keeps its window only."""
    ratios = config.get("compress_ratios") or ()
    ratio = int(ratios[index]) if index < len(ratios) else 0
    return ratio if ratio > 1 else 0


def compressed_layer(config: TextConfig, index: int) -> dict[str, Any]:
    """The cache side of one layer, as LayerFacts names it."""
    return {
        "kind": LayerKind.COMPRESSED,
        "num_attention_heads": config.count("num_attention_heads"),
        "num_key_value_heads": 1,
        "head_dim": config.head_dim,
        "v_head_dim": config.head_dim,
        "latent_dim": config.head_dim,
        "window_tokens": config.count("sliding_window"),
        "compress_ratio": compress_ratio(config, index),
    }


def compressed_modules(prefix: str, ratio: int, config: TextConfig) -> Iterator[Module]:
    """Projections, compressor and indexer of one layer."""
    hidden, width = config.hidden_size, config.head_dim
    heads, queries = config.count("num_attention_heads"), config.count("q_lora_rank")
    groups, outputs = config.count("o_groups"), config.count("o_lora_rank")
    yield linear(f"{prefix}.wq_a", queries, hidden)
    yield linear(f"{prefix}.wkv", width, hidden)
    yield plain(f"{prefix}.q_norm", queries)
    yield plain(f"{prefix}.kv_norm", width)
    yield linear(f"{prefix}.wq_b", heads * width, queries)
    yield linear(f"{prefix}.wo_a", groups * outputs, heads * width // groups)
    yield linear(f"{prefix}.wo_b", hidden, groups * outputs)
    yield plain(f"{prefix}.attn_sink", heads)
    if ratio:
        yield from _compressor(f"{prefix}.compressor", ratio, width, hidden)
    if ratio == INDEXED_RATIO:
        indexers, index_width = config.count("index_n_heads"), config.count("index_head_dim")
        yield linear(f"{prefix}.indexer.wq_b", indexers * index_width, queries)
        yield plain(f"{prefix}.indexer.weights_proj", indexers, hidden)
        yield from _compressor(f"{prefix}.indexer.compressor", ratio, index_width, hidden)


def _compressor(prefix: str, ratio: int, width: int, hidden: int) -> Iterator[Module]:
    """Overlapping windows, and so twice the width, where the ratio is the small one."""
    rows = width * (2 if ratio == INDEXED_RATIO else 1)
    for name in ("wkv", "wgate"):
        yield plain(f"{prefix}.{name}", rows, hidden)
    yield plain(f"{prefix}.ape", ratio, rows)
    yield plain(f"{prefix}.norm", width)


def stream_modules(prefix: str, config: TextConfig) -> Iterator[Module]:
    """The mixing of a layer's parallel residual streams, in float32."""
    streams = config.count("hc_mult", 1)
    mixed = (2 + streams) * streams
    for name in ("hc_attn_fn", "hc_ffn_fn"):
        yield plain(f"{prefix}.{name}", mixed, streams * config.hidden_size)
