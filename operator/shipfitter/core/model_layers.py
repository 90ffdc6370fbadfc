"""Every hidden layer's facts: its kind, its heads, what it keeps."""

from typing import Any

from shipfitter.core.architecture import Architecture
from shipfitter.core.compressed_attention import compressed_layer
from shipfitter.core.facts import LayerFacts, LayerKind
from shipfitter.core.layer_patterns import layer_kind
from shipfitter.core.mixture import layer_mlp
from shipfitter.core.state_shapes import state_shape
from shipfitter.core.text_config import TextConfig

_DSA_INDEXER_BYTES = 132  # 128 fp8 and one fp32 scale. Source: vLLM DeepseekV32IndexerCache


def _heads(
    config: TextConfig, architecture: Architecture, kind: LayerKind, index: int
) -> dict[str, Any]:
    """Heads and their widths, where window and full layers may differ."""
    heads = config.count("num_attention_heads")
    key_value_heads, width = config.num_key_value_heads, config.head_dim
    value_width = config.count("v_head_dim", width)
    if architecture.pattern == "gemma4" and kind is LayerKind.FULL:
        width = value_width = config.count("global_head_dim", width)
        key_value_heads = config.count("num_global_key_value_heads", key_value_heads)
    if architecture.pattern == "mimo_v2" and kind is LayerKind.SLIDING:
        heads = config.count("swa_num_attention_heads", heads)
        key_value_heads = config.count("swa_num_key_value_heads", key_value_heads)
        width = config.count("swa_head_dim", width)
        value_width = config.count("swa_v_head_dim", value_width)
    if architecture.attention == "mla_expanded":  # latents are unfolded before they are kept
        key_value_heads = heads
        width = value_width = config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim")
    return {
        "num_attention_heads": _own_heads(config, kind, index, heads),
        "num_key_value_heads": key_value_heads,
        "head_dim": width,
        "v_head_dim": value_width,
    }


def _own_heads(config: TextConfig, kind: LayerKind, index: int, heads: int) -> int:
    """Query heads of one layer, where a config tells layers apart.

    Source: vLLM vllm/model_executor/models/{laguna,step3p5}.py.
    """
    listed = config.get("num_attention_heads_per_layer")
    if listed:
        return int(listed[index])
    other = config.get("attention_other_setting") or {}
    if kind is LayerKind.SLIDING:
        named = config.get("num_sliding_attention_heads") or other.get("num_attention_heads")
        return int(named or heads)
    return heads


def _latent(config: TextConfig, index: int) -> dict[str, Any]:
    """What a multi-head latent attention layer keeps: one latent row, and an indexer's keys.

    Source: vLLM 0.33 models/deepseek_v32: an indexer where the layer does not reuse another's.
    """
    indexer = 0
    if config.get("index_topk"):
        frequency = config.count("index_topk_freq", 1)
        offset = config.count("index_skip_topk_offset", 2)
        pattern = config.get("index_topk_pattern")
        own = pattern[index] != "S" if pattern else max(index - offset + 1, 0) % frequency == 0
        indexer = _DSA_INDEXER_BYTES if own else 0
    return {
        "num_attention_heads": config.count("num_attention_heads"),
        "num_key_value_heads": 1,
        "head_dim": config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
        "v_head_dim": config.count("v_head_dim"),
        "latent_dim": config.count("kv_lora_rank") + config.count("qk_rope_head_dim"),
        "indexer_bytes_per_token": indexer,
    }


def model_layers(config: TextConfig, architecture: Architecture) -> tuple[LayerFacts, ...]:
    """Every hidden layer in order."""
    if architecture.pattern == "blocks":
        return _blocks(config)
    count = config.count("num_hidden_layers")
    shared_from = count - config.count("num_kv_shared_layers", 0)
    return tuple(_layer(config, architecture, i, shares=i >= shared_from) for i in range(count))


def _layer(
    config: TextConfig, architecture: Architecture, index: int, *, shares: bool
) -> LayerFacts:
    kind = layer_kind(config, architecture, index)
    if architecture.encoder:
        kind = LayerKind.ENCODER
    facts: dict[str, Any] = layer_mlp(config, architecture, index)
    if kind is LayerKind.STATE:
        return LayerFacts(kind=kind, state=state_shape(config, architecture), **facts)
    if kind is LayerKind.NONE:
        return LayerFacts(kind=kind, **facts)
    if architecture.attention == "mla" and kind is not LayerKind.ENCODER:
        return LayerFacts(kind=LayerKind.MLA, **_latent(config, index), **facts)
    if architecture.attention == "compressed":
        return LayerFacts(**compressed_layer(config, index), **facts)
    window = 0
    if kind is LayerKind.SLIDING:
        window = config.count("sliding_window")
    if kind is LayerKind.CHUNKED:
        window = config.count("attention_chunk_size")
    both = architecture.pattern in ("falcon_h1", "zamba2")
    beside = state_shape(config, architecture) if both else None
    return LayerFacts(
        kind=LayerKind.NONE if shares else kind,
        window_tokens=window,
        state=beside,
        **_heads(config, architecture, kind, index),
        **facts,
    )


def _blocks(config: TextConfig) -> tuple[LayerFacts, ...]:
    """Nemotron NAS: each block says its own heads per group and MLP factor, or that it has none.

    Source: vLLM vllm/model_executor/models/nemotron_nas.py _ffn_mult_to_intermediate_size.
    """
    heads, hidden = config.count("num_attention_heads"), config.hidden_size
    layers = []
    for block in config.get("block_configs", ()):
        attention, mlp = block["attention"], block["ffn"]
        facts: dict[str, Any] = {"mlp": "none"}
        if not mlp.get("no_op"):
            width = int(2 * mlp["ffn_mult"] * hidden / 3)
            facts = {"mlp": "dense", "intermediate_size": -(-width // 256) * 256}
        if attention.get("no_op"):
            layers.append(LayerFacts(kind=LayerKind.NONE, **facts))
            continue
        layers.append(
            LayerFacts(
                kind=LayerKind.FULL,
                num_attention_heads=heads,
                num_key_value_heads=heads // attention["n_heads_in_group"],
                head_dim=config.head_dim,
                v_head_dim=config.head_dim,
                **facts,
            )
        )
    return tuple(layers)
