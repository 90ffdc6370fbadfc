"""Bytes of one batched token in the forward pass, as vLLM's own code needs them without data."""

from dataclasses import replace

import pytest

from builders_core import (
    attention,
    deepseek_v3,
    gemma3_27b,
    gpt_oss_20b,
    llama_8b,
    model,
    qwen3_32b,
    qwen3_next,
    qwen25_7b,
    qwen36_27b,
)
from shipfitter.core.forward import forward_shape
from shipfitter.core.identity import SameModel
from shipfitter.core.model import MoeFacts, Quantization
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB


def qwen3_30b():
    """Qwen/Qwen3-30B-A3B."""
    return model(
        [attention(heads=32, kv_heads=4, head_dim=128, mlp="moe")] * 48,
        architecture="Qwen3MoeForCausalLM",
        hidden_size=2048,
        intermediate_size=6144,
        vocab_size=151936,
        moe=MoeFacts(num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768),
    )


def qwen3_235b_fp8():
    """Qwen/Qwen3-235B-A22B-FP8."""
    return model(
        [attention(heads=64, kv_heads=4, head_dim=128, mlp="moe")] * 94,
        architecture="Qwen3MoeForCausalLM",
        hidden_size=4096,
        intermediate_size=12288,
        vocab_size=151936,
        moe=MoeFacts(num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1536),
        quantization=Quantization(method="fp8", weight_bits=8, weight_block=(128, 128)),
    )


def layout(tensor_parallel_size=1, **more):
    return ParallelLayout(tensor_parallel_size=tensor_parallel_size, **more)


@pytest.mark.parametrize(
    ("facts", "shape", "want", "want_workspace"),
    [
        pytest.param(llama_8b(), layout(), 110_592, 0, id="dense on one GPU"),
        pytest.param(llama_8b(), layout(2), 63_488, 0, id="dense on two"),
        pytest.param(llama_8b(), layout(4), 43_008, 0, id="sums over four outweigh the MLP"),
        pytest.param(qwen25_7b(), layout(), 135_168, 0, id="dense with a wide MLP"),
        pytest.param(qwen3_32b(), layout(2), 105_472, 0, id="dense 32B on two"),
        pytest.param(gemma3_27b(), layout(), 158_720, 0, id="window layers weigh the same"),
        pytest.param(qwen36_27b(), layout(), 169_984, 0, id="dense after a gated delta net"),
        pytest.param(qwen3_30b(), layout(), 44_032, 65_536, id="experts on one GPU: rotary"),
        pytest.param(gpt_oss_20b(), layout(), 47_360, 71_680, id="MXFP4 experts are padded"),
        pytest.param(
            qwen3_235b_fp8(),
            layout(4, enable_expert_parallel=True),
            61_952,
            131_072,
            id="whole experts on four, fp8 inputs beside them",
        ),
        pytest.param(deepseek_v3(), layout(8), 113_952, 229_376, id="a shared expert on eight"),
        pytest.param(qwen3_next(), layout(2), 45_056, 81_920, id="experts after a gated delta net"),
    ],
)
def test_bytes_per_batched_token(facts, shape, want, want_workspace):
    got = forward_shape(SameModel(facts), shape)
    assert (got.bytes_per_token, got.workspace_bytes_per_token) == (want, want_workspace)


@pytest.mark.parametrize(
    ("facts", "shape", "want"),
    [
        pytest.param(llama_8b(), layout(), 110_592, id="gate and up are gone before the output"),
        pytest.param(qwen25_7b(), layout(), 142_336, id="gate and up are still named"),
        pytest.param(qwen3_32b(), layout(2), 128_000, id="a sum over the ranks beside the output"),
        pytest.param(
            replace(qwen36_27b(), architecture="Qwen3_5ForCausalLM"),
            layout(),
            155_648,
            id="a norm that makes a new residual",
        ),
        pytest.param(qwen3_30b(), layout(), 39_936, id="attention before experts"),
    ],
)
def test_bytes_per_batched_token_without_compilation(facts, shape, want):
    assert forward_shape(SameModel(facts), shape, eager=True).bytes_per_token == want


def test_latent_attention_takes_a_scratch_once_that_decides_small_batches():
    shape = forward_shape(SameModel(deepseek_v3()), layout(8))
    small, large = shape.peak_bytes(2048, 65536), shape.peak_bytes(8192, 65536)
    assert small / GIB == pytest.approx(0.549, abs=0.005)
    assert large == 8192 * shape.bytes_per_token
