"""Laws of an estimate: of its intervals, of memory, and of plans put back through it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_plan import choice, pool, wish
from shipfitter.cli.estimate import Question, estimate
from shipfitter.cli.estimate_record import estimate_record
from shipfitter.core.intent import Prefer, Verdict, Wanted
from shipfitter.core.plan import solve
from shipfitter.render.args import engine_args
from unit.render.plans import resource

VERSIONS = ["0.6.6", "0.8.5", "0.10.2", "0.13.0", "0.18.0", "0.20.2", "0.26.0", "0.29.0", "0.33.0"]
PRODUCTS = ["NVIDIA-L4", "NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "b200"]
GROUND = ["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "google/gemma-3-12b-it",
          "openai/gpt-oss-20b", "Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-30B-A3B-FP8",
          "deepseek-ai/DeepSeek-V2-Lite-Chat"]  # fmt: skip


@st.composite
def questions(draw):
    """Commands that people could type, on any card."""
    words = [
        "vllm",
        "serve",
        draw(st.sampled_from(GROUND)),
        f"--max-num-seqs={draw(st.integers(1, 1024))}",
    ]
    words += ["-tp", str(draw(st.sampled_from([1, 2, 4])))]
    words += draw(st.sampled_from([[], ["--enforce-eager"], ["--kv-cache-dtype", "fp8"]]))
    words += draw(st.sampled_from([[], ["--enable-lora"], ["--enable-dbo"], ["-O1"]]))
    words += draw(st.sampled_from([[], ["--max-model-len", "8192"], ["--max-model-len", "auto"]]))
    return {
        "words": words,
        "gpu": draw(st.sampled_from(PRODUCTS)),
        "engine_version": draw(st.sampled_from(VERSIONS)),
        "compile_cache": draw(st.sampled_from(["cold", "warm"])),
    }


def answered(**question):
    return estimate_record(estimate(Question(**question)))


@given(questions())
def test_intervals_hold_their_points(question):
    record = answered(**question)
    for budget in (record["perGpu"], *record["stages"]):
        cache = budget["kvCacheBytes"]
        assert cache is None or cache["low"] <= cache["point"] <= cache["high"]
    free = record["freeAfterStartBytes"]
    assert free is None or free["low"] <= free["point"] <= free["high"]


@given(questions(), st.floats(0.5, 100), st.floats(0, 100))
def test_more_cache_memory_is_never_fewer_tokens(question, less_gib, more_gib):
    less = answered(**question, given_cache_gib=less_gib)
    more = answered(**question, given_cache_gib=less_gib + more_gib)
    if less["verdict"] == "Fits" and "auto" not in question["words"]:
        assert more["verdict"] == "Fits"
        assert more["kvCacheTokens"] >= less["kvCacheTokens"]


@given(questions(), st.integers(20_000, 90_000), st.integers(0, 90_000))
def test_a_larger_card_never_has_less_cache(question, less_mib, more_mib):
    small, large = (
        answered(**question | {"gpu": "unknown"}, gpu_memory_mib=mib)["perGpu"]
        for mib in (less_mib, less_mib + more_mib)
    )
    if small["kvCacheBytes"] and same_tier(less_mib, less_mib + more_mib):
        assert large["kvCacheBytes"]["point"] >= small["kvCacheBytes"]["point"]


def same_tier(*totals_mib):
    """Larger cards get larger default batches, which may cost more than the card brings."""
    return len({(mib > 70_000, mib > 160_000) for mib in totals_mib}) == 1


@settings(max_examples=30)  # each fix is an estimate of its own
@given(questions())
def test_a_fix_gives_the_verdict_it_promises(question):
    for fix in answered(**question)["fixes"]:
        words = [*question["words"], fix["flag"], str(fix["value"])]
        assert answered(**question | {"words": words})["verdict"] == fix["verdict"]


@pytest.mark.parametrize("repository", GROUND)
@pytest.mark.parametrize("product", ["NVIDIA-L40S", "NVIDIA-H100-80GB-HBM3"])
@pytest.mark.parametrize("prefer", list(Prefer))
def test_a_plans_flags_give_the_plans_numbers(repository, product, prefer):
    planned = solve(wish(repository, prefer=prefer, max_model_len=Wanted(4096, None)),
                   (pool(product, 4),))  # fmt: skip
    sizing = planned.variants[0].sizing
    body = resource(spec__model__uri=choice(repository).uri)
    record = answered(
        words=["vllm", "serve", *engine_args(body, sizing)], gpu=f"{sizing.pool.product}:4"
    )
    assert record["numGpuBlocks"] == sizing.num_gpu_blocks
    assert record["kvCacheTokens"] == sizing.kv_cache_tokens
    assert record["maxModelLen"] == sizing.max_model_len
    assert record["perGpu"]["kvCacheBytes"]["low"] == sizing.budget.kv_cache_bytes.low
    if sizing.verdict is Verdict.FITS:
        assert record["verdict"] in ("Fits", "Borderline")
