"""Whether a command starts: the engine's own order of events, each with its refusal."""

from dataclasses import replace

import pytest

from builders_core import llama_8b
from builders_models import facts_of
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu
from shipfitter.core.gpus import resolve_product
from shipfitter.core.verdict import Refusal, Verdict, assess
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB


def card(product, **more):
    row = resolve_product(product)
    return Gpu(
        product=row.product,
        total_bytes=row.cuda_total_bytes,
        nominal_bytes=row.nominal_bytes,
        compute_capability=row.compute_capability,
        **more,
    )


def ranks(tensor=1, pipeline=1):
    return ParallelLayout(tensor_parallel_size=tensor, pipeline_parallel_size=pipeline)


def judged(facts, gpu, version="0.33.0", *, more=None, **flags):
    settings = EngineSettings(version=EngineVersion.parse(version), **flags)
    return assess(facts, settings, gpu, **(more or {}))


@pytest.mark.parametrize(
    ("facts", "product", "flags", "want"),
    [
        pytest.param(
            llama_8b(), "L40S", {"max_model_len": 32768}, (Verdict.FITS, None), id="room to spare"
        ),
        pytest.param(
            llama_8b(),
            "L4",
            {"max_model_len": 131072},
            (Verdict.DOES_NOT_FIT, Refusal.KV_CACHE_TOO_SMALL),
            id="a cache shorter than one request",
        ),
        pytest.param(
            llama_8b(),
            "L4",
            {"gpu_memory_utilization": 0.6},
            (Verdict.DOES_NOT_FIT, Refusal.NO_CACHE_BLOCKS),
            id="weights leave nothing of the request",
        ),
        pytest.param(
            facts_of("Qwen3-235B-A22B"),
            "L40S",
            {},
            (Verdict.DOES_NOT_FIT, Refusal.OUT_OF_MEMORY_LOAD),
            id="weights do not fit the card",
        ),
        pytest.param(
            llama_8b(),
            "L40S",
            {"gpu_memory_utilization": 0.999, "max_model_len": 8192},
            (Verdict.DOES_NOT_FIT, Refusal.FREE_MEMORY),
            id="asks for what the context holds already",
        ),
        pytest.param(
            llama_8b(),
            "L40S",
            {"layout": ranks(3)},
            (Verdict.DOES_NOT_FIT, Refusal.INVALID_PARALLELISM),
            id="heads that do not divide",
        ),
        pytest.param(
            facts_of("Qwen3-8B"),
            "L40S",
            {"max_model_len": 200_000},
            (Verdict.DOES_NOT_FIT, Refusal.MAX_MODEL_LEN_TOO_LONG),
            id="longer than the model",
        ),
        pytest.param(
            llama_8b(),
            "L40S",
            {"max_num_seqs": 512, "max_num_batched_tokens": 256},
            (Verdict.DOES_NOT_FIT, Refusal.OTHER),
            id="fewer batched tokens than sequences",
        ),
        pytest.param(
            facts_of("Qwen3.8-27B-FP8"),
            "H200",
            {"version": "0.28.0", "max_num_batched_tokens": 512, "max_num_seqs": 16},
            (Verdict.DOES_NOT_FIT, Refusal.OTHER),
            id="a hybrid's block that the batch does not hold",
        ),
        pytest.param(
            facts_of("Qwen3.8-27B-FP8"),
            "H200",
            {"version": "0.32.0", "max_num_batched_tokens": 512, "max_num_seqs": 16},
            (Verdict.FITS, None),
            id="which 0.32 no longer asks for",
        ),
        pytest.param(
            facts_of("gemma-4-12B-it"),
            "H200",
            {"max_num_batched_tokens": 2048},
            (Verdict.DOES_NOT_FIT, Refusal.OTHER),
            id="an image that may not be cut",
        ),
        pytest.param(
            facts_of("gemma-3-12b-it"),
            "Tesla-T4",
            {},
            (Verdict.DOES_NOT_FIT, Refusal.UNSUPPORTED_QUANTIZATION),
            id="a card without bfloat16",
        ),
        pytest.param(
            facts_of("DeepSeek-V4-Flash"),
            "H200",
            {"kv_cache_dtype": "bfloat16"},
            (Verdict.DOES_NOT_FIT, Refusal.UNSUPPORTED_ARCHITECTURE),
            id="a cache dtype the class does not have",
        ),
        pytest.param(
            facts_of("Qwen3.8-27B-FP8"),
            "L40S",
            {"version": "0.26.0", "gpu_memory_utilization": 0.9, "max_model_len": 32_768},
            (Verdict.DOES_NOT_FIT, Refusal.STATE_BLOCKS_TOO_FEW),
            id="fewer state blocks than sequences",
        ),
    ],
)
def test_verdicts(facts, product, flags, want):
    got = judged(facts, card(product), **flags)
    assert (got.verdict, got.reason) == want


# Source: pairs of one machine in public reports: the first setting failed, the second started.
@pytest.mark.parametrize(
    ("facts", "gpu", "failing", "working", "want_reason"),
    [
        pytest.param(
            llama_8b(),
            card("RTX-3090"),
            {"version": "0.6.4", "max_model_len": 29_000},
            {"version": "0.6.4", "max_model_len": 20_000},
            Refusal.KV_CACHE_TOO_SMALL,
            id="a V0 start whose prefill of the whole length takes the cache",
        ),
        pytest.param(
            facts_of("Qwen3.8-27B-FP8"),
            card("L40S"),
            {"version": "0.26.0", "max_model_len": 131_072, "gpu_memory_utilization": 0.86},
            {
                "version": "0.26.0",
                "max_model_len": 131_072,
                "gpu_memory_utilization": 0.9,
                "max_num_seqs": 16,
            },
            Refusal.KV_CACHE_TOO_SMALL,
            id="a hybrid with a smaller request of memory",
        ),
    ],
)
def test_pairs_are_told_apart(facts, gpu, failing, working, want_reason):
    bad, good = judged(facts, gpu, **failing), judged(facts, gpu, **working)
    assert (bad.verdict, bad.reason) == (Verdict.DOES_NOT_FIT, want_reason)
    assert good.verdict is not Verdict.DOES_NOT_FIT


def test_other_tenants_are_a_refusal_of_free_memory():
    got = judged(llama_8b(), card("L40S", foreign_used_bytes=10 * GIB), max_model_len=8192)
    assert got.reason is Refusal.FREE_MEMORY


def test_measured_free_memory_decides_exactly():
    gpu = card("L40S")
    enough = int(gpu.total_bytes * 0.925)
    flags = {"gpu_memory_utilization": 0.92, "max_model_len": 8192, "enforce_eager": True}
    reasons = [
        judged(llama_8b(), replace(gpu, free_bytes=free), **flags).reason
        for free in (enough, enough - GIB)
    ]
    assert reasons[0] is not Refusal.FREE_MEMORY
    assert reasons[1] is Refusal.FREE_MEMORY


def test_a_length_that_shrinks_always_finds_one():
    got = judged(llama_8b(), card("L4"), more={"auto_length": True})
    assert got.verdict is not Verdict.DOES_NOT_FIT
    assert 8192 < got.settings.max_model_len < 131_072
    assert got.point.max_model_len == got.settings.max_model_len


def test_given_cache_memory_asks_the_planner_alone():
    got = judged(
        llama_8b(), card("L4"), more={"given_cache_bytes": 50 * GIB}, max_model_len=131_072
    )
    assert got.verdict is Verdict.FITS
    assert got.point.num_gpu_blocks == got.low.num_gpu_blocks == 25_600
    assert got.rooms == ()


def test_a_long_length_may_be_allowed():
    allowed = {"long_length_allowed": True}
    got = judged(facts_of("Qwen3-8B"), card("H200"), more=allowed, max_model_len=200_000)
    assert got.verdict is Verdict.FITS


def test_borderline_says_what_may_happen():
    small = judged(llama_8b(), card("L4"), max_model_len=8192)
    assert small.verdict is Verdict.FITS
    needed = small.layout.needed_bytes(1)
    stage = small.tightest.kv_cache_bytes
    between = (stage.low + stage.point) // 2
    length = between * 16 // needed // 16 * 16
    got = judged(llama_8b(), card("L4"), max_model_len=length)
    assert (got.verdict, got.reason) == (Verdict.BORDERLINE, Refusal.KV_CACHE_TOO_SMALL)
    assert got.low.refusal == "KVCacheTooSmall"
    assert got.point.refusal is None


def test_a_card_without_a_name_has_a_wider_interval():
    named = card("H100-80GB-HBM3")
    nameless = replace(named, product="unknown", compute_capability=None)
    flags = {"version": "0.31.0", "max_model_len": 8192}
    widths = [
        (cache.high - cache.low) / GIB
        for cache in (
            judged(llama_8b(), gpu, **flags).tightest.kv_cache_bytes for gpu in (named, nameless)
        )
    ]
    assert widths[1] > widths[0] + 0.3


def test_experts_keep_more_after_capture_than_dense_models():
    """gpt-oss-20b at 0.95 failed on H100 where dense models of the same campaign started."""
    flags = {
        "version": "0.19.0",
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.95,
        "enable_prefix_caching": False,
    }
    gpu = card("H100-80GB-HBM3", free_bytes=int(78.68 * GIB))
    dense, experts = (
        judged(facts, gpu, **flags) for facts in (llama_8b(), facts_of("gpt-oss-20b"))
    )
    assert dense.verdict is Verdict.FITS
    assert (experts.verdict, experts.reason) == (
        Verdict.BORDERLINE,
        Refusal.OUT_OF_MEMORY_SAMPLER,
    )


def test_every_stage_is_judged():
    got = judged(llama_8b(), card("L4"), layout=ranks(1, 2), max_model_len=8192)
    assert len(got.stages) == 2
    assert got.tightest is min(got.stages, key=lambda stage: stage.kv_cache_bytes.point)
    assert got.free_after_start.low <= got.free_after_start.point <= got.free_after_start.high
