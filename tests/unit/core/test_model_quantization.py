"""Quantisation as each format declares it, and the modules it covers."""

import pytest

from builders_families import tiny_llama
from builders_models import config_of, facts_from, facts_of
from shipfitter.core.quantization import PLAIN, Coverage
from shipfitter.core.text_config import TextConfig


def coverage_of(block):
    return Coverage.read(TextConfig.read(tiny_llama(quantization_config=block), model="a/model"))


def group(targets=("Linear",), **weights):
    return {"targets": list(targets), "weights": weights}


@pytest.mark.parametrize(
    ("block", "want"),
    [
        pytest.param(
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            ("fp8_block", 8, 0),
            id="DeepSeek's block fp8",
        ),
        pytest.param({"quant_method": "fp8"}, ("fp8", 8, 0), id="per-tensor fp8"),
        pytest.param(
            {"quant_method": "awq", "bits": 4, "group_size": 64}, ("awq", 4, 64), id="AWQ"
        ),
        pytest.param(
            {"quant_method": "gptq", "bits": 8, "group_size": 128}, ("gptq", 8, 128), id="GPTQ"
        ),
        pytest.param(
            {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"},
            ("awq", 4, 128),
            id="AutoRound in AWQ's packing",
        ),
        pytest.param({"quant_method": "mxfp4"}, ("mxfp4", 4, 32), id="mxfp4"),
        pytest.param(
            {"quant_method": "modelopt", "quant_algo": "NVFP4"}, ("nvfp4", 4, 16), id="modelopt fp4"
        ),
        pytest.param(
            {"quant_method": "modelopt", "quant_algo": "FP8"}, ("fp8", 8, 0), id="modelopt fp8"
        ),
        pytest.param(
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": group(num_bits=4, type="int", group_size=32)},
            },
            ("packed_int", 4, 32),
            id="compressed-tensors w4a16",
        ),
        pytest.param(
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": group(num_bits=8, type="int", strategy="channel")},
            },
            ("int8", 8, 0),
            id="compressed-tensors w8a8",
        ),
        pytest.param(
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": group(num_bits=4, type="float", group_size=16)},
            },
            ("nvfp4", 4, 16),
            id="compressed-tensors nvfp4",
        ),
        pytest.param(
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": group(num_bits=8, type="float", block_structure=[128, 128])},
            },
            ("fp8_block", 8, 0),
            id="compressed-tensors block fp8",
        ),
    ],
)
def test_schemes(block, want):
    scheme = coverage_of(block).scheme_of("model.layers.0.mlp.up_proj")
    assert (scheme.layout, scheme.bits, scheme.group_size) == want


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        pytest.param("model.layers.1.mlp.gate", ["gate"], id="a word of the path"),
        pytest.param("model.layers.1.mlp.down_proj", ["model.layers.1.mlp.down_proj"], id="exact"),
        pytest.param("model.layers.1.self_attn.q_proj", ["model.layers.1.self_attn*"], id="a glob"),
        pytest.param("model.layers.1.self_attn.q_proj", ["re:.*self_attn.*"], id="an expression"),
        pytest.param(
            "model.layers.1.mlp.up_proj",
            ["model.language_model.layers.1.mlp.up_proj"],
            id="under a wrapper's prefix",
        ),
        pytest.param("model.layers.0.self_attn.k_proj", ["model.layers.*.self_attn"], id="inner *"),
    ],
)
def test_ignored_modules_stay_plain(path, ignored):
    coverage = coverage_of({"quant_method": "fp8", "modules_to_not_convert": ignored})
    assert coverage.scheme_of(path) is PLAIN
    assert coverage.scheme_of("model.layers.1.mlp.gate_proj") is not PLAIN


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            {"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*self_attn.*": {}}},
            id="GPTQModel's negative rules",
        ),
        pytest.param(
            {
                "quant_method": "auto-round",
                "bits": 4,
                "extra_config": {"model.layers.0.self_attn.q_proj": {"bits": 16}},
            },
            id="AutoRound's exceptions",
        ),
    ],
)
def test_exceptions_of_formats_that_keep_them_elsewhere(block):
    coverage = coverage_of(block)
    assert coverage.scheme_of("model.layers.0.self_attn.q_proj") is PLAIN
    assert coverage.scheme_of("model.layers.0.mlp.up_proj") is not PLAIN


def test_named_targets_come_before_the_rest():
    block = {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "all": group(num_bits=4, type="float", group_size=16),
            "some": group(["re:.*self_attn.*"], num_bits=8, type="float"),
        },
    }
    coverage = coverage_of(block)
    assert coverage.scheme_of("model.layers.0.self_attn.q_proj").layout == "fp8"
    assert coverage.scheme_of("model.layers.0.mlp.up_proj").layout == "nvfp4"


@pytest.mark.parametrize(
    ("block", "want"),
    [
        pytest.param({"quant_method": "fp8"}, None, id="nothing said"),
        pytest.param(
            {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, "fp8", id="modelopt fp8"
        ),
        pytest.param(
            {"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}, "nvfp4", id="modelopt fp4"
        ),
        pytest.param(
            {
                "quant_method": "compressed-tensors",
                "kv_cache_scheme": {"num_bits": 8, "type": "float"},
            },
            "fp8",
            id="compressed-tensors",
        ),
    ],
)
def test_a_checkpoint_may_ask_for_a_quantised_cache(block, want):
    assert facts_from(tiny_llama(quantization_config=block)).quantization.kv_cache_scheme == want


def test_modelopts_own_file_counts_as_the_quantisation():
    quantization = facts_of("NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4").quantization
    assert (quantization.method, quantization.weight_bits) == ("modelopt", 4.0)
    assert quantization.kv_cache_scheme == "fp8"


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("gpt-oss-120b", (8, 0), id="mxfp4 needs Ampere"),
        pytest.param("Qwen3-32B-AWQ", (7, 5), id="AWQ runs on Turing"),
        pytest.param("DeepSeek-V3", (7, 5), id="fp8 runs weight-only on Turing"),
    ],
)
def test_the_lowest_card_of_a_method(name, want):
    assert facts_of(name).quantization.min_compute_capability == want


def test_plain_checkpoints_have_none():
    assert facts_from(config_of("Llama-3.1-8B-Instruct")).quantization is None
