"""vLLM's command line, as the stub takes it."""

import argparse
import ast
from pathlib import Path

import pytest

import world.engine
from world.engine.checks import check
from world.engine.config_error import ConfigError
from world.engine.flag_values import suffixed_int
from world.engine.flags import parse
from world.engine.lengths import derived_length
from world.engine.scenario import GIB, Device, Scenario, read_device
from world.engine.settings import resolve
from world.engine.versions import played_version
from world.hub import published_config, published_names

LATEST = (0, 33, 0)
QWEN = "Qwen/Qwen3-32B"


def h100(**changes) -> Device:
    h100 = {
        "total_bytes": int(79.19 * GIB),
        "free_bytes": int(78.66 * GIB),
        "free_is_measured_after_context": True,
        "nominal_bytes": 80 * GIB,
        "name": "NVIDIA H100 80GB HBM3",
        "compute_capability": (9, 0),
        "count": 1,
    }
    return Device(**h100 | changes)


def settings(flags: str, *, model: str = QWEN, version=LATEST, **changes):
    given = parse([model, *flags.split()], version, program="vllm serve")
    config = published_config(model)
    resolved = resolve(given, config, h100(**changes), version)
    check(resolved, given, config, h100(**changes))
    return resolved


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        pytest.param("--max-model-len 8192", {"max_model_len": 8192}, id="a plain number"),
        pytest.param("--max-model-len=8k", {"max_model_len": 8000}, id="k is a thousand"),
        pytest.param("--max-model-len 8K", {"max_model_len": 8192}, id="K is 1024"),
        pytest.param("--max-model-len auto", {"max_model_len": -1}, id="auto"),
        pytest.param("--max_num_seqs 8", {"max_num_seqs": 8}, id="underscores do as well"),
        pytest.param("-tp 2 -pp=3 -dp 1", {"tensor_parallel_size": 2}, id="short names"),
        pytest.param(
            "--no-enable-prefix-caching", {"enable_prefix_caching": False}, id="a switch turned off"
        ),
        pytest.param("--enforce-eager", {"enforce_eager": True}, id="a switch turned on"),
        pytest.param(
            "--kv-cache-memory=64M", {"kv_cache_memory_bytes": 64 * 2**20}, id="a shortened name"
        ),
        pytest.param(
            "--device-memory-utilization 0.9",
            {"gpu_memory_utilization": 0.9},
            id="the other name of utilization",
        ),
        pytest.param(
            '--speculative-config {"num_speculative_tokens":3}',
            {"speculative_config": {"num_speculative_tokens": 3}},
            id="JSON",
        ),
        pytest.param(
            "--compilation-config.cudagraph_mode=NONE --compilation-config.level 3",
            {"compilation_config": {"cudagraph_mode": "NONE", "level": 3}},
            id="JSON by dotted keys",
        ),
        pytest.param("-O3", {"optimization_level": 3}, id="an optimisation level"),
        pytest.param(
            "--cudagraph-capture-sizes 1 2 4",
            {"cudagraph_capture_sizes": ["1", "2", "4"]},
            id="a list",
        ),
        pytest.param(
            "--served-model-name a b", {"served_model_name": ["a", "b"]}, id="several names"
        ),
    ],
)
def test_a_flag_is_read_as_the_engine_reads_it(flags, want):
    given = parse(["m", *flags.split()], LATEST, program="vllm serve")
    assert {key: given[key] for key in want} == want


@pytest.mark.parametrize(
    ("flags", "version", "want"),
    [
        pytest.param(
            "--frobnicate 3",
            LATEST,
            "vllm: error: unrecognized arguments: --frobnicate 3",
            id="unknown",
        ),
        pytest.param(
            "--swap-space 4",
            LATEST,
            "vllm: error: unrecognized arguments: --swap-space 4",
            id="removed in 0.18",
        ),
        pytest.param(
            "--device-memory-utilization 0.9",
            (0, 30, 0),
            "unrecognized arguments: --device-memory-utilization 0.9",
            id="not there before 0.31",
        ),
        pytest.param(
            "--max-num-seqs many",
            LATEST,
            "vllm serve: error: argument --max-num-seqs: invalid int value: 'many'",
            id="no number",
        ),
        pytest.param(
            "--speculative-config {",
            LATEST,
            "Value { cannot be converted to json.",
            id="half a JSON",
        ),
    ],
)
def test_a_bad_flag_ends_with_code_2(flags, version, want, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(["m", *flags.split()], version, program="vllm serve")
    assert caught.value.code == 2
    assert want in capsys.readouterr().err


def test_a_flag_that_was_removed_is_known_to_the_release_before():
    assert parse(["m", "--swap-space", "4"], (0, 17, 1), program="vllm serve")["swap_space"] == 4


def test_fractions_with_binary_suffixes_are_refused():
    assert suffixed_int("25.6k") == 25_600
    with pytest.raises(argparse.ArgumentTypeError, match="Decimals are not allowed"):
        suffixed_int("25.6K")


@pytest.mark.parametrize(
    ("changes", "version", "want"),
    [
        pytest.param({}, LATEST, (1024, 8192), id="from 70 GiB on"),
        pytest.param({"name": "NVIDIA A100-SXM4-80GB"}, LATEST, (256, 2048), id="save the A100"),
        pytest.param({"nominal_bytes": 45 * GIB}, LATEST, (256, 2048), id="below"),
        pytest.param({"nominal_bytes": 178 * GIB}, LATEST, (1024, 16384), id="from 160 GiB on"),
        pytest.param(
            {"nominal_bytes": 178 * GIB}, (0, 27, 1), (1024, 8192), id="which came with 0.28"
        ),
    ],
)
def test_batch_defaults_follow_the_card(changes, version, want):
    got = settings("", version=version, **changes)
    assert (got.sequences, got.batched_tokens) == want


def test_batched_tokens_are_capped_by_sequences_times_length():
    assert settings("--max-num-seqs 2 --max-model-len 1024").batched_tokens == 2048


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        pytest.param(
            "--max-num-batched-tokens 64 --max-num-seqs 128",
            "max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128).",
            id="fewer batched tokens than sequences",
        ),
        pytest.param(
            "-tp 2",
            "World size (2) is larger than the number of available GPUs (1) in this node.",
            id="more ranks than GPUs",
        ),
        pytest.param(
            "-tp 3 --distributed-executor-backend ray",
            "Total number of attention heads (64) must be divisible by tensor parallel size (3).",
            id="heads that do not divide",
        ),
        pytest.param(
            "--max-model-len 40961",
            "User-specified max_model_len (40961) is greater than the derived max_model_len "
            "(max_position_embeddings=40960.0",
            id="longer than the model",
        ),
        pytest.param(
            "--no-enable-chunked-prefill --max-num-batched-tokens 1024",
            "max_num_batched_tokens (1024) is smaller than max_model_len (40960)",
            id="whole prompts that do not fit a batch",
        ),
        pytest.param("--gpu-memory-utilization 1.2", "Got 1.2.", id="more than all memory"),
    ],
)
def test_a_setting_is_refused_in_the_engines_words(flags, want):
    with pytest.raises(ConfigError) as caught:
        settings(flags)
    assert want in str(caught.value)


def test_the_other_pods_of_a_group_bring_their_gpus():
    assert settings("-tp 1 -pp 2 --nnodes 2").pipeline == 2


@pytest.mark.parametrize(
    ("name", "version", "want"),
    [
        pytest.param("meta-llama/Llama-3.1-8B-Instruct", LATEST, 131_072, id="llama3 scaling"),
        pytest.param("openai/gpt-oss-20b", LATEST, 131_072, id="yarn as it stands since 0.29"),
        pytest.param("deepseek-ai/DeepSeek-V3", (0, 28, 0), 163_840, id="yarn by factor before"),
        pytest.param("google/gemma-3-27b-it", LATEST, 131_072, id="gemma 3 is not scaled"),
    ],
)
def test_the_length_a_config_promises(name, version, want):
    assert derived_length(published_config(name), version) == want


@pytest.mark.parametrize(
    ("environment", "want_count"),
    [
        pytest.param({}, 8, id="all of the node"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "all"}, 8, id="all, said so"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, 2, id="those of the pod"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "void"}, None, id="none"),
    ],
)
def test_visible_gpus_are_counted(environment, want_count):
    environment["ENGINE_STUB_DEVICE"] = '{"total_bytes": 1000, "count": 8}'
    found = read_device(Scenario(), environment)
    assert (found.count if found else None) == want_count


def test_an_unknown_scenario_field_is_a_mistake_in_the_test():
    with pytest.raises(SystemExit, match="no such scenario field: \\['totl_gib'\\]"):
        Scenario.read({"ENGINE_STUB_SCENARIO": '{"totl_gib": 1}'})


def test_only_releases_that_are_known_are_played():
    assert played_version("v0.20.1") == (0, 20, 1)
    with pytest.raises(SystemExit, match="is not played"):
        played_version("0.11.0")


@pytest.mark.parametrize("name", published_names())
def test_every_published_model_resolves(name):
    assert settings("", model=name).length >= 40_960


def test_nothing_of_the_product_is_imported():
    folder = Path(world.engine.__file__).parent
    imported = {
        name
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported
    assert not [name for name in imported if name.split(".")[0] == "shipfitter"]
