"""Vision and audio towers from their configs: where a checkpoint's total cannot tell them apart."""

from collections.abc import Mapping, Sequence
from typing import Any

from shipfitter.core.text_config import TextConfig

_TOWER_KEYS = ("vision_config", "audio_config", "visual")
# Towers with a gated MLP: three matrices instead of two.
# Source: vLLM vllm/model_executor/models/{qwen2_5_vl,pixtral,dots_ocr,gemma4_mm}.py.
_GATED = frozenset(("qwen2_5_vl", "pixtral", "dots_vit", "gemma4_vision"))
_GATED_CLASSES = ("Qwen2_5_VL", "Qwen2_5Omni")


def tower_parameters(config: TextConfig) -> int:
    """Parameters of all towers and projectors, near enough to be corrected by a total."""
    found = [
        holder[key]
        for holder in (config.whole, config.whole.get("thinker_config") or {})
        for key in _TOWER_KEYS
        if isinstance(holder.get(key), Mapping)
    ]
    return sum(_transformer(tower, config) + _projector(tower, config) for tower in found)


def tower_shape(config: TextConfig) -> dict[str, int]:
    """The vision tower's widths, and patches for each token it hands over; empty without one."""
    tower = next(
        (config.whole[key] for key in ("vision_config", "visual") if config.whole.get(key)),
        (config.whole.get("thinker_config") or {}).get("vision_config"),
    )
    if not isinstance(tower, Mapping) or not _first(tower, *_WIDTH):
        return {}
    width = _first(tower, *_WIDTH)
    inner = _first(tower, *_INNER) or int(width * float(tower.get("mlp_ratio", 4)))
    gated = _is_gated(tower, config)
    return {
        "tower_width": width,
        # Live at an MLP's peak, in widths of the tower: see `encoder`.
        "tower_inner": inner * (3 if gated else 2),
        "tower_gated": int(gated),
        "tower_patches_per_token": _patches_per_token(tower, config),
    }


def _patches_per_token(tower: Mapping[str, Any], config: TextConfig) -> int:
    """Patches that become one token: squares are merged, pooled or shuffled."""
    if tokens := config.whole.get("mm_tokens_per_image"):  # Gemma 3 pools
        side = _first(tower, "image_size") // max(1, _first(tower, "patch_size"))
        return max(1, side * side // int(tokens))
    merge = _first(tower, "spatial_merge_size")
    kernel = tower.get("merge_kernel_size")
    if not merge and isinstance(kernel, Sequence):
        merge = int(kernel[0])
    if not merge and config.whole.get("spatial_merge_size"):
        merge = int(config.whole["spatial_merge_size"])
    ratio = tower.get("pixel_shuffle_ratio") or config.whole.get("downsample_ratio")
    if not merge and ratio:
        merge = round(1 / float(ratio))
    return max(1, merge) ** 2


_WIDTH = ("embed_dim", "vt_hidden_size", "hidden_size", "d_model")
_INNER = ("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")


def _first(tower: Mapping[str, Any], *names: str) -> int:
    return next((int(tower[name]) for name in names if isinstance(tower.get(name), int)), 0)


def _is_gated(tower: Mapping[str, Any], config: TextConfig) -> bool:
    """Some configs leave out the tower's own type; the class then says it."""
    named = config.architecture.startswith(_GATED_CLASSES)
    return tower.get("model_type") in _GATED or (named and "model_type" not in tower)


def _transformer(tower: Mapping[str, Any], config: TextConfig) -> int:
    width = _first(tower, *_WIDTH)
    depth = _first(tower, "depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers")
    inner = _first(tower, *_INNER)
    inner = inner or int(width * float(tower.get("mlp_ratio", 4)))
    matrices = 3 if _is_gated(tower, config) else 2
    return depth * (4 * width * width + matrices * width * inner + 4 * width)


def _projector(tower: Mapping[str, Any], config: TextConfig) -> int:
    """A two-layer map from merged patches to the language model's width."""
    width = _first(tower, *_WIDTH)
    merge = _first(tower, "spatial_merge_size") or 1
    merged = width * merge * merge
    hidden = config.hidden_size
    if merge == 1:
        return width * hidden + hidden * hidden
    maps = 1 + len(tower.get("deepstack_visual_indexes") or ())
    return maps * (merged * merged + merged * hidden)
