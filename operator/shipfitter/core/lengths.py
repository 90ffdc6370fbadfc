"""How long a request may be when nobody says: read from config.json as the engine reads it."""

from typing import Any

from shipfitter.core.model import ModelFacts
from shipfitter.core.releases import rules_for
from shipfitter.core.versions import EngineVersion

# Source: vLLM vllm/transformers_utils/model_arch_config_convertor.py, keys in its order.
_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
_LENGTH_WHEN_SILENT = 2048
_ROPE_TYPES_THAT_DO_NOT_MULTIPLY = frozenset(
    {
        "default", "mrope", "proportional",  # no factor of their own
        "su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling",
    }
)  # fmt: skip


def derived_max_model_len(model: ModelFacts, version: EngineVersion) -> int:
    """The length the engine takes when none is asked.

    The smallest of the lengths that config.json names, times the factor of those rope scalings
    that stretch it. Source: vLLM vllm/config/model.py _get_and_verify_max_len.
    """
    keys = model.length_keys
    named = [int(keys[key]) for key in _LENGTH_KEYS if keys.get(key)]
    length = min(named) if named else _LENGTH_WHEN_SILENT
    if keys.get("model_max_length"):
        length = int(keys["model_max_length"])
    return _scaled(length, _rope(keys), model, version)


def _rope(keys: Any) -> Any:
    scaling = keys.get("rope_scaling") or keys.get("rope_parameters") or {}
    if "rope_type" in scaling or "type" in scaling or "factor" in scaling:
        return scaling
    return scaling.get("full_attention") or {}  # one entry per kind of layer


def _scaled(length: int, rope: Any, model: ModelFacts, version: EngineVersion) -> int:
    kind = rope.get("rope_type") or rope.get("type") or "default"
    factor = rope.get("factor")
    original = rope.get("original_max_position_embeddings") or model.length_keys.get(
        "original_max_position_embeddings"
    )
    if kind == "longrope" and original:
        return int(original)  # up to max_position_embeddings where asked
    if kind in ("yarn", "deepseek_yarn") and factor and rules_for(version).yarn_multiplies:
        return int((original or length) * factor)
    stretches = factor and kind not in _ROPE_TYPES_THAT_DO_NOT_MULTIPLY
    if not stretches or model.model_type.startswith("gemma3"):
        return length
    return int(length * factor)
