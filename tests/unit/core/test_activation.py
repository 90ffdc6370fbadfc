"""Activation peaks: bytes that vLLM's own code needs on meta tensors, and peaks that logs state."""

from dataclasses import replace

import pytest

from builders_core import (
    card,
    gemma3_27b,
    gpt_oss_20b,
    llama_8b,
    qwen3_32b,
    qwen3_next,
    qwen25_7b,
    qwen36_27b,
    resolved,
)
from shipfitter.core.activation import activation
from shipfitter.core.engines import Gpu
from shipfitter.core.processors import processors_of
from shipfitter.core.sampler import penalty_state_bytes, sampler_scratch_bytes
from shipfitter.units import GIB, MIB


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
    got = peak(facts, **asked)
    assert got.compile_bytes.point < got.forward_bytes.point


def test_the_rope_of_ten_million_positions_is_a_table_too():
    table = 10_485_760 * 128 * 2  # Llama 4 Scout: cosines and sines in 16 bits
    facts = replace(llama_8b(), rotary_bytes=table)
    got = peak(facts, tensor_parallel_size=4, max_num_batched_tokens=8192)
    assert got.compile_bytes.point == table + 8192 * 2 * 2 * (8 + 2) * 128
    assert got.peak.point == got.compile_bytes.point


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
    blocks = 256 * 126  # of 1,024 entries: the Gumbel kernel's index and value of each
    assert peak(llama_8b(), **asked).sampler_bytes.point == held + 2 * rows + 12 * blocks
    together = peak(llama_8b(), tensor_parallel_size=4, **asked).sampler_bytes.point
    assert together == held + 4 * rows + rows // 2


def test_the_second_runner_holds_logits_twice_where_they_are_capped():
    asked = {"version": "0.32.0", "max_num_seqs": 256, "max_num_batched_tokens": 2048}
    capped = replace(llama_8b(), extra={"caps_logits": 1})
    held, rows = (2048 + 256) * 4096 * 2, 256 * 128256
    assert peak(capped, **asked).sampler_bytes.point == held + 4 * rows
    apart = {"tensor_parallel_size": 4, **asked}
    assert peak(capped, **apart).sampler_bytes == peak(llama_8b(), **apart).sampler_bytes


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


@pytest.mark.parametrize(
    ("product", "sequences", "want"),
    [
        pytest.param("NVIDIA-H100-80GB-HBM3", 1024, 132, id="one for each processor"),
        pytest.param("NVIDIA-H100-PCIe", 1024, 114, id="the PCIe card has fewer"),
        pytest.param("NVIDIA-GeForce-RTX-5060-Ti", 256, 36, id="the longer name decides"),
        pytest.param("NVIDIA-L4", 40, 58, id="sequences are rounded up, to the card at most"),
        pytest.param("NVIDIA-L40S", 40, 64, id="sequences are rounded up to a power of two"),
        pytest.param("nobody's", 256, 132, id="an unknown card as Hopper"),
    ],
)
def test_rows_of_the_first_runners_scratch(product, sequences, want):
    facts = llama_8b()
    chosen = resolved(facts, version="0.19.0", max_num_seqs=sequences)
    count = processors_of(Gpu(product=product, total_bytes=80 * GIB))
    assert sampler_scratch_bytes(facts, chosen, count) == want * 4 * 128256


def test_a_long_batch_compiles_kernels_larger_than_the_table():
    got = peak(llama_8b(), max_num_batched_tokens=16384).compile_bytes
    assert got.point == 16384 * 2 * (3 * 14336 + 2 * 4096)


def test_a_model_told_to_leave_its_towers_may_hold_the_table():
    facts = replace(qwen36_27b(), is_multimodal=True)
    assert peak(facts).compile_bytes.point < 64 * MIB  # rotary alone
    got = peak(facts, language_model_only=True).compile_bytes
    assert got.low == 0
    assert got.point / GIB == pytest.approx(2.41, abs=0.02)
