"""Which kind each hidden layer is, and its heads: from `layer_types`, or the class's own rule."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from shipfitter.core.architectures import Architecture
from shipfitter.core.compressed_attention import compressed_layer
from shipfitter.core.facts import LayerFacts, LayerKind
from shipfitter.core.mixture import layer_mlp
from shipfitter.core.state_shapes import state_shape
from shipfitter.core.text_config import TextConfig
from shipfitter.errors import UnknownArchitectureError

_DSA_INDEXER_BYTES = 132  # 128 fp8 and one fp32 scale. Source: vLLM DeepseekV32IndexerCache

_KIND_OF_TYPE: Mapping[str, LayerKind] = MappingProxyType(
    {
        "full_attention": LayerKind.FULL,
        "attention": LayerKind.FULL,
        "deepseek_sparse_attention": LayerKind.FULL,
        "hybrid": LayerKind.FULL,
        "sliding_attention": LayerKind.SLIDING,
        "chunked_attention": LayerKind.CHUNKED,
        "linear_attention": LayerKind.STATE,
        "mamba": LayerKind.STATE,
        "conv": LayerKind.STATE,
        "moe": LayerKind.NONE,
        "mlp": LayerKind.NONE,
    }
)
_NEMOTRON_LETTERS: Mapping[str, LayerKind] = MappingProxyType(
    {"M": LayerKind.STATE, "*": LayerKind.FULL, "-": LayerKind.NONE, "E": LayerKind.NONE}
)


def _window(config: TextConfig, index: int) -> LayerKind:
    del index
    return LayerKind.SLIDING if config.get("sliding_window") else LayerKind.FULL


def _every(config: TextConfig, index: int, key: str, default: int, other: LayerKind) -> LayerKind:
    """Full attention on each n-th layer, `other` between."""
    period = config.get(key, default)
    if isinstance(period, str):  # EXAONE 4 spells it: LLLG
        return LayerKind.FULL if period[index % len(period)] == "G" else other
    return LayerKind.FULL if (index + 1) % int(period) == 0 else other


def _kimi_linear(config: TextConfig, index: int) -> LayerKind:
    full = (config.get("linear_attn_config") or {}).get("full_attn_layers", ())
    return LayerKind.FULL if index + 1 in full else LayerKind.STATE  # counted from one


def _jamba(config: TextConfig, index: int) -> LayerKind:
    period, offset = config.count("attn_layer_period", 8), config.count("attn_layer_offset", 4)
    return LayerKind.FULL if index % period == offset else LayerKind.STATE


def _llama4(config: TextConfig, index: int) -> LayerKind:
    if not config.get("attention_chunk_size"):
        return LayerKind.FULL
    rope = config.get("no_rope_layers")
    with_rope = bool(rope[index]) if rope else (index + 1) % 4 != 0
    return LayerKind.CHUNKED if with_rope else LayerKind.FULL


# Source: vLLM vllm/model_executor/models/<class>.py and transformers models/*/configuration_*.py.
_PATTERNS: Mapping[str, Callable[[TextConfig, int], LayerKind]] = MappingProxyType(
    {
        "full": lambda config, index: LayerKind.FULL,
        "blocks": lambda config, index: LayerKind.FULL,
        "falcon_h1": lambda config, index: LayerKind.FULL,
        "window": _window,
        "alternate": lambda config, index: LayerKind.FULL if index % 2 else LayerKind.SLIDING,
        "gemma3": lambda config, index: _every(
            config, index, "sliding_window_pattern", 6, LayerKind.SLIDING
        ),
        "gemma4": lambda config, index: _every(config, index, "none", 6, LayerKind.SLIDING),
        "cohere2": lambda config, index: _every(
            config, index, "sliding_window_pattern", 4, LayerKind.SLIDING
        ),
        "exaone4": lambda config, index: (
            _every(config, index, "sliding_window_pattern", 4, LayerKind.SLIDING)
            if config.get("sliding_window")
            else LayerKind.FULL
        ),
        "mimo_v2": lambda config, index: (
            LayerKind.SLIDING if config.get("hybrid_layer_pattern")[index] else LayerKind.FULL
        ),
        "llama4": _llama4,
        "gdn": lambda config, index: _every(
            config, index, "full_attention_interval", 4, LayerKind.STATE
        ),
        "kda": _kimi_linear,
        "jamba": _jamba,
        "mamba2": lambda config, index: LayerKind.STATE,
        "nemotron_h": lambda config, index: _NEMOTRON_LETTERS[
            config.get("hybrid_override_pattern")[index]
        ],
        "bamba": lambda config, index: (
            LayerKind.FULL if index in config.get("attn_layer_indices", ()) else LayerKind.STATE
        ),
        "lfm2": lambda config, index: (
            LayerKind.FULL if index in config.get("full_attn_idxs", ()) else LayerKind.STATE
        ),
        "minimax": lambda config, index: (
            LayerKind.FULL if config.get("attn_type_list")[index] else LayerKind.STATE
        ),
    }
)


def _kind(config: TextConfig, architecture: Architecture, index: int) -> LayerKind:
    types = config.get("layer_types")
    if types is None:
        return _PATTERNS[architecture.pattern](config, index)
    named = str(types[index])
    if named not in _KIND_OF_TYPE:
        raise UnknownArchitectureError(
            f"model {config.model}: layer {index} is of type {named!r}, whose cache is not known; "
            "pin the sizing flags in spec.engine.args"
        )
    kind = _KIND_OF_TYPE[named]
    unused_window = kind is LayerKind.SLIDING and config.get("use_sliding_window") is False
    return LayerKind.FULL if unused_window else kind


def _heads(config: TextConfig, architecture: Architecture, kind: LayerKind) -> dict[str, Any]:
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
    return {
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "head_dim": width,
        "v_head_dim": value_width,
    }


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
    kind = _kind(config, architecture, index)
    facts: dict[str, Any] = layer_mlp(config, architecture, index)
    if kind is LayerKind.STATE:
        return LayerFacts(kind=kind, state=state_shape(config, architecture), **facts)
    if kind is LayerKind.NONE:
        return LayerFacts(kind=kind, **facts)
    if architecture.attention == "mla":
        return LayerFacts(kind=LayerKind.MLA, **_latent(config, index), **facts)
    if architecture.attention == "compressed":
        return LayerFacts(**compressed_layer(config, index), **facts)
    window = 0
    if kind is LayerKind.SLIDING:
        window = config.count("sliding_window")
    if kind is LayerKind.CHUNKED:
        window = config.count("attention_chunk_size")
    beside = state_shape(config, architecture) if architecture.pattern == "falcon_h1" else None
    return LayerFacts(
        kind=LayerKind.NONE if shares else kind,
        window_tokens=window,
        state=beside,
        **_heads(config, architecture, kind),
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
