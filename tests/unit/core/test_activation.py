"""Activation peaks: bytes that vLLM's own code needs on meta tensors, and peaks that logs state."""

from dataclasses import replace

import pytest

from builders_core import (
    attention,
    card,
    deepseek_v3,
    gemma3_27b,
    gpt_oss_20b,
    llama_8b,
    model,
    qwen3_32b,
    qwen3_next,
    qwen36_27b,
    resolved,
)
from shipfitter.core.activation import activation
from shipfitter.core.forward import forward_shape
from shipfitter.core.identity import SameModel
from shipfitter.core.model import MoeFacts, Quantization
from shipfitter.core.sampler import penalty_state_bytes, sampler_scratch_bytes
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB, MIB


def qwen25_7b(**more):
    """Qwen/Qwen2.5-7B-Instruct."""
    layer = attention(heads=28, kv_heads=4, head_dim=128, intermediate_size=18944)
    return model(
        [layer] * 28,
        architecture="Qwen2ForCausalLM",
        hidden_size=3584,
        intermediate_size=18944,
        vocab_size=152064,
        **more,
    )


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


def test_latent_attention_takes_a_scratch_once_that_decides_small_batches():
    shape = forward_shape(SameModel(deepseek_v3()), layout(8))
    small, large = shape.peak_bytes(2048, 65536), shape.peak_bytes(8192, 65536)
    assert small / GIB == pytest.approx(0.549, abs=0.005)
    assert large == 8192 * shape.bytes_per_token


def peak(facts, *, gpu=None, **asked):
    gpu = gpu or card("NVIDIA-L4")
    return activation(facts, resolved(facts, gpu, **asked), gpu)


@pytest.mark.parametrize(
    ("facts", "tokens", "want_gib"),
    [
        pytest.param(llama_8b(), 2048, 1.010, id="Llama 8B, 2,048 tokens"),
        pytest.param(llama_8b(), 8192, 1.10, id="Llama 8B, 8,192 tokens"),
        pytest.param(qwen25_7b(), 2048, 1.042, id="Qwen2.5 7B"),
        pytest.param(gemma3_27b(), 8192, 2.79, id="Gemma 3 27B: a table of 262,208 rows"),
    ],
)
def test_a_cold_compile_cache_holds_the_embedding_table(facts, tokens, want_gib):
    got = peak(facts, max_num_batched_tokens=tokens)
    assert got.compile_bytes.point / GIB == pytest.approx(want_gib, abs=0.01)
    assert got.peak.point == got.compile_bytes.point


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        pytest.param(llama_8b(), {"compile_cache_warm": True}, id="a warm cache"),
        pytest.param(llama_8b(), {"enforce_eager": True}, id="nothing compiled"),
        pytest.param(llama_8b(), {"tensor_parallel_size": 2}, id="the table is divided"),
        pytest.param(gemma3_27b(is_multimodal=True), {}, id="embeddings come from outside"),
        pytest.param(llama_8b(), {"version": "0.11.0"}, id="a release that compiles lazily"),
    ],
)
def test_no_table_is_held_when(facts, asked):
    assert peak(facts, **asked).compile_bytes.point == 0


def test_releases_nobody_read_give_the_table_as_a_possibility():
    got = peak(llama_8b(), version="0.24.0").compile_bytes
    assert got.low == 0
    assert got.point > GIB * 0.95


@pytest.mark.parametrize(
    ("facts", "asked", "want_gib"),
    [
        pytest.param(
            qwen3_next(),
            {"version": "0.10.2", "tensor_parallel_size": 2, "max_num_seqs": 1024},
            5.58,
            id="Qwen3-Next on two H200, 0.10.2",
        ),
        pytest.param(
            qwen25_7b(),
            {"version": "0.7.2", "max_model_len": 4096},
            1.41,
            id="Qwen2.5 7B before V1",
        ),
        pytest.param(
            qwen3_32b(),
            {"version": "0.16.0", "max_num_seqs": 1024, "max_num_batched_tokens": 8192},
            5.64,
            id="1,024 sequences on 0.16, vocabulary of Qwen3",
        ),
        pytest.param(
            qwen3_32b(),
            {"version": "0.19.0", "max_num_seqs": 1024, "max_num_batched_tokens": 8192},
            2.15,
            id="the same on 0.19: nothing is sorted",
        ),
        pytest.param(
            gemma3_27b(),
            {"version": "0.19.0", "max_num_seqs": 1024, "max_num_batched_tokens": 8192},
            3.60,
            id="a large vocabulary on 0.19",
        ),
    ],
)
def test_sampling_many_sequences_decides_the_first_runner(facts, asked, want_gib):
    got = peak(facts, gpu=card("NVIDIA-H200"), **asked)
    assert got.sampler_bytes.point / GIB == pytest.approx(want_gib, rel=0.02)
    assert got.peak.point == got.sampler_bytes.point


def test_the_second_runner_samples_in_the_models_dtype():
    rows = 256 * 128256
    asked = {"version": "0.32.0", "max_num_seqs": 256, "max_num_batched_tokens": 2048}
    held = (2048 + 256) * 4096 * 2
    assert peak(llama_8b(), **asked).sampler_bytes.point == held + 2 * rows
    together = peak(llama_8b(), tensor_parallel_size=4, **asked).sampler_bytes.point
    assert together == held + 4 * rows + rows // 2


def test_033_samples_in_fp32_as_well_and_nobody_measured_it():
    got = peak(llama_8b(), max_num_seqs=256, max_num_batched_tokens=2048).sampler_bytes
    assert got.low < got.point < got.high


def test_only_the_last_stage_samples_and_only_the_first_holds_the_table():
    facts = llama_8b()
    gpu = card("NVIDIA-L4")
    chosen = resolved(facts, gpu)
    middle = activation(facts, chosen, gpu, first_stage=False, last_stage=False)
    assert (middle.sampler_bytes.high, middle.compile_bytes.high) == (0, 0)
    assert middle.peak == middle.forward_bytes


@pytest.mark.parametrize(
    ("version", "gpu", "want_kept"),
    [
        pytest.param("0.33.0", card("NVIDIA-L40S"), True, id="Marlin keeps its workspace"),
        pytest.param("0.13.0", card("NVIDIA-L40S"), False, id="before 0.14 it is given back"),
        pytest.param("0.33.0", card(), False, id="MXFP4 on Hopper has none"),
    ],
)
def test_experts_workspace(version, gpu, want_kept):
    facts = gpt_oss_20b()
    got = activation(facts, resolved(facts, gpu, version, max_num_batched_tokens=2048), gpu)
    assert got.workspace_bytes == (2048 * 71_680 if want_kept else 0)


def test_an_encoder_is_a_wide_estimate_that_can_be_left_out():
    facts = replace(qwen36_27b(), is_multimodal=True)
    got = peak(facts, max_num_batched_tokens=2048).encoder_bytes
    assert got.point / GIB == pytest.approx(1.35, abs=0.1)  # one image of 16,384 tokens
    assert got.low * 4 < got.high
    assert peak(facts, language_model_only=True).encoder_bytes.high == 0


def test_persistent_state_of_each_sampler():
    first = resolved(llama_8b(), version="0.19.0", max_num_seqs=256)
    second = resolved(llama_8b(), version="0.32.0", max_num_seqs=256)
    rows = 256 * 128256
    assert penalty_state_bytes(llama_8b(), second) == 4 * rows + rows // 8
    assert penalty_state_bytes(llama_8b(), first) == 0
    assert sampler_scratch_bytes(llama_8b(), second) == 0
    assert sampler_scratch_bytes(llama_8b(), first) / MIB == pytest.approx(64.6, abs=0.1)
