"""The stub's own planner against numbers worked by hand, by release."""

from typing import Any

import pytest

from world.engine.cache import cache
from world.engine.flags import parse
from world.engine.planner import CacheFull, NoBlocks, Plan, plan
from world.engine.scenario import GIB, Device
from world.engine.settings import resolve
from world.engine.versions import Version
from world.hub import published_config

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
V3 = "deepseek-ai/DeepSeek-V3"
GEMMA = "google/gemma-3-27b-it"
LATEST = (0, 33, 0)


def device(**changes: Any) -> Device:
    h100: dict[str, Any] = {
        "total_bytes": int(79.19 * GIB),
        "free_bytes": int(78.66 * GIB),
        "free_is_measured_after_context": True,
        "nominal_bytes": 80 * GIB,
        "name": "NVIDIA H100 80GB HBM3",
        "compute_capability": (9, 0),
        "count": 8,
    }
    return Device(**h100 | changes)


def planned(
    name: str, flags: str, available_gib: float, *, version: Version = LATEST, **changes: Any
) -> Plan:
    """The plan for one rank with these cache bytes; the same on every stage."""
    config = published_config(name)
    config |= changes.pop("config", {})
    given = parse([name, *flags.split()], version, program="vllm serve")
    settings = resolve(given, config, device(**changes), version)
    kept = cache(settings, config, device(**changes), given)
    return plan(
        kept.layers,
        kept.rules,
        available=[int(available_gib * GIB)] * settings.pipeline,
        length=settings.length,
        auto_fit=settings.auto_fit,
        blocks_override=given.get("num_gpu_blocks_override"),
    )


@pytest.mark.parametrize(
    ("case", "want"),
    [
        pytest.param((LLAMA, "", 50), (25_600, 409_600, "3.12"), id="Llama-3.1-8B in 50 GiB"),
        pytest.param(
            (LLAMA, "--kv-cache-dtype fp8", 50),
            (51_200, 819_200, "6.25"),
            id="an fp8 cache holds twice as much",
        ),
        pytest.param(
            ("Qwen/Qwen3-32B", "-tp 2", 20),
            (10_240, 163_840, "4.00"),
            id="two ranks halve what each keeps",
        ),
        pytest.param(
            ("Qwen/Qwen3-32B", "-tp 2 -pp 3", 40),
            (59_578, 953_248, "23.27"),
            id="the stage with the most layers decides",
        ),
        pytest.param(
            (V3, "-tp 8 --block-size 64", 30),
            (7_162, 458_368, "2.80"),
            id="latent attention is not divided by ranks",
        ),
        pytest.param(
            (V3, "-tp 8 --kv-cache-dtype fp8", 30),
            (14_324, 916_736, "5.60"),
            id="nor in fp8, which also takes blocks of 64",
        ),
        pytest.param(
            (V3, "-tp 8 -dcp 8 --block-size 64", 30),
            (7_162, 3_666_944, "22.38"),
            id="but by decode context parallelism",
        ),
        pytest.param(
            ("openai/gpt-oss-120b", "--max-num-batched-tokens 8192", 10),
            (18_204, 258_648, "1.97"),
            id="gpt-oss: two batches in flight widen the window",
        ),
        pytest.param(
            ("openai/gpt-oss-120b", "--no-async-scheduling", 10),
            (18_204, 273_847, "2.09"),
            id="one batch without asynchronous scheduling",
        ),
        pytest.param(
            ("openai/gpt-oss-120b", "--disable-hybrid-kv-cache-manager", 10),
            (9_102, 145_632, "1.11"),
            id="without the hybrid manager windows save nothing",
        ),
        pytest.param(
            (GEMMA, "--no-async-scheduling", 20),
            (16_384, 184_270, "1.41"),
            id="Gemma 3: six sliding groups beside one full",
        ),
        pytest.param((GEMMA, "", 20), (16_384, 145_829, "1.11"), id="the same, two batches"),
    ],
)
def test_blocks_tokens_and_concurrency(case, want):
    name, flags, available_gib = case
    got = planned(name, flags, available_gib)
    assert (got.blocks, got.tokens, f"{got.concurrency:.2f}") == want


@pytest.mark.parametrize(
    ("version", "flags", "want"),
    [
        pytest.param((0, 27, 1), "", (544, 3_212, "6.62"), id="0.27: no prefix caching, one state"),
        pytest.param((0, 28, 0), "", (544, 3_212, "6.58"), id="0.28: prefix caching, two states"),
        pytest.param(
            (0, 33, 0),
            "",
            (576, 3_034, "6.52"),
            id="0.33 with FlashInfer: 64-aligned, three states",
        ),
        pytest.param(
            (0, 33, 0),
            "--gdn-prefill-backend triton",
            (544, 3_212, "6.58"),
            id="0.33 with Triton: as before",
        ),
        pytest.param(
            (0, 33, 0),
            "--no-enable-prefix-caching",
            (544, 3_212, "6.62"),
            id="prefix caching switched off: one state again",
        ),
    ],
)
def test_a_hybrids_blocks_follow_its_state(version, flags, want):
    got = planned(NEXT, flags, 40, version=version)
    assert (got.block_size, got.blocks, f"{got.concurrency:.2f}") == want


def test_a_sparse_indexer_adds_its_bytes():
    got = planned(V3, "-tp 8 --kv-cache-dtype fp8", 30, config={"index_topk": 2048})
    assert (got.blocks, got.tokens) == (10_470, 670_080)


@pytest.mark.parametrize(
    ("case", "want"),
    [
        pytest.param((LLAMA, "", 10), (16.0, 81_904), id="Llama-3.1-8B: less one null block"),
        pytest.param(
            (GEMMA, "--disable-hybrid-kv-cache-manager", 20),
            (62.0, 42_256),
            id="Gemma 3 without the hybrid manager",
        ),
    ],
)
def test_one_request_that_does_not_fit_is_refused_with_the_length_that_does(case, want):
    name, flags, available_gib = case
    with pytest.raises(CacheFull) as caught:
        planned(name, flags, available_gib)
    assert (caught.value.needed / GIB, caught.value.estimated) == want


def test_before_0_29_no_block_is_held_back():
    with pytest.raises(CacheFull) as caught:
        planned(LLAMA, "", 10, version=(0, 28, 0))
    assert (caught.value.usable, caught.value.estimated) == (10 * GIB, 81_920)


def test_auto_shrinks_the_length_to_what_fits():
    got = planned(LLAMA, "--max-model-len auto", 10)
    assert got.length == 81_904


@pytest.mark.parametrize("available_gib", [-1.0, 0.0, 0.0019])
def test_without_room_for_two_blocks_there_is_no_cache(available_gib):
    with pytest.raises(NoBlocks):
        planned(LLAMA, "", available_gib)


def test_an_override_decides_blocks_and_checks():
    got = planned(LLAMA, "--num-gpu-blocks-override 9000", 1)
    assert (got.blocks, got.tokens) == (9_000, 144_000)


def test_until_0_20_0_tokens_were_blocks_times_block_size():
    flags = "--max-num-batched-tokens 8192 --max-model-len 4096"
    got = planned(GEMMA, flags, 109.86, version=(0, 20, 0))
    assert got.tokens == got.blocks // 7 * 16
