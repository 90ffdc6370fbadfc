"""Worked examples of the cache planner, and the logs of real engines."""

from dataclasses import replace

import pytest

from builders_core import (
    card,
    deepseek_v3,
    deepseek_v32,
    gemma3_27b,
    gpt_oss_120b,
    llama_8b,
    qwen3_32b,
    qwen3_next,
    qwen36_27b,
    resolved,
)
from shipfitter.core.kvcache import cache_layout, plan_cache
from shipfitter.units import GIB


def planned(facts, gib, *, gpu=None, version="0.33.0", **asked):
    """The engine's report for so much cache memory."""
    gpu = gpu or card()
    chosen = resolved(facts, gpu, version, **asked)
    layout = cache_layout(facts, chosen, gpu)
    stages = len(layout.bytes_per_block)
    return plan_cache(layout, chosen, (int(gib * GIB),) * stages)


@pytest.mark.parametrize(
    ("facts", "gib", "asked", "want_blocks", "want_tokens", "want_concurrency"),
    [
        pytest.param(
            llama_8b(), 50, {}, 25_600, 409_600, 3.12, id="grouped-query attention on one GPU"
        ),
        pytest.param(
            llama_8b(),
            50,
            {"kv_cache_dtype": "fp8"},
            51_200,
            819_200,
            6.25,
            id="an fp8 cache holds twice as many tokens",
        ),
        pytest.param(
            qwen3_32b(),
            20,
            {"tensor_parallel_size": 2},
            10_240,
            163_840,
            4.00,
            id="two ranks share the eight KV heads",
        ),
        pytest.param(
            deepseek_v3(),
            30,
            {"tensor_parallel_size": 8, "block_size": 64},
            7_162,
            458_368,
            2.80,
            id="latent attention is whole on every rank",
        ),
        pytest.param(
            deepseek_v3(),
            30,
            {"tensor_parallel_size": 8, "block_size": 64, "kv_cache_dtype": "fp8"},
            14_324,
            916_736,
            5.60,
            id="an fp8 latent is half",
        ),
        pytest.param(
            deepseek_v3(),
            30,
            {"tensor_parallel_size": 8, "block_size": 64, "decode_context_parallel_size": 8},
            7_162,
            3_666_944,
            22.38,
            id="context parallelism spreads the latent over the ranks",
        ),
        pytest.param(
            deepseek_v32(),
            30,
            {"tensor_parallel_size": 8, "kv_cache_dtype": "fp8"},
            10_470,
            670_080,
            4.09,
            id="sparse attention adds its indexer to 656 bytes",
        ),
        pytest.param(
            deepseek_v32(),
            30,
            {"tensor_parallel_size": 8, "kv_cache_dtype": "bfloat16"},
            6_426,
            411_264,
            2.51,
            id="sparse attention in bf16",
        ),
        pytest.param(
            gpt_oss_120b(),
            10,
            {"max_num_batched_tokens": 4096},
            18_204,
            273_847,
            2.09,
            id="half the layers look back 128 tokens, 8,192 in flight",
        ),
        pytest.param(
            gpt_oss_120b(),
            10,
            {"max_num_batched_tokens": 8192},
            18_204,
            258_648,
            1.97,
            id="half the layers look back 128 tokens, 16,384 in flight",
        ),
        pytest.param(
            gpt_oss_120b(),
            10,
            {"disable_hybrid_kv_cache_manager": True},
            9_102,
            145_632,
            1.11,
            id="without the hybrid manager every layer keeps everything",
        ),
        pytest.param(
            gemma3_27b(),
            20,
            {"max_num_batched_tokens": 4096},
            16_384,
            184_270,
            1.41,
            id="52 window layers fall into six groups of ten",
        ),
        pytest.param(
            gemma3_27b(),
            20,
            {"max_num_batched_tokens": 8192},
            16_384,
            145_829,
            1.11,
            id="twice the batch, twice the room in six groups",
        ),
    ],
)
def test_worked_examples(*, facts, gib, asked, want_blocks, want_tokens, want_concurrency):
    got = planned(facts, gib, **asked)
    assert (got.num_gpu_blocks, got.kv_cache_tokens) == (want_blocks, want_tokens)
    assert got.max_concurrency == pytest.approx(want_concurrency, abs=0.005)
    assert got.refusal is None


@pytest.mark.parametrize(
    ("facts", "gib", "asked", "want_needed_gib", "want_longest"),
    [
        pytest.param(llama_8b(), 10, {}, 16.00, 81_904, id="one block less than the memory holds"),
        pytest.param(
            gemma3_27b(),
            20,
            {"disable_hybrid_kv_cache_manager": True},
            62.0,
            42_256,
            id="window layers kept whole",
        ),
    ],
)
def test_too_little_cache_is_refused_with_the_length_that_fits(
    facts, gib, asked, want_needed_gib, want_longest
):
    got = planned(facts, gib, **asked)
    assert got.refusal == "KVCacheTooSmall"
    assert got.needed_bytes / GIB == pytest.approx(want_needed_gib, abs=0.005)
    assert got.estimated_max_model_len == want_longest


@pytest.mark.parametrize(
    ("asked", "gpu", "want_block", "want_bytes", "want_blocks", "want_concurrency"),
    [
        pytest.param(
            {"version": "0.27.0"}, None, 544, 13_369_344, 3_212, 6.62, id="one state a request"
        ),
        pytest.param(
            {"version": "0.28.0"}, None, 544, 13_369_344, 3_212, 6.58, id="prefix caching: two"
        ),
        pytest.param(
            {"version": "0.33.0"},
            card("NVIDIA-A100-SXM4-80GB"),
            544,
            13_369_344,
            3_212,
            6.58,
            id="0.33 on a card without FlashInfer's prefill: two",
        ),
        pytest.param(
            {"version": "0.33.0"},
            None,
            576,
            14_155_776,
            3_034,
            6.52,
            id="0.33 with FlashInfer's prefill: three, in blocks of 64",
        ),
        pytest.param(
            {"version": "0.27.0", "tensor_parallel_size": 2},
            None,
            544,
            6_684_672,
            6_425,
            13.25,
            id="two ranks halve everything",
        ),
    ],
)
def test_recurrent_layers_set_the_attention_block(
    *, asked, gpu, want_block, want_bytes, want_blocks, want_concurrency
):
    facts = qwen3_next()
    gpu = gpu or card()
    chosen = resolved(facts, gpu, **asked)
    layout = cache_layout(facts, chosen, gpu)
    assert (layout.block_size, layout.bytes_per_block) == (want_block, (want_bytes,))
    got = plan_cache(layout, chosen, (40 * GIB,))
    assert got.num_gpu_blocks == want_blocks
    assert got.max_concurrency == pytest.approx(want_concurrency, abs=0.005)


MEMORY_ROUNDING_GIB = 0.005  # logs print two decimals
A100_40 = replace(card("NVIDIA-A100-SXM4-80GB"), product="NVIDIA-A100-40GB")


@pytest.mark.parametrize(
    ("facts", "gib", "asked", "want_tokens", "want_concurrency"),
    [
        pytest.param(
            qwen3_next(),
            47_878_721_024 / GIB,
            {"version": "0.10.2", "tensor_parallel_size": 2},
            973_760,
            14.77,
            id="Qwen3-Next on two H200, 0.10.2: tokens = blocks over groups",
        ),
        pytest.param(
            gemma3_27b(),
            109.86,
            {"version": "0.11.0", "max_model_len": 4096, "max_num_batched_tokens": 8192},
            205_696,
            50.05,
            id="Gemma 3 27B on one H200, 0.11: seven groups",
        ),
        pytest.param(
            gemma3_27b(),
            10.56,
            {
                "version": "0.26.0",
                "max_model_len": 65_536,
                "max_num_batched_tokens": 2048,
                "kv_cache_dtype": "fp8",
            },
            188_347,
            2.87,
            id="MedGemma on L40S, 0.26: two batches in flight",
        ),
        pytest.param(
            llama_8b(),
            56.21,
            {"version": "0.31.0"},
            460_496,
            3.51,
            id="Llama 8B on A100, 0.31",
        ),
        pytest.param(
            qwen36_27b(),
            4.99,
            {
                "version": "0.31.0",
                "tensor_parallel_size": 2,
                "kv_cache_dtype": "fp8",
                "max_model_len": 131_072,
            },
            302_921,
            2.31,
            id="Qwen3.8-27B on two ranks, fp8: two states a request",
        ),
        pytest.param(
            qwen36_27b(),
            9.75,
            {"version": "0.26.0", "max_model_len": 131_072},
            155_600,
            1.19,
            id="Qwen3.8-27B, 0.26 defaults: one state, prefix caching off",
        ),
        pytest.param(
            qwen36_27b(),
            16.74,
            {"version": "0.26.0", "max_model_len": 131_072},
            267_509,
            2.04,
            id="Qwen3.8-27B INT4, 0.26",
        ),
        pytest.param(
            qwen36_27b(),
            15.35,
            {"version": "0.28.0", "max_model_len": 131_072},
            241_051,
            1.84,
            id="Qwen3.8-27B INT4, 0.28: two states",
        ),
        pytest.param(
            qwen36_27b(),
            2.67,
            {"version": "0.27.1", "tensor_parallel_size": 2, "max_model_len": 16_384},
            75_776,
            4.62,
            id="Qwen3.8-27B on two ranks, 0.27",
        ),
        pytest.param(
            qwen36_27b(),
            8.91,
            {"version": "0.29.0", "tensor_parallel_size": 2, "kv_cache_dtype": "fp8"},
            560_445,
            2.14,
            id="Qwen3.8-27B AWQ on two ranks, 0.29: two states by default",
        ),
        pytest.param(
            replace(qwen36_27b(), extra={"num_mtp_layers": 1}),
            5.61,
            {
                "version": "0.20.2",
                "tensor_parallel_size": 4,
                "kv_cache_dtype": "fp8",
                "max_model_len": 196_608,
                "num_speculative_tokens": 3,
                "enable_prefix_caching": True,
            },
            615_468,
            3.13,
            id="Qwen3.6-27B with three drafts: a layer and three states more",
        ),
        pytest.param(
            qwen36_27b(),
            7.04,
            {"version": "0.26.0", "max_model_len": 131_072},
            None,
            None,
            id="Qwen3.8-27B, 0.26: 8.18 GiB needed",
        ),
    ],
)
def test_what_engines_logged(facts, gib, asked, want_tokens, want_concurrency):
    low, got, high = (
        planned(facts, gib + rounding, gpu=A100_40, **asked)
        for rounding in (-MEMORY_ROUNDING_GIB, 0, MEMORY_ROUNDING_GIB)
    )
    if want_tokens is None:
        assert got.refusal == "KVCacheTooSmall"
        assert got.needed_bytes / GIB == pytest.approx(8.18, abs=0.005)
        return
    assert low.kv_cache_tokens <= want_tokens <= high.kv_cache_tokens
    assert low.max_concurrency - 0.005 <= want_concurrency <= high.max_concurrency + 0.005
