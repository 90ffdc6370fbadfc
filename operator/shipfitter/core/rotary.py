"""Rope tables: cosine and sine rows each rank keeps, one table per distinct setting."""

from collections.abc import Mapping
from typing import Any

from shipfitter.core.architecture import Architecture
from shipfitter.core.facts import LayerFacts, LayerKind
from shipfitter.core.text_config import TextConfig

_ELEMENT_BYTES = 2
_MULTIMODAL_ROWS = 4  # Source: vLLM rotary_embedding/mrope.py: rows for 4x the stated length


def rotary_bytes(
    config: TextConfig,
    architecture: Architecture,
    layers: tuple[LayerFacts, ...],
    *,
    multimodal: bool = False,
) -> int:
    """Bytes of all tables; `multimodal`: three axes even where config.json names no sections.

    Source: vLLM vllm/model_executor/layers/rotary_embedding/__init__.py get_rope and its classes.
    """
    if not architecture.rotary or config.get("position_embedding_type") in ("nope", "alibi"):
        return 0
    tables = {
        (_width(config, layer), tuple(sorted(_table(config, architecture, layer).items())))
        for layer in layers
        if layer.num_attention_heads
    }
    return sum(
        int(_rows(config, dict(parameters), multimodal=multimodal) * width)
        * _element_bytes(architecture, parameters)
        for width, parameters in tables
    )


def _element_bytes(architecture: Architecture, table: tuple[tuple[str, Any], ...]) -> int:
    """DeepSeek-V4's scaled tables stay in float32; gpt-oss asks for it.

    Source: vLLM models/deepseek_v4.py; models/gpt_oss.py OAIAttention. Other scaled latent
    attention has float32 tables only where its kernel runs uncompiled, with --enforce-eager:
    rotary_embedding/deepseek_scaling_rope.py (a few MiB more, not counted).
    """
    scaled = "yarn" in str(dict(table)["type"])
    compressed = architecture.attention == "compressed"
    return 4 if (compressed and scaled) or architecture.float32_rope else _ELEMENT_BYTES


def _width(config: TextConfig, layer: LayerFacts) -> int:
    """Elements of one row: cosines and sines of the rotated part of a head."""
    if layer.kind in (LayerKind.MLA, LayerKind.COMPRESSED):
        return config.count("qk_rope_head_dim")
    if config.get("rotary_dim"):
        return config.count("rotary_dim")
    return layer.head_dim


def _table(
    config: TextConfig, architecture: Architecture, layer: LayerFacts
) -> dict[str, float | str | bool]:
    """What tells one table from another, flat: only what changes rows or width or makes two."""
    nested = config.get("rope_parameters")
    scaling: Mapping[str, Any] = config.get("rope_scaling") or {}
    windowed = layer.kind in (LayerKind.SLIDING, LayerKind.NONE) and layer.window_tokens > 0
    if isinstance(nested, Mapping):
        key = "sliding_attention" if windowed else "full_attention"
        inner = nested.get(key)
        scaling = inner if isinstance(inner, Mapping) else nested
    elif windowed and architecture.pattern in ("gemma3", "mimo_v2"):
        scaling = {"rope_type": "default", "local": True}  # its own base frequency, no scaling
    table: dict[str, float | str | bool] = {
        "type": str(scaling.get("rope_type") or scaling.get("type") or "default"),
        "factor": float(scaling.get("factor") or 1.0),
        "original": float(scaling.get("original_max_position_embeddings") or 0),
        "multimodal": "mrope_section" in scaling,
        "theta": float(scaling.get("rope_theta") or config.get("rope_theta") or 0),
        "local": bool(scaling.get("local")) or layer.compress_ratio > 0,  # a base of its own
        "part": _rotated_part(config, architecture, scaling),
    }
    return table


def _rotated_part(
    config: TextConfig, architecture: Architecture, scaling: Mapping[str, Any]
) -> float:
    for holder in (scaling, config.text):
        for key in ("partial_rotary_factor", "rotary_pct", "rope_pct"):
            if holder.get(key) is not None and not config.get("rotary_dim"):
                return float(holder[key])
    return architecture.rotated_part if not config.get("rotary_dim") else 1.0


def _rows(config: TextConfig, table: Mapping[str, Any], *, multimodal: bool) -> float:
    """Rows of a table, times the part of the head that is rotated."""
    longest = float(config.count("max_position_embeddings", 2048))
    original = table["original"] or longest
    rows = longest
    if table["type"] == "linear":
        rows = longest * table["factor"]
    elif table["type"] in ("yarn", "deepseek_yarn", "deepseek_llama_scaling"):
        rows = original * table["factor"]
    elif table["type"] == "longrope":
        rows = original + longest
    if (multimodal or table["multimodal"]) and table["type"] in ("default", "mrope"):
        rows = longest * _MULTIMODAL_ROWS
    return rows * (1.0 if table["type"] == "proportional" else table["part"])
