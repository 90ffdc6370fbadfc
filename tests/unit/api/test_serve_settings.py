"""What the flags and variables of a command ask of the engine."""

import shlex

import pytest

from shipfitter.api.serve_command import parse_serve_command
from shipfitter.api.serve_settings import serve_settings
from shipfitter.core.additions import AdapterSlots
from shipfitter.core.engines import EngineVersion
from shipfitter.errors import InvalidSpecError
from shipfitter.units import GIB


def asked(line, version="0.33.0", **environment):
    command = parse_serve_command(shlex.split(f"vllm serve a/b {line}"))
    return serve_settings(command, EngineVersion.parse(version), environment)


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("--max-model-len 32K", {"max_model_len": 32768}, id="a length with a suffix"),
        pytest.param("--max-num-seqs=64", {"max_num_seqs": 64}, id="sequences"),
        pytest.param("--device-memory-utilization 0.8", {"gpu_memory_utilization": 0.8},
                     id="utilization by its other name"),
        pytest.param("--no-enable-prefix-caching", {"enable_prefix_caching": False},
                     id="prefix caching off"),
        pytest.param("--no-enable-chunked-prefill", {"enable_chunked_prefill": False},
                     id="whole prefills"),
        pytest.param("--no-async-scheduling", {"async_scheduling": False}, id="one step at a time"),
        pytest.param("-dcp 2", {"decode_context_parallel_size": 2}, id="shared contexts"),
        pytest.param("--kv-cache-memory=8G", {"kv_cache_memory_bytes": 8 * GIB},
                     id="the log's own advice"),
        pytest.param("--kv-cache-memory '8 GiB'", {"kv_cache_memory_bytes": 8 * GIB},
                     id="bytes as people write them"),
        pytest.param("--mamba-ssm-cache-dtype float32", {"mamba_ssm_cache_dtype": "float32"},
                     id="recurrent state"),
        pytest.param("--cuda-graph-sizes 256", {"max_cudagraph_capture_size": 256},
                     id="one old graph size is the largest"),
        pytest.param("--cuda-graph-sizes 1 2", {"cudagraph_capture_sizes": (1, 2)},
                     id="more are the sizes"),
        pytest.param("""-cc '{"cudagraph_capture_sizes": [1, 4]}'""",
                     {"cudagraph_capture_sizes": (1, 4)}, id="sizes inside the compilation config"),
        pytest.param("-cc.cudagraph_mode=PIECEWISE", {"cudagraph_mode": "PIECEWISE"},
                     id="a graph mode"),
        pytest.param("-cc.cudagraph_mode=none", {"enforce_eager": True}, id="no graphs"),
        pytest.param("-O0", {"enforce_eager": True}, id="no optimisation is eager"),
        pytest.param("-O1", {"cudagraph_mode": "PIECEWISE"}, id="the first level"),
        pytest.param("""--compilation-config '{"full_cuda_graph": true}'""",
                     {"cudagraph_mode": "FULL"}, id="whole graphs by the older key"),
        pytest.param("--attention-backend flashinfer", {"attention_backend": "FLASHINFER"},
                     id="a backend"),
        pytest.param("--disable-custom-all-reduce", {"custom_all_reduce": False}, id="all-reduce"),
        pytest.param("""--limit-mm-per-prompt '{"image": 2, "video": 0}'""",
                     {"items_per_prompt": {"image": 2, "video": 0}}, id="limits as JSON"),
        pytest.param("--limit-mm-per-prompt image=2,video=0",
                     {"items_per_prompt": {"image": 2, "video": 0}}, id="limits of old"),
        pytest.param("""--limit-mm-per-prompt '{"image": {"count": 3, "width": 512}}'""",
                     {"items_per_prompt": {"image": 3}}, id="limits with sizes"),
        pytest.param("--limit-mm-per-prompt.image 4", {"items_per_prompt": {"image": 4}},
                     id="limits by dotted flags"),
        pytest.param("--limit-mm-per-prompt image=0,video=0", {"language_model_only": True},
                     id="no items at all: no towers"),
        pytest.param("--skip-mm-profiling", {"language_model_only": False,
                     "items_per_prompt": {"image": 0, "video": 0, "audio": 0}},
                     id="towers that are not profiled"),
        pytest.param("--spec-method mtp --spec-tokens 2",
                     {"speculative_method": "mtp", "num_speculative_tokens": 2}, id="drafts"),
        pytest.param("""-sc '{"method":"eagle3","model":"x/y","num_speculative_tokens":3}'""",
                     {"speculative_method": "eagle3", "num_speculative_tokens": 3},
                     id="drafts as JSON"),
        pytest.param("--speculative-model '[ngram]' --num-speculative-tokens 5",
                     {"speculative_method": "ngram", "num_speculative_tokens": 5},
                     id="drafts of old"),
    ],
)  # fmt: skip
def test_a_setting(line, want):
    engine = asked(line).engine
    assert {name: getattr(engine, name) for name in want} == want


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("-tp 2 -pp 4", {"tensor_parallel_size": 2, "pipeline_parallel_size": 4},
                     id="ranks and stages"),
        pytest.param("-dp 8 --enable-expert-parallel",
                     {"data_parallel_size": 8, "enable_expert_parallel": True}, id="experts"),
        pytest.param("--mm-encoder-tp-mode data", {"encoder_data_parallel": True}, id="towers"),
    ],
)  # fmt: skip
def test_a_layout(line, want):
    layout = asked(line).engine.layout
    assert {name: getattr(layout, name) for name in want} == want


@pytest.mark.parametrize(
    ("name", "value", "setting", "want"),
    [
        ("VLLM_USE_V2_MODEL_RUNNER", "0", "model_runner", "V1"),
        ("VLLM_USE_V2_MODEL_RUNNER", "1", "model_runner", "V2"),
        ("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "0", "estimates_graphs", False),
        ("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "1", "estimates_graphs", True),
        ("VLLM_USE_FLASHINFER_SAMPLER", "0", "flashinfer_sampler", False),
        ("VLLM_ATTENTION_BACKEND", "FLASH_ATTN", "attention_backend", "FLASH_ATTN"),
    ],
)
def test_a_variable(name, value, setting, want):
    assert getattr(asked("", **{name: value}).engine, setting) == want


def test_the_layers_of_each_stage():
    engine = asked("-pp 3", VLLM_PP_LAYER_PARTITION="20,22,22").engine
    assert engine.layout.pipeline_partition == (20, 22, 22)


def test_a_longer_length_is_allowed_by_a_variable():
    assert asked("", VLLM_ALLOW_LONG_MAX_MODEL_LEN="1").long_length_allowed
    assert not asked("").long_length_allowed


@pytest.mark.parametrize(
    ("version", "variable", "want"),
    [
        pytest.param("0.8.5", "0", ("0.8.5", True), id="the older engine of a newer release"),
        pytest.param("0.9.0", "1", ("0.9.0", False), id="the one it has anyway"),
        pytest.param("0.7.3", "1", ("0.8.0", False), id="the newer engine of an older release"),
    ],
)
def test_which_engine_counts(version, variable, want):
    engine = asked("", version, VLLM_USE_V1=variable).engine
    assert (str(engine.version), engine.legacy_engine) == want


@pytest.mark.parametrize(
    ("version", "want"),
    [("0.6.0", 512), ("0.6.6", 2048), ("0.11.0", None)],
)
def test_chunked_prefill_asked_of_the_older_engine(version, want):
    assert asked("--enable-chunked-prefill", version).engine.max_num_batched_tokens == want


@pytest.mark.parametrize(
    ("line", "setting", "want"),
    [
        pytest.param("--dtype half", "dtype", "float16", id="another name of a dtype"),
        pytest.param("-q fp8", "quantization", "fp8", id="a short flag"),
        pytest.param("--load-format bitsandbytes", "quantization", "bitsandbytes",
                     id="a format that quantises"),
        pytest.param("--max-model-len auto", "auto_length", True, id="the length may shrink"),
        pytest.param("--max-model-len -1", "auto_length", True, id="also by -1"),
        pytest.param("--max-model-len 4096", "auto_length", False, id="a length as asked"),
        pytest.param("--nnodes 2", "nodes", 2, id="nodes"),
        pytest.param("""--hf-overrides '{"max_position_embeddings": 9}'""", "config_overrides",
                     {"max_position_embeddings": 9}, id="keys of config.json"),
        pytest.param("""--rope-scaling '{"rope_type": "yarn", "factor": 4}'""", "config_overrides",
                     {"rope_scaling": {"rope_type": "yarn", "factor": 4}}, id="the older flag"),
        pytest.param("--disable-sliding-window", "whole_attention", True, id="no windows"),
        pytest.param("--cpu-offload-gb 4", "offloaded_bytes", 4 * GIB, id="weights elsewhere"),
        pytest.param("--enable-lora --max-loras 4 --max-lora-rank 64", "adapters",
                     AdapterSlots(max_loras=4, max_rank=64), id="adapters"),
        pytest.param("--max-loras 4", "adapters", None, id="adapters that are not enabled"),
        pytest.param("--enable-eplb --eplb-config.num_redundant_experts 16", "redundant_experts",
                     16, id="copies of experts"),
        pytest.param("--performance-mode throughput", "performance_mode", "throughput",
                     id="a performance mode"),
    ],
)  # fmt: skip
def test_what_changes_the_model(line, setting, want):
    assert getattr(asked(line), setting) == want


@pytest.mark.parametrize(
    ("line", "version", "want"),
    [
        pytest.param("--swap-space 4", "0.33.0", "no longer takes --swap-space", id="a flag gone"),
        pytest.param("--enable-dbo -dp 2", "0.33.0", "second set of work buffers",
                     id="not counted"),
        pytest.param("-sc '{method: mtp, num_speculative_tokens: 1}'", "0.33.0",
                     "takes JSON in quotes", id="quotes that the shell took"),
        pytest.param("--kv-cache-memory '8 GiB'", "0.33.0", "like 8G", id="a unit"),
    ],
)  # fmt: skip
def test_what_is_assumed(line, version, want):
    assert any(want in note for note in asked(line, version).assumptions)


def test_flags_without_effect_on_memory_are_taken_silently():
    found = asked("--port 80 --trust-remote-code --tool-call-parser hermes --seed 1 --api-key a b")
    assert found.assumptions == ()
    assert found == asked("")


def test_what_is_not_counted_widens_the_interval():
    extra = asked("--enable-dbo -dp 2 --enable-sleep-mode").engine.extra_bytes
    assert 0 <= extra.low < extra.point < extra.high


def test_memory_set_aside_for_items_is_exact():
    assert asked("--mm-ipc-gpu-memory-gb 2").engine.extra_bytes.point == 2 * GIB


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("--max-model-len abc", "--max-model-len takes a whole number", id="a word"),
        pytest.param("--gpu-memory-utilization 90", "above 0 and up to 1", id="percent"),
        pytest.param("--max-num-seqs", "--max-num-seqs takes a value, got nothing", id="no value"),
        pytest.param("--dtype fp4", "--dtype takes auto, bfloat16", id="an unknown dtype"),
        pytest.param("--hf-overrides '{bad'", "--hf-overrides takes JSON in quotes", id="no JSON"),
    ],
)
def test_a_value_that_cannot_be_meant(line, want):
    with pytest.raises(InvalidSpecError, match=want):
        asked(line)
