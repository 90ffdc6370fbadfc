"""Vision and audio towers from their configs: where a checkpoint's total cannot tell them apart."""

from collections.abc import Mapping
from typing import Any

from shipfitter.core.text_config import TextConfig

_TOWER_KEYS = ("vision_config", "audio_config", "visual")
# Towers with a gated MLP: three matrices instead of two.
# Source: vLLM vllm/model_executor/models/{qwen2_5_vl,pixtral,dots_ocr,gemma4_mm}.py.
_GATED = frozenset(("qwen2_5_vl", "pixtral", "dots_vit", "gemma4_vision"))


def tower_parameters(config: TextConfig) -> int:
    """Parameters of all towers and projectors, near enough to be corrected by a total."""
    found = [
        holder[key]
        for holder in (config.whole, config.whole.get("thinker_config") or {})
        for key in _TOWER_KEYS
        if isinstance(holder.get(key), Mapping)
    ]
    return sum(_transformer(tower) + _projector(tower, config) for tower in found)


def _first(tower: Mapping[str, Any], *names: str) -> int:
    return next((int(tower[name]) for name in names if isinstance(tower.get(name), int)), 0)


def _transformer(tower: Mapping[str, Any]) -> int:
    width = _first(tower, "embed_dim", "vt_hidden_size", "hidden_size", "d_model")
    depth = _first(tower, "depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers")
    inner = _first(tower, "intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")
    inner = inner or int(width * float(tower.get("mlp_ratio", 4)))
    matrices = 3 if tower.get("model_type") in _GATED else 2
    return depth * (4 * width * width + matrices * width * inner + 4 * width)


def _projector(tower: Mapping[str, Any], config: TextConfig) -> int:
    """A two-layer map from merged patches to the language model's width."""
    width = _first(tower, "embed_dim", "vt_hidden_size", "hidden_size", "d_model")
    merge = _first(tower, "spatial_merge_size") or 1
    merged = width * merge * merge
    hidden = config.hidden_size
    if merge == 1:
        return width * hidden + hidden * hidden
    maps = 1 + len(tower.get("deepstack_visual_indexes") or ())
    return maps * (merged * merged + merged * hidden)
