"""max_model_len: what the config promises and what the command line asks.

Source: vLLM 0.33 vllm/config/model.py _get_and_verify_max_len.
"""

import os
from collections.abc import Mapping
from typing import Any

from world.engine.architecture import text_config
from world.engine.config_error import ConfigError
from world.engine.versions import Version


def derived_length(config: Mapping[str, Any], version: Version) -> int:
    """The longest the config promises."""
    text = text_config(config)
    keys = (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "max_sequence_length",
        "max_seq_length",
        "seq_len",
    )
    found = [text[key] for key in keys if text.get(key)]
    # transformers' own default where Gemma 3's config names none
    fallback = 131072 if str(text.get("model_type", "")).startswith("gemma3") else 2048
    length = float(min(found)) if found else fallback
    scaling = text.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type")
    if kind == "yarn" and version < (0, 29, 0):
        length = scaling.get("original_max_position_embeddings", length) * scaling["factor"]
    elif kind in ("linear", "dynamic") and "gemma3" not in str(text.get("model_type")):
        length *= scaling["factor"]
    elif kind in ("su", "longrope"):
        length = min(length, scaling.get("original_max_position_embeddings", length))
    return int(length)


def length_asked(
    given: Mapping[str, Any], config: Mapping[str, Any], version: Version
) -> tuple[int, bool]:
    """The length to serve, and whether it may shrink to fit."""
    derived = derived_length(config, version)
    asked = given.get("max_model_len")
    if asked in (None, -1):
        return derived, asked == -1
    text = text_config(config)
    longrope = (text.get("rope_scaling") or {}).get("rope_type") == "longrope"
    limit = int(text.get("max_position_embeddings", derived)) if longrope else derived
    if asked > limit and os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise ConfigError(
            "ModelConfig",
            f"User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={float(derived)} or model_max_length=None in model's "
            "config.json). To allow overriding this maximum, set the env var "
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with "
            "extreme caution. If the model uses relative position encoding (RoPE), positions "
            "exceeding derived_max_model_len lead to nan. If the model uses absolute position "
            "encoding, positions exceeding derived_max_model_len will cause a CUDA array "
            "out-of-bounds error.",
        )
    return int(asked), False
