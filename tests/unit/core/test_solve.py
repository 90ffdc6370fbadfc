"""What an expert would set, and who wins when several would do."""

from dataclasses import replace

import pytest

from builders_plan import LLAMA_8B, LLAMA_70B, pool, wish
from shipfitter.core.candidates import candidates
from shipfitter.core.intent import Prefer, SizeFor, Wanted
from shipfitter.core.inventory import Pool, PoolNode
from shipfitter.core.plan import NoFit, Plan, Sizing, solve
from shipfitter.core.sizing import size

QWEN_32B = "Qwen/Qwen3-32B"
GPT_OSS = "openai/gpt-oss-120b"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
GEMMA = "google/gemma-3-27b-it"


def solved(intent, *pools: Pool) -> Sizing:
    plan = solve(intent, pools)
    assert isinstance(plan, Plan), str(plan)
    return plan.variants[0].sizing


EXPERT = {  # model, GPU, how many; the length and the sequences an expert would set
    "Llama 8B on an L4: short and few": (LLAMA_8B, "L4", 1, (16_384, 18_432), (16, 16)),
    "Llama 8B on an L40S: whole length": (LLAMA_8B, "L40S", 1, (131_072, 131_072), (96, 104)),
    "Llama 8B on an H100: near 216": (LLAMA_8B, "H100", 1, (131_072, 131_072), (208, 232)),
    "Qwen3 32B over two L40S": (QWEN_32B, "L40S", 2, (40_960, 40_960), (32, 40)),
    "Qwen3 32B on one H100": (QWEN_32B, "H100", 1, (22_528, 24_576), (16, 24)),
    "gpt-oss 120B on one H100": (GPT_OSS, "H100", 1, (131_072, 131_072), (80, 96)),
    "DeepSeek V3 on eight H200": (DEEPSEEK, "H200", 8, (163_840, 163_840), (256, 256)),
    "Gemma 3 27B on an A100": (GEMMA, "A100-80GB", 1, (131_072, 131_072), (24, 32)),
}


@pytest.mark.parametrize("case", EXPERT)
def test_what_an_expert_would_set(case):
    model, gpu, count, want_len, want_seqs = EXPERT[case]
    intent = wish(model)
    (candidate,) = candidates(intent, pool(gpu, count), intent.models[0], count)
    sizing = size(candidate, intent, point=True)
    assert sizing is not None
    assert want_len[0] <= sizing.max_model_len <= want_len[1]
    assert want_seqs[0] <= sizing.max_num_seqs <= want_seqs[1]


def test_qwen3_next_80b_in_bf16_does_not_fit_two_h100():
    assert isinstance(solve(wish("Qwen/Qwen3-Next-80B-A3B-Instruct"), (pool("H100", 2),)), NoFit)


def test_of_two_gpu_types_the_one_that_reaches_more_wins():
    assert solved(wish(), pool("L4", 2), pool("L40S", 8)).pool.product == "NVIDIA-L40S"


def test_of_two_that_reach_as_much_the_smaller_gpu_wins():
    assert solved(wish(), pool("L40S", 8), pool("H100", 8)).pool.product == "NVIDIA-L40S"


def test_a_pool_that_holds_all_replicas_now_wins_over_one_that_does_not():
    busy = pool("L40S", 8, nodes=1)
    busy = replace(busy, nodes=(PoolNode(name="busy", free_gpus=1),))
    sizing = solved(wish(replicas=2), busy, pool("H100", 8))
    assert sizing.pool.product == "NVIDIA-H100-80GB-HBM3"


def test_a_70b_takes_the_fewest_gpus_that_hold_it():
    assert solved(wish(LLAMA_70B), pool("A100-80GB", 8)).gpus_per_replica == 2


def test_a_stated_preference_takes_the_fewest_gpus_that_reach_half_of_it():
    intent = wish(LLAMA_70B, max_model_len=Wanted(8192, 131_072))
    assert solved(intent, pool("A100-80GB", 8)).gpus_per_replica == 4


def test_silence_takes_no_second_gpu():
    assert solved(wish(), pool("L40S", 8)).gpus_per_replica == 1


def test_a_pinned_tensor_parallel_size_is_taken():
    assert solved(wish(tensor_parallel_size=4), pool("L40S", 8)).gpus_per_replica == 4


def test_the_first_model_that_fits_wins_over_a_later_one_that_fits_better():
    sizing = solved(wish("Qwen/Qwen3-32B", "Qwen/Qwen3-32B-AWQ"), pool("H100", 1))
    assert sizing.model.uri == "hf://Qwen/Qwen3-32B"


def test_a_later_model_is_taken_where_the_first_does_not_fit():
    sizing = solved(wish("Qwen/Qwen3-32B", "Qwen/Qwen3-32B-AWQ"), pool("L40S", 1))
    assert sizing.model.uri == "hf://Qwen/Qwen3-32B-AWQ"


def test_products_named_are_the_only_ones():
    intent = wish(products=("NVIDIA-H100-80GB-HBM3",))
    assert solved(intent, pool("L40S", 8), pool("H100", 8)).pool.product == "NVIDIA-H100-80GB-HBM3"


def test_shared_gpus_are_left_alone_unless_allowed():
    shared = pool("L40S", 1, sharing="time-slicing", replicas_per_gpu=2)
    refused = solve(wish(), (shared,))
    assert isinstance(refused, NoFit)
    assert "allowShared" in str(refused)
    assert solved(wish(allow_shared=True), shared).budget.total_bytes == shared.total_bytes // 2


def test_an_fp8_cache_is_shown_but_not_taken_unasked():
    plan = solve(wish("Qwen/Qwen3-32B"), (pool("H100", 1),))
    assert isinstance(plan, Plan)
    assert plan.variants[0].sizing.settings.kv_cache_dtype == "auto"
    assert any("fp8" in each.summary for each in plan.alternatives)


def test_an_fp8_cache_has_no_backend_on_an_a100():
    assert isinstance(solve(wish(kv_cache_dtype="fp8"), (pool("A100-80GB", 1),)), NoFit)


@pytest.mark.parametrize(
    ("prefer", "want"),
    [
        pytest.param(Prefer.CONTEXT, 34_816, id="Context gives one request all of the cache"),
        pytest.param(Prefer.BALANCED, 17_408, id="Balanced gives it half"),
        pytest.param(Prefer.CONCURRENCY, 8192, id="Concurrency yields to the minimum"),
    ],
)
def test_preference_decides_how_long_one_request_may_be(prefer, want):
    assert solved(wish(prefer=prefer), pool("L4", 1)).max_model_len == want


def test_worst_case_runs_every_sequence_at_full_length():
    intent = wish(size_for=SizeFor.WORST_CASE, max_model_len=Wanted(16_384, 16_384))
    sizing = solved(intent, pool("L40S", 1))
    assert sizing.max_num_seqs * 16_384 <= sizing.kv_cache_tokens


def test_equal_bounds_pin_the_length():
    sizing = solved(wish(max_model_len=Wanted(20_000, 20_000)), pool("L40S", 1))
    assert sizing.max_model_len == 20_000


def test_a_model_too_large_says_by_how_much_and_what_would_do():
    refused = solve(wish("Qwen/Qwen3-235B-A22B"), (pool("L40S", 8),))
    assert isinstance(refused, NoFit)
    assert refused.reason == "DoesNotFit"
    assert "437.9 GiB" in refused.problem
    assert "8 × 44.4 GiB" in refused.problem
    assert refused.would_fit


def test_no_pool_at_all_is_missing_capacity_not_a_misfit():
    refused = solve(wish(), ())
    assert isinstance(refused, NoFit)
    assert refused.reason == "NoGpuCapacity"
