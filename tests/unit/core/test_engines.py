"""Versions, defaults and derived lengths: what the engine fills in where nothing is asked."""

from dataclasses import fields, replace

import pytest

from builders_core import (
    card,
    deepseek_v3,
    deepseek_v32,
    gemma3_27b,
    gpt_oss_20b,
    llama_8b,
    model,
    qwen3_32b,
    qwen3_next,
    qwen36_27b,
    resolved,
    settings,
)
from shipfitter.core.engines import (
    EngineSettings,
    EngineVersion,
    Gpu,
    derived_max_model_len,
    resolve,
)
from shipfitter.core.model import Quantization
from shipfitter.core.weights import ParallelLayout
from shipfitter.errors import UnknownEngineError
from shipfitter.units import GIB


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("0.33.0", "0.33.0", id="a release"),
        pytest.param("v0.11.2", "0.11.2", id="an image tag"),
        pytest.param("0.33", "0.33.0", id="a release without a patch"),
        pytest.param("v0.20.1rc1", "0.20.1", id="a candidate counts as its release"),
        pytest.param("0.10.1.dev101+gbda9d0535", "0.10.1", id="a development build"),
        pytest.param("v0.33.0-cu130", "0.33.0", id="a tag with the CUDA version"),
        pytest.param("1.2.0", "1.2.0", id="a release to come"),
    ],
)
def test_versions_are_read_from_releases_and_tags(text, want):
    assert str(EngineVersion.parse(text)) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("latest", id="a moving tag"),
        pytest.param("sha256:0f3a", id="a digest"),
        pytest.param("0.5.4", id="before the oldest known"),
        pytest.param("", id="nothing"),
        pytest.param("0.33.0.1.2", id="too many parts"),
    ],
)
def test_other_texts_are_refused_with_the_way_out(text):
    with pytest.raises(UnknownEngineError, match=r"engine version: .*(name one like|use 0\.6)"):
        EngineVersion.parse(text)


def test_versions_are_ordered_and_newer_ones_are_known_as_such():
    assert EngineVersion.parse("0.9.2") < EngineVersion.parse("0.10.0")
    assert not EngineVersion.parse("0.33.4").is_newer_than_known
    assert EngineVersion.parse("0.34.0").is_newer_than_known
    assert settings("0.40.0").rules == settings("0.33.0").rules
    assert str(EngineSettings.latest().version) == "0.33.0"


H100 = card()
A100 = card("NVIDIA-A100-SXM4-80GB")
B200 = card("NVIDIA-B200", nominal_bytes=180 * GIB)
L4 = card("NVIDIA-L4")
GB10 = Gpu(product="NVIDIA-GB10", total_bytes=121 * GIB, compute_capability=(12, 1))


@pytest.mark.parametrize(
    ("version", "gpu", "want"),
    [
        pytest.param("0.33.0", H100, (8192, 1024), id="H100"),
        pytest.param("0.33.0", L4, (2048, 256), id="a small card"),
        pytest.param("0.33.0", A100, (2048, 256), id="A100 counts as small"),
        pytest.param("0.8.5", A100, (8192, 1024), id="in 0.8 A100 counts as large"),
        pytest.param("0.33.0", B200, (16384, 1024), id="from 160 GiB on"),
        pytest.param("0.27.1", B200, (8192, 1024), id="before 0.28 there is no third tier"),
        pytest.param("0.33.0", GB10, (2048, 256), id="GB10, by compute capability"),
        pytest.param("0.32.0", GB10, (2048, 256), id="GB10, by name"),
        pytest.param("0.7.3", H100, (32768, 256), id="before V1 a batch holds a whole prompt"),
    ],
)
def test_default_batch_sizes(version, gpu, want):
    got = resolved(llama_8b(), gpu, version, max_model_len=32768)
    assert (got.max_num_batched_tokens, got.max_num_seqs) == want


@pytest.mark.parametrize(
    ("version", "asked", "want"),
    [
        pytest.param(
            "0.33.0", {"max_model_len": 512, "max_num_seqs": 2}, (1024, 2), id="capped by both"
        ),
        pytest.param(
            "0.11.0", {"max_model_len": 512, "max_num_seqs": 2}, (2048, 2), id="not before 0.12"
        ),
        pytest.param(
            "0.33.0", {"max_num_batched_tokens": 100}, (100, 100), id="sequences fit the batch"
        ),
        pytest.param(
            "0.33.0", {"enable_chunked_prefill": False}, (131072, 256), id="whole prompts"
        ),
    ],
)
def test_batch_sizes_adjust_to_each_other(version, asked, want):
    got = resolved(llama_8b(), L4, version, **asked)
    assert (got.max_num_batched_tokens, got.max_num_seqs) == want


FP8 = Quantization(method="fp8", weight_bits=8)


@pytest.mark.parametrize(
    ("version", "facts", "want"),
    [
        pytest.param("0.21.0", qwen3_32b(), "V1", id="nothing before 0.22"),
        pytest.param("0.22.0", qwen3_32b(), "V2", id="Qwen3 first"),
        pytest.param("0.22.0", replace(qwen3_32b(), quantization=FP8), "V1", id="not quantised"),
        pytest.param("0.22.0", llama_8b(), "V1", id="Llama not yet"),
        pytest.param("0.23.0", llama_8b(), "V2", id="Llama in 0.23"),
        pytest.param("0.24.0", gemma3_27b(), "V1", id="other dense models not before 0.25"),
        pytest.param("0.25.0", gemma3_27b(), "V2", id="every dense model from 0.25 on"),
        pytest.param("0.28.0", gpt_oss_20b(), "V1", id="experts not before 0.29"),
        pytest.param("0.28.0", qwen36_27b(), "V1", id="hybrids not before 0.29"),
        pytest.param("0.29.0", qwen3_next(), "V2", id="everything from 0.29 on"),
    ],
)
def test_model_runner(version, facts, want):
    assert resolved(facts, version=version).model_runner == want


@pytest.mark.parametrize(
    ("version", "facts", "asked", "want"),
    [
        pytest.param("0.33.0", llama_8b(), None, True, id="attention models cache prefixes"),
        pytest.param("0.7.0", llama_8b(), None, False, id="not before V1"),
        pytest.param("0.33.0", llama_8b(), False, False, id="unless told not to"),
        pytest.param("0.27.1", qwen3_next(), None, False, id="hybrids not by default to 0.27"),
        pytest.param("0.28.0", qwen3_next(), None, True, id="hybrids by default from 0.28 on"),
        pytest.param("0.26.0", qwen3_next(), True, True, id="hybrids when asked from 0.15 on"),
        pytest.param("0.14.0", qwen3_next(), True, False, id="in 0.12-0.14 listed classes only"),
        pytest.param(
            "0.13.0",
            replace(qwen3_next(), architecture="NemotronHForCausalLM"),
            True,
            True,
            id="in 0.12-0.14 a listed class",
        ),
        pytest.param("0.11.0", qwen3_next(), True, False, id="never in 0.10-0.11"),
    ],
)
def test_prefix_caching(version, facts, asked, want):
    got = resolved(facts, version=version, enable_prefix_caching=asked)
    assert got.enable_prefix_caching is want


@pytest.mark.parametrize(
    ("facts", "gpu", "version", "asked", "want_count", "want_largest"),
    [
        pytest.param(llama_8b(), L4, "0.33.0", {}, 51, 512, id="256 sequences"),
        pytest.param(llama_8b(), H100, "0.10.0", {}, 67, 512, id="steps of eight up to 0.10"),
        pytest.param(llama_8b(), H100, "0.7.3", {}, 35, 256, id="35 before V1"),
        pytest.param(llama_8b(), B200, "0.28.0", {}, 83, 1024, id="to 1,024 on Blackwell"),
        pytest.param(llama_8b(), B200, "0.27.0", {}, 51, 512, id="but not before 0.28"),
        pytest.param(gpt_oss_20b(), H100, "0.19.0", {}, 83, 1024, id="gpt-oss to 1,024"),
        pytest.param(llama_8b(), L4, "0.33.0", {"max_num_seqs": 16}, 7, 32, id="16 sequences"),
        pytest.param(
            llama_8b(), L4, "0.33.0", {"max_num_seqs": 5}, 5, 10, id="the cap itself is captured"
        ),
        pytest.param(llama_8b(), L4, "0.33.0", {"enforce_eager": True}, 0, 0, id="none when eager"),
        pytest.param(
            llama_8b(),
            L4,
            "0.33.0",
            {"max_cudagraph_capture_size": 64},
            11,
            64,
            id="the user's largest",
        ),
        pytest.param(
            llama_8b(),
            L4,
            "0.33.0",
            {"cudagraph_capture_sizes": (8, 1)},
            2,
            8,
            id="the user's own list",
        ),
    ],
)
def test_captured_sizes(*, facts, gpu, version, asked, want_count, want_largest):
    got = resolved(facts, gpu, version, **asked)
    assert len(got.cudagraph_capture_sizes) == want_count
    assert got.max_cudagraph_capture_size == want_largest
    assert list(got.cudagraph_capture_sizes) == sorted(got.cudagraph_capture_sizes)


def test_drafts_multiply_the_captured_sizes():
    got = resolved(llama_8b(), L4, max_num_seqs=4, num_speculative_tokens=3)
    assert {4, 8, 16, 32} <= set(got.cudagraph_capture_sizes)  # 1, 2, 4 and 8 requests
    assert got.max_cudagraph_capture_size == 2 * 4 * (1 + 3)


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param({"version": "0.33.0"}, 2, id="asynchronous on one stage"),
        pytest.param({"version": "0.13.0"}, 1, id="synchronous up to 0.13"),
        pytest.param({"async_scheduling": False}, 1, id="synchronous when asked"),
        pytest.param({"stages": 4}, 5, id="V2 keeps one more than its stages"),
        pytest.param({"stages": 4, "model_runner": "V1"}, 4, id="V1 as many as its stages"),
        pytest.param({"stages": 4, "async_scheduling": False}, 4, id="synchronous stages"),
    ],
)
def test_batches_in_flight(asked, want):
    layout = ParallelLayout(pipeline_parallel_size=asked.pop("stages", 1))
    assert resolved(llama_8b(), layout=layout, **asked).max_concurrent_batches == want


def test_tokens_in_flight_count_every_batch_only_from_026():
    asked = {"async_scheduling": True, "max_num_batched_tokens": 2048}
    assert resolved(llama_8b(), version="0.25.0", **asked).in_flight_tokens == 2048
    assert resolved(llama_8b(), version="0.26.0", **asked).in_flight_tokens == 4096


@pytest.mark.parametrize(
    ("facts", "gpu", "version", "asked", "want"),
    [
        pytest.param(llama_8b(), H100, "0.33.0", {}, 16, id="sixteen for ordinary attention"),
        pytest.param(deepseek_v3(), A100, "0.33.0", {}, 16, id="latent attention in Triton"),
        pytest.param(deepseek_v3(), H100, "0.10.0", {}, 64, id="FlashMLA"),
        pytest.param(
            deepseek_v3(), H100, "0.33.0", {"kv_cache_dtype": "fp8"}, 64, id="fp8 needs FlashMLA"
        ),
        pytest.param(deepseek_v3(), B200, "0.10.0", {}, 128, id="CUTLASS"),
        pytest.param(deepseek_v32(), H100, "0.33.0", {}, 64, id="sparse attention"),
        pytest.param(
            deepseek_v3(), H100, "0.33.0", {"attention_backend": "FLASHMLA"}, 64, id="its backend"
        ),
        pytest.param(
            deepseek_v3(), B200, "0.33.0", {"attention_backend": "CUTLASS_MLA"}, 128, id="another"
        ),
        pytest.param(llama_8b(), H100, "0.33.0", {"block_size": 32}, 32, id="as asked"),
    ],
)
def test_block_size(facts, gpu, version, asked, want):
    assert resolved(facts, gpu, version, **asked).block_size == want


@pytest.mark.parametrize(
    ("keys", "version", "want"),
    [
        pytest.param({"max_position_embeddings": 40960}, "0.33.0", 40960, id="as stated"),
        pytest.param({"n_positions": 1024, "seq_length": 2048}, "0.33.0", 1024, id="the smallest"),
        pytest.param({}, "0.33.0", 2048, id="nothing stated"),
        pytest.param(
            {"max_position_embeddings": 131072, "model_max_length": 8192},
            "0.33.0",
            8192,
            id="model_max_length replaces the others",
        ),
        pytest.param(
            {
                "max_position_embeddings": 8192,
                "rope_scaling": {"rope_type": "linear", "factor": 4.0},
            },
            "0.33.0",
            32768,
            id="linear scaling stretches",
        ),
        pytest.param(
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
            },
            "0.33.0",
            131072,
            id="llama3 is already in the figure",
        ),
        pytest.param(
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {
                    "type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 32768,
                },
            },
            "0.28.0",
            131072,
            id="YaRN multiplies up to 0.28",
        ),
        pytest.param(
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {
                    "type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 32768,
                },
            },
            "0.29.0",
            32768,
            id="and is taken as it stands from 0.29 on",
        ),
        pytest.param(
            {
                "max_position_embeddings": 131072,
                "original_max_position_embeddings": 4096,
                "rope_scaling": {"type": "longrope"},
            },
            "0.33.0",
            4096,
            id="longrope starts at its original length",
        ),
    ],
)
def test_derived_length(keys, version, want):
    facts = model([], length_keys=keys)
    assert derived_max_model_len(facts, EngineVersion.parse(version)) == want


def test_gemma_3_is_never_stretched():
    keys = {"max_position_embeddings": 131072, "rope_scaling": {"type": "linear", "factor": 8.0}}
    facts = replace(gemma3_27b(), length_keys=keys)
    assert derived_max_model_len(facts, EngineVersion.parse("0.33.0")) == 131072


@pytest.mark.parametrize(
    ("version", "want"),
    [
        pytest.param("0.19.1", 0.90, id="up to 0.19"),
        pytest.param("0.20.0", 0.92, id="from 0.20 on"),
    ],
)
def test_default_utilization(version, want):
    assert resolved(llama_8b(), version=version).gpu_memory_utilization == want


def test_resolving_leaves_nothing_open_and_is_stable():
    never_derived = {
        "attention_backend",
        "calibrated",
        "cudagraph_mode",
        "estimates_graphs",
        "flashinfer_sampler",
        "items_per_prompt",
        "kv_cache_memory_bytes",
        "legacy_engine",
        "num_gpu_blocks_override",
        "speculative_method",
    }
    once = resolved(qwen3_next())
    still_open = {field.name for field in fields(once) if getattr(once, field.name) is None}
    assert still_open == never_derived
    assert resolve(once, qwen3_next(), card()) == once
