"""Vision and audio towers from their configs: where a checkpoint's total cannot tell them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shipfitter.core.text_config import TextConfig

_TOWER_KEYS = ("vision_config", "audio_config", "visual")
# Towers with a gated MLP: three matrices instead of two.
# Source: vLLM vllm/model_executor/models/{qwen2_5_vl,pixtral,dots_ocr,gemma4_mm}.py.
_GATED = frozenset(("qwen2_5_vl", "pixtral", "dots_vit", "gemma4_vision"))
_LEARNED_SQUARE = frozenset(("siglip_vision_model", "clip_vision_model"))  # a row for each patch
_WHOLE_MLP = frozenset(("muse_glimmer_vision",))  # plain linear layers beside divided attention
_GATED_CLASSES = ("Qwen2_5_VL", "Qwen2_5Omni")


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerParameters:
    """Parameters of all towers and projectors, near enough to be corrected by a total.

    `divided`: parallel layers; `whole`: patch and position embeddings, and the maps that stay whole
    on every rank; `unused`: layers of the file behind the one whose output is used, never built.
    """

    divided: int = 0
    whole: int = 0
    unused: int = 0


def tower_parameters(config: TextConfig, *, feature_layer: int = -1) -> TowerParameters:
    """What the config's towers hold; `feature_layer`: whose output is used, counted from the end.

    Source: vLLM vllm/model_executor/models: the Linear classes in siglip.py, clip.py, pixtral.py,
    qwen3_vl.py, gemma3_mm.py, gemma4_mm.py, gemma4_unified.py; llava.py _get_num_hidden_layers.
    """
    parts = [
        _unified(tower, config)
        if str(tower.get("model_type")).startswith("gemma4_unified")
        else _tower(tower, config, feature_layer)
        for holder in (config.whole, config.whole.get("thinker_config") or {})
        for tower in (holder.get(key) for key in _TOWER_KEYS)
        if isinstance(tower, Mapping)
    ]
    return TowerParameters(
        divided=sum(part.divided for part in parts),
        whole=sum(part.whole for part in parts),
        unused=sum(part.unused for part in parts),
    )


def _tower(tower: Mapping[str, Any], config: TextConfig, feature_layer: int) -> TowerParameters:
    blocks, unused = _transformer(tower, config), 0
    depth = _first(tower, *_DEPTH)
    if feature_layer < -1 and depth:
        unused = blocks // depth * min(depth, -1 - feature_layer)
    divided, whole = _projector(tower, config)
    undivided = _mlps(tower, config) if tower.get("model_type") in _WHOLE_MLP else 0
    return TowerParameters(
        divided=blocks - unused - undivided + divided,
        whole=_embeddings(tower) + whole + undivided,
        unused=unused,
    )


def _unified(tower: Mapping[str, Any], config: TextConfig) -> TowerParameters:
    """Gemma 4 without towers: patches and frames are mapped to the model's width.

    Source: vLLM gemma4_unified.py; transformers configuration_gemma4_unified.py for the defaults.
    """
    hidden = config.hidden_size
    if tower.get("model_type") == "gemma4_unified_audio":
        return TowerParameters(whole=int(tower.get("audio_embed_dim", 640)) * hidden)
    width = int(tower.get("mm_embed_dim", 3840))
    side = int(tower.get("patch_size", 16)) * int(tower.get("pooling_kernel_size", 3))
    positions = 2 * int(tower.get("mm_posemb_size", 1120)) * width
    return TowerParameters(divided=3 * side * side * width, whole=positions + width * hidden)


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
    merge = _first(tower, "spatial_merge_size", "merge_size")
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
_DEPTH = ("depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers")
_INNER = ("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")


def _first(tower: Mapping[str, Any], *names: str) -> int:
    return next((int(tower[name]) for name in names if isinstance(tower.get(name), int)), 0)


def _is_gated(tower: Mapping[str, Any], config: TextConfig) -> bool:
    """Some configs leave out the tower's own type; the class then says it."""
    named = config.architecture.startswith(_GATED_CLASSES)
    return tower.get("model_type") in _GATED or (named and "model_type" not in tower)


def _transformer(tower: Mapping[str, Any], config: TextConfig) -> int:
    width = _first(tower, *_WIDTH)
    depth = _first(tower, *_DEPTH)
    return depth * (4 * width * width + 4 * width) + _mlps(tower, config)


def _mlps(tower: Mapping[str, Any], config: TextConfig) -> int:
    width = _first(tower, *_WIDTH)
    inner = _first(tower, *_INNER) or int(width * float(tower.get("mlp_ratio", 4)))
    matrices = 3 if _is_gated(tower, config) else 2
    return _first(tower, *_DEPTH) * matrices * width * inner


def _embeddings(tower: Mapping[str, Any]) -> int:
    """Patch and position embeddings of a vision tower."""
    width, patch = _first(tower, *_WIDTH), _first(tower, "patch_size")
    channels = _first(tower, "in_channels", "num_channels") or 3
    patches = channels * patch * patch * (_first(tower, "temporal_patch_size") or 1)
    positions = _first(tower, "num_position_embeddings")
    if tower.get("model_type") == "gemma4_vision":  # one table for each axis
        positions = 2 * _first(tower, "position_embedding_size")
    elif tower.get("model_type") in _LEARNED_SQUARE and patch:
        positions = (_first(tower, "image_size") // patch) ** 2
    return (patches + positions) * width


def _projector(tower: Mapping[str, Any], config: TextConfig) -> tuple[int, int]:
    """The map from patches to the language model's width: (divided, whole)."""
    width = _first(tower, *_WIDTH)
    merge = _first(tower, "spatial_merge_size") or 1
    merged = width * merge * merge
    hidden = config.hidden_size
    if inner := config.whole.get("projector_hidden_size"):  # Muse Glimmer: merged, then three maps
        merged = int(config.whole.get("out_hidden_size") or merged)
        return 0, int(inner) * (merged + int(inner) + hidden)
    if config.whole.get("mm_tokens_per_image") or tower.get("model_type") == "gemma4_vision":
        return 0, width * hidden
    if merge == 1:
        merge = int(config.whole.get("spatial_merge_size") or 1)
        merging = merge * merge * width * width if merge > 1 else 0  # Mistral 3: patches to one
        return width * hidden + hidden * hidden, merging
    maps = 1 + len(tower.get("deepstack_visual_indexes") or ())
    return maps * (merged * merged + merged * hidden), 0
