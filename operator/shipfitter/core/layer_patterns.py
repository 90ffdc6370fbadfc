"""Which kind each hidden layer is: from `layer_types`, or the class's own rule."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from shipfitter.core.architecture import Architecture
from shipfitter.core.facts import LayerKind
from shipfitter.core.text_config import TextConfig
from shipfitter.errors import UnknownArchitectureError

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


def _plamo2(config: TextConfig, index: int) -> LayerKind:
    """Source: vLLM vllm/model_executor/models/plamo2.py is_mamba."""
    step, count = config.count("mamba_step", 2), config.count("num_hidden_layers")
    if count <= step // 2:
        return LayerKind.STATE if index != count - 1 else LayerKind.FULL
    return LayerKind.STATE if index % step != step // 2 else LayerKind.FULL


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
        **dict.fromkeys(
            ("blocks", "falcon_h1", "grok", "mpt", "qwen", "step3", "nomic", "modernbert"),
            lambda config, index: LayerKind.FULL,
        ),
        "window": _window,
        "alternate": lambda config, index: LayerKind.FULL if index % 2 else LayerKind.SLIDING,
        "gemma3": lambda config, index: _every(
            config, index, "sliding_window_pattern", 6, LayerKind.SLIDING
        ),
        "gemma4": lambda config, index: _every(config, index, "none", 6, LayerKind.SLIDING),
        "gemma3n": lambda config, index: _every(config, index, "none", 5, LayerKind.SLIDING),
        "cohere2": lambda config, index: _every(
            config, index, "sliding_window_pattern", 4, LayerKind.SLIDING
        ),
        "afmoe": lambda config, index: _every(
            config, index, "global_attn_every_n_layers", 4, LayerKind.SLIDING
        ),
        "plamo3": lambda config, index: _every(
            config, index, "sliding_window_pattern", 8, LayerKind.SLIDING
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
        "zamba2": lambda config, index: (
            LayerKind.FULL if index in config.get("hybrid_layer_ids", ()) else LayerKind.STATE
        ),
        "plamo2": _plamo2,
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


def layer_kind(config: TextConfig, architecture: Architecture, index: int) -> LayerKind:
    """The kind of one layer, from `layer_types` or the class's own rule."""
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
