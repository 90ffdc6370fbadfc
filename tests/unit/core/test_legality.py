"""Layouts the engine would refuse, each with its reason."""

from dataclasses import replace

import pytest

from builders_families import BAMBA_9B, tiny_llama
from builders_models import config_of, facts_from, facts_of
from shipfitter.core.facts import Quantization
from shipfitter.core.legality import layout_problems
from shipfitter.core.method_capability import least_capability
from shipfitter.core.weights import ParallelLayout

HOPPER, AMPERE, TURING, PASCAL = (9, 0), (8, 0), (7, 5), (6, 1)


def problems(facts, tensor=1, pipeline=1, *, capability=HOPPER, gpus=8, version=(0, 33), **more):
    layout = ParallelLayout(tensor_parallel_size=tensor, pipeline_parallel_size=pipeline, **more)
    return layout_problems(
        facts,
        layout,
        gpus_per_node=gpus,
        compute_capability=capability,
        engine_version=version,
    )


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        pytest.param("Llama-3.1-8B-Instruct", 8, id="Llama-3.1-8B over eight"),
        pytest.param("gpt-oss-120b", 8, id="gpt-oss over eight: padded, not refused"),
        pytest.param("DeepSeek-V3", 8, id="DeepSeek-V3 over eight"),
        pytest.param("Qwen3-Next-80B-A3B-Instruct", 4, id="KV heads repeated"),
        pytest.param("Qwen3-32B-AWQ", 2, id="AWQ over two"),
        pytest.param("Qwen3.8-27B-FP8", 2, id="Qwen3.8 fp8 over two"),
        pytest.param("Falcon-H1-3B-Base", 2, id="a single Mamba group is repeated"),
        pytest.param("gemma-3-12b-it", 4, id="Gemma 3 over four"),
    ],
)
def test_legal(name, tensor):
    assert problems(facts_of(name), tensor) == ()


@pytest.mark.parametrize(
    ("facts", "arguments", "want"),
    [
        pytest.param(
            facts_of("Qwen2.5-7B-Instruct"),
            {"tensor": 8},
            "28 attention heads do not divide by 8 ranks",
            id="heads",
        ),
        pytest.param(
            facts_from(tiny_llama(num_attention_heads=12, num_key_value_heads=3)),
            {"tensor": 2},
            "3 key-value heads do not divide by 2 ranks",
            id="KV heads",
        ),
        pytest.param(
            facts_from(tiny_llama(num_attention_heads=12, num_key_value_heads=3)),
            {"tensor": 4},
            "3 key-value heads cannot be repeated evenly over 4 ranks",
            id="KV heads that would be repeated",
        ),
        pytest.param(
            facts_from(tiny_llama(intermediate_size=250)),
            {"tensor": 4},
            "250 MLP columns do not divide by 4 ranks",
            id="MLP",
        ),
        pytest.param(
            facts_from(
                tiny_llama(
                    architectures=["Qwen3MoeForCausalLM"],
                    num_experts=4,
                    moe_intermediate_size=20,
                    num_key_value_heads=8,
                )
            ),
            {"tensor": 8},
            "20 expert columns do not divide by 8 ranks; expert parallelism keeps experts whole",
            id="experts",
        ),
        pytest.param(
            facts_of("NVIDIA-Nemotron-Nano-9B-v2"),
            {"tensor": 16, "gpus": 16},
            "8 state groups do not divide by 16 ranks",
            id="Mamba groups",
        ),
        pytest.param(
            facts_of("Llama-3.1-8B-Instruct"),
            {"tensor": 8, "gpus": 4},
            "tensor parallel 8 needs more than the 4 GPUs of a node",
            id="GPUs of the node",
        ),
        pytest.param(
            facts_of("Llama-3.1-8B-Instruct"),
            {"enable_expert_parallel": True},
            "expert parallelism needs experts; LlamaForCausalLM has none",
            id="expert parallelism without experts",
        ),
        pytest.param(
            facts_from(tiny_llama()),
            {"pipeline": 4},
            "4 pipeline stages for 2 layers",
            id="more stages than layers",
        ),
        pytest.param(
            facts_of("gpt-oss-20b"),
            {"capability": TURING},
            "mxfp4 weights need compute capability 8.0 in vLLM 0.33; the GPU has 7.5",
            id="a card too old for the method",
        ),
        pytest.param(
            facts_of("Qwen3.8-27B-FP8"),
            {"capability": TURING, "version": (0, 13)},
            "fp8 weights need compute capability 8.0 in vLLM 0.13; the GPU has 7.5; a newer engine "
            "would take it",
            id="a release whose method is younger than the card",
        ),
        pytest.param(
            facts_of("gemma-3-12b-it"),
            {"capability": TURING},
            "gemma3_text needs bfloat16, compute capability 8.0; the GPU has 7.5",
            id="a card without bfloat16 for a class that needs it",
        ),
        pytest.param(
            facts_of("EXAONE-4.0-32B-FP8"),
            {"tensor": 4},
            "MLP of 27392 over 4 ranks gives 6848, not a multiple of the quantisation's 128",
            id="fp8 blocks of a row-parallel matrix",
        ),
        pytest.param(
            facts_of("Qwen3-235B-A22B-Instruct-2507-FP8"),
            {"tensor": 8, "version": (0, 28)},
            "experts of 1536 over 8 ranks give 192, not a multiple of the fp8 block's 128; "
            "fewer ranks or expert parallelism would do",
            id="fp8 blocks of experts before 0.29",
        ),
    ],
)
def test_refused(facts, arguments, want):
    assert want in problems(facts, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"tensor": 4}, id="fewer ranks"),
        pytest.param({"tensor": 8, "enable_expert_parallel": True}, id="whole experts"),
        pytest.param({"tensor": 8, "version": (0, 33)}, id="a release that refines the blocks"),
    ],
)
def test_ways_out_of_misaligned_expert_blocks(arguments):
    arguments = {"version": (0, 28)} | arguments
    assert problems(facts_of("Qwen3-235B-A22B-Instruct-2507-FP8"), **arguments) == ()


def test_pipeline_parallelism_is_refused_where_the_class_has_none():
    config = tiny_llama(num_hidden_layers=8)
    facts = facts_from(config)
    assert problems(facts, pipeline=2) == ()
    without = replace(facts, supports_pipeline_parallel=False)
    assert problems(without, pipeline=2) == (
        "LlamaForCausalLM has no pipeline parallelism in the engine",
    )


def test_a_card_nobody_knows_is_not_refused():
    assert problems(facts_of("gpt-oss-20b"), capability=None) == ()


def test_every_problem_is_named_at_once():
    facts = facts_from(config_of("gpt-oss-20b"))
    assert len(problems(facts, 3, capability=PASCAL)) >= 3


def test_stages_may_span_nodes():
    assert problems(facts_from(BAMBA_9B), 4, 4, gpus=4) == ()


@pytest.mark.parametrize(
    ("method", "bits", "group", "release", "want"),
    [
        pytest.param("fp8", 8, 0, (0, 13), (8, 0), id="fp8 before its weight-only way"),
        pytest.param("fp8", 8, 0, (0, 14), (7, 5), id="fp8 on Turing since 0.14"),
        pytest.param("gptq", 4, 128, (0, 9), (6, 0), id="gptq on Volta while V0 was there"),
        pytest.param("gptq", 4, 128, (0, 11), (7, 5), id="gptq since 0.11"),
        pytest.param("awq", 4, 128, (0, 6), (7, 5), id="awq never changed"),
        pytest.param("compressed-tensors", 4, 128, (0, 11), (8, 0), id="packed integers to 0.11"),
        pytest.param("compressed-tensors", 4, 128, (0, 12), (7, 5), id="packed integers since"),
        pytest.param("compressed-tensors", 4, 16, (0, 15), (8, 0), id="NVFP4 to 0.15"),
        pytest.param("modelopt", 4, 16, (0, 8), (10, 0), id="NVFP4 on Blackwell only, in 0.8"),
        pytest.param("modelopt", 8, 0, (0, 26), (8, 9), id="modelopt's fp8 to 0.26"),
        pytest.param("mxfp4", 4, 32, (0, 10), (8, 0), id="mxfp4"),
    ],
)
def test_the_oldest_card_of_a_release(method, bits, group, release, want):
    rows = {"mxfp4": (8, 0)}
    quantization = Quantization(
        method=method,
        weight_bits=bits,
        group_size=group,
        min_compute_capability=rows.get(method, (7, 5)),
    )
    assert least_capability(quantization, release) == want
