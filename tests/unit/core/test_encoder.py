"""The modality tower in the profile run, against starts whose rest of memory was logged."""

from dataclasses import replace

import pytest

from builders_models import facts_of
from shipfitter.core.encoder import encoder_peak
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.units import GIB

CARD = Gpu(product="NVIDIA-L40S", total_bytes=44 * GIB, compute_capability=(8, 9))


def encoded(name, version="0.19.0", **flags):
    facts = facts_of(name)
    settings = EngineSettings(version=EngineVersion.parse(version), **flags)
    return encoder_peak(facts, resolve(settings, facts, CARD))


@pytest.mark.parametrize(
    ("name", "flags", "want_gib"),
    [
        pytest.param("Qwen3.8-27B-FP8", {}, 1.35, id="one image of 16,384 tokens"),
        pytest.param(
            "Qwen2.5-VL-72B-Instruct",
            {"max_model_len": 8192},
            2.8,
            id="a gated tower; a short request holds no long video",
        ),
        pytest.param(
            "Qwen2.5-VL-72B-Instruct",
            {"max_model_len": 128_000},
            19.4,
            id="a video of seven pairs of frames, as long as the request allows",
        ),
        pytest.param("gemma-3-12b-it", {"max_num_batched_tokens": 8192}, 2.2, id="many images"),
    ],
)
def test_peaks(name, flags, want_gib):
    # Measured: 1.3 in five starts of Qwen3.5 to 3.8; 15 GiB for the longest video of Qwen2.5-VL-7B.
    got = encoded(name, **flags).peak
    assert got.low < want_gib * GIB < got.high
    assert got.point / GIB == pytest.approx(want_gib, rel=0.2)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        pytest.param("Qwen2.5-7B-Instruct", {}, id="a text model"),
        pytest.param("Qwen3.8-27B-FP8", {"language_model_only": True}, id="language alone"),
        pytest.param(
            "Qwen3.8-27B-FP8", {"items_per_prompt": {"image": 0, "video": 0}}, id="no item allowed"
        ),
    ],
)
def test_nothing_to_encode(name, flags):
    got = encoded(name, **flags)
    assert (got.peak.high, got.kept.high, got.worst_case_tokens) == (0, 0, 0)


def test_without_videos_the_image_decides():
    name = "Qwen2.5-VL-72B-Instruct"
    long = encoded(name, max_model_len=128_000).peak
    images = encoded(name, max_model_len=128_000, items_per_prompt={"video": 0}).peak
    assert images.point * 7 == pytest.approx(long.point, rel=0.01)


def test_one_release_keeps_rows_for_timestamps():
    # Source: 12.8 GiB beside weights and cache of Qwen3-VL-32B over two in 0.11, 7.5 of 235B; 5.8
    # of 30B in 0.13.
    facts = replace(facts_of("Qwen3-VL-30B-A3B-Instruct"), hidden_size=5120)
    settings = EngineSettings(version=EngineVersion(0, 11, 0))
    kept = [
        encoder_peak(facts, resolve(replace(settings, version=version), facts, CARD)).kept.point
        for version in (EngineVersion(0, 11, 0), EngineVersion(0, 13, 0))
    ]
    assert kept[0] == 204_800 * 4 * 5120 * 2
    assert kept[0] == kept[1] * 25 // 2


def test_before_v1_a_prompt_with_every_item_is_profiled():
    got = encoded("Qwen2.5-VL-72B-Instruct", "0.7.3", items_per_prompt={"image": 10, "video": 1})
    assert got.worst_case_tokens == 180_224  # as a V0 log of these limits says
