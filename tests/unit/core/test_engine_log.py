"""Logs as people paste them, and what each states: the excerpts in tests/data/logs.

The excerpts are ours, in the form the engine prints, with figures of runs reported in public.
"""

import json
from pathlib import Path

import pytest

from shipfitter.core.engine_log import read_log
from shipfitter.core.refusals import Refusal

LOGS = Path(__file__).parents[2] / "data" / "logs"
NAMES = sorted(path.stem for path in LOGS.glob("*.log"))


def text_of(name: str) -> str:
    return (LOGS / f"{name}.log").read_bytes().decode("utf-8")


def want_of(name: str) -> dict:
    return json.loads((LOGS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_log_states_and_nothing_else(name):
    want = want_of(name)
    got = read_log(text_of(name))
    stated = {fact: value for fact, value in got.read().items() if value is not None}
    assert (got.outcome, stated) == (want["outcome"], want["read"])


@pytest.mark.parametrize("name", [name for name in NAMES if "refusal" in want_of(name)])
def test_the_figures_a_refusal_names(name):
    want = want_of(name)["refusal"]
    refusal = read_log(text_of(name)).refusal
    assert refusal is not None
    assert {figure: getattr(refusal, figure) for figure in want} == want


def test_every_way_to_say_no_is_among_the_logs():
    assert {want_of(name)["outcome"] for name in NAMES} >= {str(refusal) for refusal in Refusal}


@pytest.mark.parametrize("release", ["0.6", "0.7", "0.8", "0.9", "0.10", "0.11", "0.13", "0.14"])
def test_old_releases_are_among_the_logs(release):
    assert any(name.startswith(f"v{release}.") or f"v{release}-" in name for name in NAMES)


def test_facts_have_the_names_that_compare_log_prints():
    assert tuple(read_log("").read()) == (
        "model",
        "engineVersion",
        "tensorParallelSize",
        "gpuMemoryUtilization",
        "maxModelLen",
        "weightsGib",
        "kvCacheMemoryGib",
        "kvCacheTokens",
        "numGpuBlocks",
        "maxConcurrency",
        "cudagraphGib",
        "activationPeakGib",
        "nonTorchGib",
        "totalGib",
        "freeGib",
        "requestedGib",
        "kvNeededGib",
        "kvAvailableGib",
        "estimatedMaxModelLen",
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Dear all, vLLM is slow on my machine. Any idea?", id="a letter"),
        pytest.param("INFO 11-30 03:36:54 [core.py:104] Hello", id="a line without a figure"),
        pytest.param('{"a": [1, 2', id="half an object"),
    ],
)
def test_a_text_that_states_nothing(text):
    got = read_log(text)
    assert (got.outcome, set(got.read().values()), got.says_anything) == ("Unknown", {None}, False)


def test_flags_are_those_the_engine_lists():
    line = (
        "(APIServer pid=1) INFO 11-30 10:00:00 [startup.py:96] non-default args: {'model_tag': "
        "'org/m', 'model': 'org/m', 'enforce_eager': True, 'max_model_len': 4096, 'limit_mm_per_"
        "prompt': {'image': 1}, 'kv_cache_dtype': 'fp8', 'hf_overrides': <function f at 0x7f>}"
    )
    got = read_log(line)
    assert got.flags_are_complete
    assert got.flags == {
        "model_tag": "org/m",
        "model": "org/m",
        "enforce_eager": True,
        "max_model_len": 4096,
        "limit_mm_per_prompt": "{'image': 1}",
        "kv_cache_dtype": "fp8",
        "hf_overrides": "<function f at 0x7f>",
    }


def test_flags_of_a_pasted_command():
    got = read_log(
        "$ VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B -tp 2 --gpu-memory-utilization=0.85 \\\n"
        "      --max-model-len 16384 --enforce-eager\n"
        "INFO 06-01 10:00:00 [gpu_worker.py:200] Available KV cache memory: 3.50 GiB\n"
    )
    assert (got.model, got.tensor_parallel_size) == ("Qwen/Qwen3-8B", 2)
    assert (got.gpu_memory_utilization, got.max_model_len) == (0.85, 16384)
    assert got.flags["enforce_eager"] is True
    assert not got.flags_are_complete


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(
            "Config file not found at /v/fused_moe/configs/E=128,N=192,"
            "device_name=NVIDIA_H100_80GB_HBM3.json",
            "NVIDIA_H100_80GB_HBM3",
            id="a missing table of tuned kernels",
        ),
        pytest.param(
            "Using configuration from /v/configs/N=3072,K=7168,device_name=NVIDIA_L20,"
            "dtype=fp8_w8a8,block_shape=[128,128].json for W8A8 Block FP8 kernel.",
            "NVIDIA_L20",
            id="a table with its formats",
        ),
        pytest.param(
            "|   0  NVIDIA GeForce RTX 3090        On  | 00000000:01:00.0 Off |       N/A |",
            "NVIDIA GeForce RTX 3090",
            id="nvidia-smi",
        ),
        pytest.param(
            "GPU 0: NVIDIA A10 (UUID: GPU-6f2)", "NVIDIA A10", id="the list of nvidia-smi"
        ),
    ],
)
def test_the_gpu_by_the_lines_that_name_it(line, want):
    assert read_log(line).gpu == want
