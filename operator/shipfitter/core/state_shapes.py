"""Recurrent state of one layer, by family. Shapes are over all ranks, in elements."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from shipfitter.core.architecture import Architecture
from shipfitter.core.facts import StateShape
from shipfitter.core.text_config import TextConfig


def _dtype_bytes(config: TextConfig, default: int) -> int:
    """The recurrent part's dtype where the config names one; the convolution keeps the model's."""
    stated = config.get("mamba_ssm_cache_dtype") or config.get("mamba_ssm_dtype")
    return default if stated is None else 4 if "32" in str(stated) else 2


def _first(config: TextConfig, *keys: str) -> int | None:
    """The first of several keys that the config has."""
    found = next((config.get(key) for key in keys if config.get(key)), None)
    return None if found is None else int(found)


def mamba2_inner_size(config: TextConfig) -> int:
    """Channels of the Mamba-2 mixer: heads times their width."""
    if config.get("mamba_d_ssm"):
        return config.count("mamba_d_ssm")
    heads, width = mamba2_heads(config)
    return heads * width


def mamba2_heads(config: TextConfig) -> tuple[int, int]:
    """Heads of the Mamba-2 mixer and the width of each."""
    alone = ("num_heads", "head_dim") if config.model_type == "mamba2" else ()
    heads = _first(config, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", *alone[:1])
    width = _first(config, "mamba_head_dim", "mamba_d_head", "mamba_headdim", *alone[1:])
    if config.model_type == "plamo2":
        width = config.head_dim
    if heads and width:
        return heads, width
    inner = config.count("mamba_expand", 2) * config.hidden_size
    heads = heads or 128
    return heads, inner // heads


def mamba2_groups(config: TextConfig) -> tuple[int, int]:
    """Groups sharing B and C, and the state size of each."""
    groups = _first(config, "n_groups", "mamba_n_groups", "mamba_ngroups") or 1
    state = _first(config, "ssm_state_size", "mamba_d_state", "state_size") or 128
    return groups, state


def _mamba2(config: TextConfig) -> StateShape:
    heads, width = mamba2_heads(config)
    groups, state = mamba2_groups(config)
    inner = mamba2_inner_size(config)
    kernel = _first(config, "conv_kernel", "mamba_d_conv") or 4
    default_bytes = 4 if config.model_type == "nemotron_h" else 2
    return StateShape(
        family="mamba2",
        conv_channels=inner + 2 * groups * state,
        conv_kernel=kernel,
        recurrent_heads=heads,
        recurrent_elements_per_head=width * state,
        n_groups=groups,
        group_state_size=state,
        recurrent_dtype_bytes=_dtype_bytes(config, default_bytes),
        in_proj_width=2 * inner + 2 * groups * state + heads,
    )


def mamba1_inner_size(config: TextConfig) -> int:
    """Channels of the Mamba mixer."""
    alone = config.model_type in ("mamba", "falcon_mamba")
    expanded = config.count("mamba_expand", config.count("expand", 2)) * config.hidden_size
    return config.count("intermediate_size", expanded) if alone else expanded


def mamba1_rank(config: TextConfig) -> int:
    """Width of the step size before it is projected."""
    rank = _first(config, "mamba_dt_rank", "time_step_rank")
    return rank or -(-config.hidden_size // 16)


def _mamba1(config: TextConfig) -> StateShape:
    inner = mamba1_inner_size(config)
    return StateShape(
        family="mamba1",
        conv_channels=inner,
        conv_kernel=_first(config, "mamba_d_conv", "conv_kernel") or 4,
        recurrent_heads=inner,
        recurrent_elements_per_head=_first(config, "mamba_d_state", "state_size") or 16,
        recurrent_dtype_bytes=_dtype_bytes(config, 2),
        in_proj_width=2 * inner,
    )


def _plamo2(config: TextConfig) -> StateShape:
    heads, width = mamba2_heads(config)
    _, state = mamba2_groups(config)
    return StateShape(
        family="plamo2",
        conv_channels=heads * width,
        conv_kernel=_first(config, "mamba_d_conv") or 4,
        recurrent_heads=heads,
        recurrent_elements_per_head=width * state,
        recurrent_dtype_bytes=_dtype_bytes(config, 2),
        in_proj_width=2 * heads * width,
    )


def _gdn(config: TextConfig) -> StateShape:
    key_heads = config.count("linear_num_key_heads")
    key_width = config.count("linear_key_head_dim")
    value_heads = config.count("linear_num_value_heads")
    value_width = config.count("linear_value_head_dim")
    convolved = 2 * key_heads * key_width + value_heads * value_width
    return StateShape(
        family="gdn",
        conv_channels=convolved,
        conv_kernel=config.count("linear_conv_kernel_dim", 4),
        recurrent_heads=value_heads,
        recurrent_elements_per_head=value_width * key_width,
        recurrent_dtype_bytes=_dtype_bytes(config, 2),
        in_proj_width=convolved + value_heads * value_width + 2 * value_heads,
    )


def kda_heads(config: TextConfig) -> tuple[int, int, int]:
    """Heads, their width, and the convolution kernel of Kimi delta attention."""
    nested = config.get("linear_attn_config") or {}
    heads = nested.get("num_heads") or config.count("linear_num_heads")
    width = nested.get("head_dim") or config.count("linear_head_dim")
    kernel = nested.get("short_conv_kernel_size") or config.count("linear_conv_kernel_dim", 4)
    return int(heads), int(width), int(kernel)


def _kda(config: TextConfig) -> StateShape:
    heads, width, kernel = kda_heads(config)
    # A gate with a bound is what the FlashKDA kernel needs; it exports states while it prefills.
    # Source: vLLM vllm/model_executor/layers/mamba/kda_checkpoint.py, models/kimi_k3.
    bounded = (config.get("linear_attn_config") or {}).get("gate_lower_bound") is not None
    return StateShape(
        family="flash_kda" if bounded else "kda",
        conv_channels=3 * heads * width,
        conv_kernel=kernel,
        recurrent_heads=heads,
        recurrent_elements_per_head=width * width,
        recurrent_dtype_bytes=4,
        in_proj_width=3 * heads * width,
    )


def _linear(config: TextConfig) -> StateShape:
    heads, width = config.count("num_attention_heads"), config.head_dim
    return StateShape(
        family="linear",
        conv_channels=0,
        conv_kernel=1,
        recurrent_heads=heads,
        recurrent_elements_per_head=width * width,
        recurrent_dtype_bytes=4,
        in_proj_width=4 * heads * width,
    )


def _short_conv(config: TextConfig) -> StateShape:
    width = config.count("conv_dim", config.hidden_size)
    return StateShape(
        family="short_conv",
        conv_channels=width,
        conv_kernel=config.count("conv_L_cache", 3),
        recurrent_heads=0,
        recurrent_elements_per_head=0,
        in_proj_width=3 * width,
    )


# Source: vLLM 0.32 vllm/model_executor/layers/mamba/mamba_utils.py MambaStateShapeCalculator and
# MambaStateDtypeCalculator.
_FAMILIES: Mapping[str, Callable[[TextConfig], StateShape]] = MappingProxyType(
    {
        "mamba1": _mamba1,
        "mamba2": _mamba2,
        "nemotron_h": _mamba2,
        "falcon_h1": _mamba2,
        "plamo2": _plamo2,
        "gdn": _gdn,
        "kda": _kda,
        "linear": _linear,
        "short_conv": _short_conv,
    }
)


def state_shape(config: TextConfig, architecture: Architecture) -> StateShape:
    """The state of one recurrent layer of this class."""
    return _FAMILIES[architecture.own_layer](config)
