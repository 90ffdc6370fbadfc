"""Mixture-of-experts facts, and which layers have experts."""

from collections.abc import Sequence
from typing import Any

from shipfitter.core.architecture import Architecture
from shipfitter.core.facts import MoeFacts
from shipfitter.core.text_config import TextConfig


def moe_facts(config: TextConfig, architecture: Architecture) -> MoeFacts | None:
    """The experts of a model; None where it has none."""
    experts = config.count("num_experts", 0)
    if experts <= 1:
        return None
    size = config.count(architecture.expert_size_key, config.count("intermediate_size", 0))
    return MoeFacts(
        num_experts=experts,
        num_experts_per_tok=config.count("num_experts_per_tok", 2),
        moe_intermediate_size=size,
        shared_expert_intermediate_size=_shared_size(config, architecture, size),
    )


def _shared_size(config: TextConfig, architecture: Architecture, size: int) -> int:
    """All shared experts together, under the name each family gives them."""
    if architecture.pattern == "llama4":
        return size
    if stated := config.get("moe_shared_expert_intermediate_size"):
        return int(stated) * config.count("n_shared_experts", 1)
    for key in ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim"):
        if config.get(key):
            return config.count(key)
    if config.get("n_shared_experts"):
        return config.count("n_shared_experts") * size
    if config.flag("use_mixed_mlp_moe"):  # Hunyuan counts them in widths of its dense layers
        return config.count("num_shared_expert", 1) * config.count("intermediate_size")
    return 0


def layer_mlp(config: TextConfig, architecture: Architecture, index: int) -> dict[str, Any]:
    """The `mlp` and `intermediate_size` of one layer, as LayerFacts names them."""
    if architecture.mlp == "none":
        return {"mlp": "none", "intermediate_size": 0}
    letter = _nemotron_letter(config, architecture, index)
    if letter is not None:
        kind = {"-": "dense", "E": "moe"}.get(letter, "none")
        size = config.count("intermediate_size") if kind == "dense" else 0
        return {"mlp": kind, "intermediate_size": size}
    if config.count("num_experts", 0) > 1 and _has_experts(config, architecture, index):
        size = _beside_experts(config, architecture)
        return {"mlp": "moe", "intermediate_size": size}
    return {"mlp": "dense", "intermediate_size": _dense_size(config, architecture, index)}


def _nemotron_letter(config: TextConfig, architecture: Architecture, index: int) -> str | None:
    if architecture.pattern != "nemotron_h":
        return None
    pattern = config.get("hybrid_override_pattern")
    if pattern is None:  # newer files spell the letters out
        return {"mlp": "-", "moe": "E"}.get(config.get("layer_types")[index], "")
    return str(pattern[index])


def _beside_experts(config: TextConfig, architecture: Architecture) -> int:
    """Gemma 4 keeps a dense MLP beside the experts of the same layer."""
    return config.count("intermediate_size") if architecture.pattern == "gemma4" else 0


def _has_experts(config: TextConfig, architecture: Architecture, index: int) -> bool:
    """Whether a layer of a mixture is sparse.

    The keys exclude each other: each class has the one its configuration file defines.
    Source: vLLM vllm/model_executor/models/{qwen2_moe,deepseek_v2,llama4,jamba,ernie45_moe}.py.
    """
    types, listed = config.get("mlp_layer_types"), config.get("moe_layers")
    frequency = config.get("moe_layer_freq", 1)
    if named := config.get("moe_layers_enum"):  # Step spells it "4,5,6"
        listed = [int(one) for one in str(named).split(",")]
    if types is not None:
        return bool(types[index] == "sparse")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return index in listed
    if isinstance(frequency, Sequence):
        return bool(frequency[index])
    if architecture.pattern in _DENSE_FIRST and config.get("first_k_dense_replace") is None:
        return index > 0
    return _is_periodic(config, index, frequency)


# Classes whose first layer is dense where config.json is silent.
# Source: vLLM vllm/model_executor/models/{step3_text,step3p5,laguna}.py.
_DENSE_FIRST = frozenset(("step3", "step3p5", "laguna"))


def _is_periodic(config: TextConfig, index: int, frequency: int) -> bool:
    if step := config.get("interleave_moe_layer_step"):
        return bool((index + 1) % step == 0)
    if period := config.get("expert_layer_period"):
        return bool(index % period == config.count("expert_layer_offset", 1))
    if step := config.get("decoder_sparse_step"):
        dense = config.get("mlp_only_layers") or ()
        return bool(index not in dense and (index + 1) % step == 0)
    first = config.get("first_k_dense_replace", config.get("num_dense_layers", 0))
    first = config.get("moe_layer_start_index", first)
    return bool(index >= first and index % frequency == 0)


def _dense_size(config: TextConfig, architecture: Architecture, index: int) -> int:
    """Width of a dense layer's MLP."""
    for key in ("prefix_dense_intermediate_size", "shared_intermediate_size"):
        if config.get(key):  # Cohere's dense prefix; Granite 4 without experts: the shared MLP
            return config.count(key)
    size = config.count("intermediate_size", 4 * config.hidden_size)
    match architecture.pattern:
        case "llama4":
            size = config.count("intermediate_size_mlp", size)
        case "lfm2":
            size = _lfm2_size(config)
        case "qwen":  # the first Qwen counts both halves of the gated MLP
            size //= 2
        case "mpt":
            size = config.count("expansion_ratio", 4) * config.hidden_size
        case _:
            shared_from = config.count("num_hidden_layers") - config.count(
                "num_kv_shared_layers", 0
            )
            if config.flag("use_double_wide_mlp") and index >= shared_from > 0:
                size *= 2
    return size


def _lfm2_size(config: TextConfig) -> int:
    """Source: vLLM vllm/model_executor/models/lfm2.py Lfm2MLP."""
    size = config.count("block_ff_dim", config.count("intermediate_size", 0))
    if config.flag("block_auto_adjust_ff_dim", default=config.model_type == "lfm2"):
        size = int(config.get("block_ffn_dim_multiplier", 1.0) * int(2 * size / 3))
        multiple = config.count("block_multiple_of", 256)
        size = -(-size // multiple) * multiple
    return size
