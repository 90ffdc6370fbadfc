"""The weights of recurrent mixers, by family."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from shipfitter.core.facts import StateShape
from shipfitter.core.modules import Module, linear, plain
from shipfitter.core.state_shapes import kda_heads, mamba1_rank, mamba2_inner_size
from shipfitter.core.text_config import TextConfig


def _gdn(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    hidden, heads = config.hidden_size, state.recurrent_heads
    values = heads * config.count("linear_value_head_dim")
    yield linear(f"{prefix}.in_proj_qkv", state.conv_channels, hidden)
    yield linear(f"{prefix}.in_proj_z", values, hidden)
    yield plain(f"{prefix}.in_proj_b", heads, hidden)  # small; builds leave both in bf16
    yield plain(f"{prefix}.in_proj_a", heads, hidden)
    yield plain(f"{prefix}.conv1d", state.conv_channels, 1, state.conv_kernel)
    yield plain(f"{prefix}.A_log", heads)
    yield plain(f"{prefix}.dt_bias", heads)
    yield plain(f"{prefix}.norm", config.count("linear_value_head_dim"))
    yield linear(f"{prefix}.out_proj", hidden, values)


def _mamba2(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    hidden, inner = config.hidden_size, mamba2_inner_size(config)
    bias = config.flag("use_bias") or config.flag("mamba_proj_bias")
    yield linear(f"{prefix}.in_proj", state.in_proj_width, hidden, bias=bias)
    has_conv_bias = config.flag("use_conv_bias", default=config.flag("mamba_conv_bias", True))
    conv_bias = (state.conv_channels,) if has_conv_bias else ()
    yield Module(
        path=f"{prefix}.conv1d",
        shape=(state.conv_channels, 1, state.conv_kernel),
        bias_shape=conv_bias,
    )
    for name in ("A_log", "D", "dt_bias"):
        yield plain(f"{prefix}.{name}", state.recurrent_heads)
    if config.flag("mamba_rms_norm", default=config.model_type != "falcon_h1"):
        yield plain(f"{prefix}.norm", inner)
    yield linear(f"{prefix}.out_proj", hidden, inner, bias=bias)


def _mamba1(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    hidden, inner = config.hidden_size, state.recurrent_heads
    size, rank = state.recurrent_elements_per_head, mamba1_rank(config)
    bias = config.flag("use_bias") or config.flag("mamba_proj_bias")
    yield linear(f"{prefix}.in_proj", 2 * inner, hidden, bias=bias)
    yield Module(path=f"{prefix}.conv1d", shape=(inner, 1, state.conv_kernel), bias_shape=(inner,))
    yield linear(f"{prefix}.x_proj", rank + 2 * size, inner)
    yield linear(f"{prefix}.dt_proj", inner, rank, bias=True)
    yield plain(f"{prefix}.A_log", inner, size)
    yield plain(f"{prefix}.D", inner)
    if config.model_type == "jamba":
        for name, width in (("dt", rank), ("b", size), ("c", size)):
            yield plain(f"{prefix}.{name}_layernorm", width)
    yield linear(f"{prefix}.out_proj", hidden, inner, bias=bias)


def _plamo2(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    """Source: vLLM vllm/model_executor/models/plamo2.py Plamo2MambaMixer."""
    hidden, inner, heads = config.hidden_size, state.conv_channels, state.recurrent_heads
    size = state.recurrent_elements_per_head // config.head_dim
    rank = max(64, hidden // 16)
    yield linear(f"{prefix}.in_proj", 2 * inner, hidden)
    yield plain(f"{prefix}.conv1d", inner, 1, state.conv_kernel)
    yield linear(f"{prefix}.bcdt_proj", rank + 2 * size, inner)
    yield linear(f"{prefix}.dt_proj", heads, rank)
    for name in ("A_log", "D", "dt_bias"):
        yield plain(f"{prefix}.{name}", heads)
    yield plain(f"{prefix}.dt_norm", rank + 2 * size)
    yield linear(f"{prefix}.out_proj", hidden, inner)


def _kda(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    heads, width, kernel = kda_heads(config)
    hidden, inner = config.hidden_size, heads * width
    for name in ("q", "k", "v"):
        yield linear(f"{prefix}.{name}_proj", inner, hidden)
        yield plain(f"{prefix}.{name}_conv1d", inner, 1, kernel)
    yield plain(f"{prefix}.A_log", state.recurrent_heads)
    yield plain(f"{prefix}.dt_bias", inner)
    yield linear(f"{prefix}.f_a_proj", width, hidden)
    yield linear(f"{prefix}.f_b_proj", inner, width)
    yield linear(f"{prefix}.b_proj", heads, hidden)
    if (config.get("linear_attn_config") or {}).get("use_full_rank_gate"):
        yield linear(f"{prefix}.g_proj", inner, hidden)
    else:
        yield linear(f"{prefix}.g_a_proj", width, hidden)
        yield linear(f"{prefix}.g_b_proj", inner, width)
    yield plain(f"{prefix}.o_norm", width)
    yield linear(f"{prefix}.o_proj", hidden, inner)


def _linear_attention(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    hidden, inner = config.hidden_size, state.recurrent_heads * config.head_dim
    yield linear(f"{prefix}.qkv_proj", 3 * inner, hidden)
    yield linear(f"{prefix}.output_gate", inner, hidden)
    yield linear(f"{prefix}.out_proj", hidden, inner)
    yield plain(f"{prefix}.norm", inner)


def _short_conv(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    width = state.conv_channels
    yield linear(f"{prefix}.in_proj", 3 * width, config.hidden_size)
    yield plain(f"{prefix}.conv", width, 1, state.conv_kernel)
    yield linear(f"{prefix}.out_proj", config.hidden_size, width)


# The mixer's name in the checkpoint, and its weights.
# Source: transformers models/{qwen3_5,nemotron_h,bamba,falcon_h1,jamba,lfm2,minimax}/modeling_*.py
# and vLLM vllm/model_executor/models/kimi_linear.py.
_MIXERS: Mapping[str, tuple[str, Callable[[str, StateShape, TextConfig], Iterator[Module]]]] = (
    MappingProxyType(
        {
            "gdn": ("linear_attn", _gdn),
            "mamba2": ("mamba", _mamba2),
            "mamba1": ("mamba", _mamba1),
            "plamo2": ("mixer", _plamo2),
            "kda": ("self_attn", _kda),
            "flash_kda": ("self_attn", _kda),
            "linear": ("self_attn", _linear_attention),
            "short_conv": ("conv", _short_conv),
        }
    )
)


def mixer_modules(prefix: str, state: StateShape, config: TextConfig) -> Iterator[Module]:
    """The weights of one recurrent mixer under a layer's path."""
    name, build = _MIXERS[state.family]
    mixer = "mixer" if config.model_type == "nemotron_h" else name
    yield from build(f"{prefix}.{mixer}", state, config)
