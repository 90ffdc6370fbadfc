"""Layers that keep a recurrent state: which they are and how large.

Source: vLLM 0.33 vllm/model_executor/layers/mamba/mamba_utils.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class State:
    """Elements over all ranks; the recurrent part may be fp32."""

    conv: int
    recurrent: int
    recurrent_bytes: int | None = None  # None: the model's dtype

    def bytes_on_rank(self, ranks: int, model_bytes: int) -> int:
        recurrent_bytes = self.recurrent_bytes or model_bytes
        return self.conv // ranks * model_bytes + self.recurrent // ranks * recurrent_bytes


def state_kinds(text: Mapping[str, Any], number: int) -> list[str] | None:
    """Kinds of all layers of a model with states; None for any other."""
    if pattern := text.get("hybrid_override_pattern"):
        return [{"M": "mamba", "*": "full"}.get(letter, "none") for letter in pattern]
    if linear := text.get("linear_attn_config"):
        full = set(linear["full_attn_layers"])
        kind = "mla" if text.get("kv_lora_rank") else "full"
        return [kind if index + 1 in full else "mamba" for index in range(number)]
    if text.get("full_attention_interval") and not text.get("layer_types"):
        every = int(text["full_attention_interval"])
        return ["full" if (index + 1) % every == 0 else "mamba" for index in range(number)]
    if text.get("attn_layer_period"):
        period, offset = int(text["attn_layer_period"]), int(text["attn_layer_offset"])
        return ["full" if index % period == offset else "mamba" for index in range(number)]
    if text.get("model_type") == "mamba2":
        return ["mamba"] * number
    return None


def state_shape(text: Mapping[str, Any], index: int) -> State:
    """The state one layer keeps for one request."""
    if "linear_num_value_heads" in text:
        return _gated_delta(text)
    if "linear_attn_config" in text:
        return _kimi_delta(text["linear_attn_config"])
    if "mamba_d_state" in text and "mamba_n_heads" not in text:
        return _mamba1(text)
    if "ssm_state_size" in text or "mamba_n_heads" in text or "state_size" in text:
        return _mamba2(text)
    raise ValueError(f"the engine stub knows no state of layer {index} of {text.get('model_type')}")


def _gated_delta(text: Mapping[str, Any]) -> State:
    key = text["linear_key_head_dim"] * text["linear_num_key_heads"]
    value = text["linear_value_head_dim"] * text["linear_num_value_heads"]
    conv = (2 * key + value) * (text["linear_conv_kernel_dim"] - 1)
    named = text.get("mamba_ssm_dtype")
    return State(conv, value * text["linear_key_head_dim"], 4 if named == "float32" else None)


def _kimi_delta(linear: Mapping[str, Any]) -> State:
    width = linear["num_heads"] * linear["head_dim"]
    conv = 3 * width * (linear["short_conv_kernel_size"] - 1)
    return State(conv, width * linear["head_dim"], 4)


def _mamba1(text: Mapping[str, Any]) -> State:
    inner = text.get("mamba_expand", 2) * text["hidden_size"]
    return State(inner * (text["mamba_d_conv"] - 1), inner * text["mamba_d_state"])


def _mamba2(text: Mapping[str, Any]) -> State:
    state = text.get("ssm_state_size") or text.get("mamba_d_state") or text.get("state_size")
    number = text.get("mamba_num_heads") or text.get("mamba_n_heads") or text.get("num_heads")
    size = text.get("mamba_head_dim") or text.get("mamba_d_head") or text.get("head_dim")
    kernel = text.get("conv_kernel") or text.get("mamba_d_conv") or 4
    groups = text.get("n_groups") or text.get("mamba_n_groups") or 1
    inner = int(number or 0) * int(size or 0)
    conv = (inner + 2 * groups * int(state or 0)) * (kernel - 1)
    fp32 = str(text.get("model_type", "")).startswith("nemotron_h")
    return State(conv, inner * int(state or 0), 4 if fp32 else None)
