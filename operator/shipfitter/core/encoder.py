"""The modality tower in the profile run: its own peak, and its output kept for the rest of it.

Source: vLLM vllm/v1/worker/gpu_model_runner.py profile_run, vllm/multimodal/encoder_budget.py: the
tower sees as many of the largest items as the budget of tokens holds,
and what it yields stays until the sampler has run.
"""

from dataclasses import dataclass

from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.engines import EngineSettings
from shipfitter.core.estimate import Estimate
from shipfitter.core.model import ModelFacts
from shipfitter.core.versions import EngineVersion

_NOTHING = Estimate(low=0, point=0, high=0)

# A patch at the peak of a tower's MLP holds its own width and the inner ones; a gated tower also
# rotates queries and keys in float32. Measured: within 0.3 GiB in five starts of Qwen3.5 to 3.8
# (16,384 tokens of one image, 1.3 GiB), half of it in two, half as much again in two; of gated
# towers 15 GiB for Qwen2.5-VL's longest video and 4.4 for dots.ocr.
_ROTARY_WIDTHS = 7
LOW_PERCENT, HIGH_PERCENT, HIGH_PERCENT_GATED = 25, 150, 200
_DEFAULT_TOWER = {"tower_width": 1152, "tower_inner": 2 * 4304, "tower_patches_per_token": 4}

# Tokens of the largest item by default, where one can be larger than a batch: logged as the
# "encoder cache budget". Source: vLLM vllm/model_executor/models/qwen2_vl.py max pixels; dots_ocr.
LARGEST_IMAGE_TOKENS = 16384
_LARGE_IMAGES = {
    **dict.fromkeys(
        ("Qwen2VL", "Qwen2_5_VL", "Qwen2_5Omni", "Qwen3VL", "Qwen3Omni", "Qwen3_5"),
        LARGEST_IMAGE_TOKENS,
    ),
    "DotsOCR": 14400,
}
# A video is up to 14 frames, in pairs, each as large as an image, and no longer than a request.
# Source: vLLM vllm/model_executor/models/qwen2_vl.py _MAX_FRAMES_PER_VIDEO.
_WITH_LONG_VIDEOS = ("Qwen2VL", "Qwen2_5_VL", "Qwen2_5Omni")
_FRAME_PAIRS = 7
# 0.11 counted 12.5 tokens for each of a video's, its timestamps, and kept rows for them all.
# Source: vLLM 0.11 vllm/model_executor/models/qwen3_vl.py get_max_video_tokens.
_COUNTS_TIMESTAMPS = (EngineVersion(0, 11, 0), EngineVersion(0, 12, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderPeak:
    """Bytes of one rank."""

    peak: Estimate
    kept: Estimate  # its output, until the profile run ends
    worst_case_tokens: int  # of one prompt with every item it may have


def encoder_peak(model: ModelFacts, settings: EngineSettings) -> EncoderPeak:
    """The tower on a maximal batch; nothing for text models and where no item is allowed."""
    allowed = settings.items_per_prompt or {}
    images, videos = (allowed.get(kind, 1) for kind in ("image", "video"))
    if not model.is_multimodal or settings.language_model_only or not (images or videos):
        return EncoderPeak(peak=_NOTHING, kept=_NOTHING, worst_case_tokens=0)
    batch = settings.max_num_batched_tokens or 0
    image_tokens, video_tokens = _largest_items(model, settings)
    tokens = max(batch, image_tokens if images else 0, video_tokens if videos else 0)
    rows = max(tokens, _timestamp_rows(model, settings) if videos else 0)
    row_bytes = model.hidden_size * (1 + int(model.extra.get("deepstack_levels", 0)))
    kept = rows * row_bytes * model_dtype_bytes(model)
    working = tokens * _bytes_per_token(model)
    high = HIGH_PERCENT_GATED if model.extra.get("tower_gated") else HIGH_PERCENT
    return EncoderPeak(
        peak=Estimate(
            low=working * LOW_PERCENT // 100 + kept,
            point=working + kept,
            high=working * high // 100 + kept,
        ),
        # Less where a checkpoint's processor takes smaller items than its class.
        kept=Estimate.around(kept, low_percent=LOW_PERCENT, high_percent=100),
        worst_case_tokens=images * image_tokens + videos * min(video_tokens, image_tokens),
    )


def largest_item_tokens(model: ModelFacts, settings: EngineSettings) -> int:
    """Tokens of the largest item a prompt may hold; 0 where none exceeds a batch, or is known."""
    allowed = settings.items_per_prompt or {}
    if not model.is_multimodal or settings.language_model_only:
        return 0
    image, video = _largest_items(model, settings)
    return max(image if allowed.get("image", 1) else 0, video if allowed.get("video", 1) else 0)


def _largest_items(model: ModelFacts, settings: EngineSettings) -> tuple[int, int]:
    """Tokens of the largest image and of the longest video, where they exceed a batch."""
    family = next((name for name in _LARGE_IMAGES if model.architecture.startswith(name)), None)
    if family is None:
        return 0, 0
    image = _LARGE_IMAGES[family]
    pairs = 1
    if family in _WITH_LONG_VIDEOS and not settings.rules.legacy_engine:
        pairs = min(_FRAME_PAIRS, max(1, (settings.max_model_len or 0) // image))
    return image, pairs * image


def _timestamp_rows(model: ModelFacts, settings: EngineSettings) -> int:
    first, last = _COUNTS_TIMESTAMPS
    if not first <= settings.version < last or not model.architecture.startswith("Qwen3VL"):
        return 0
    return LARGEST_IMAGE_TOKENS * 25 // 2


def _bytes_per_token(model: ModelFacts) -> int:
    """Not less under tensor parallelism: four starts over two and four cards show none of it."""
    tower = {**_DEFAULT_TOWER, **model.extra}
    widths = 1 + (_ROTARY_WIDTHS if model.extra.get("tower_gated") else 0)
    elements = widths * int(tower["tower_width"]) + int(tower["tower_inner"])
    return int(tower["tower_patches_per_token"]) * elements * model_dtype_bytes(model)
