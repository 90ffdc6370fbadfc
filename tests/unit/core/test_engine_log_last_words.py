"""What a container said before it ended, as Kubernetes keeps it."""

import pytest

from shipfitter.core.engine_log import read_last_words
from shipfitter.core.refusals import Refusal

TOO_SMALL = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (8.18 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (7.04 GiB). Based on the "
    "available memory, the estimated maximum model length is 112896. Try increasing "
    "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing "
    "`max_model_len` when initializing the engine."
)
CORE = (
    "EngineCore failed to start.\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 1201, in '
    "run_engine_core\n    engine_core = EngineCoreProc(*args, **kwargs)\n"
)
FRONT = (
    'in wait_for_engine_startup\n    raise RuntimeError("Engine core "\n'
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)


def out_of_memory(frame: str) -> str:
    return (
        f'{CORE}  File "/v/vllm/v1/worker/gpu_worker.py", line 402, in {frame}\n    self.x()\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total "
        "capacity of 79.19 GiB of which 905.44 MiB is free."
    )


@pytest.mark.parametrize(
    ("message", "exit_code", "reason", "want"),
    [
        pytest.param(CORE + TOO_SMALL, 1, "Error", "KVCacheTooSmall", id="the core's own words"),
        pytest.param(TOO_SMALL[60:], 1, "Error", "KVCacheTooSmall", id="cut at the beginning"),
        pytest.param(out_of_memory("load_model"), 1, "Error", "OutOfMemoryLoad", id="loading"),
        pytest.param(out_of_memory("profile_run"), 1, "Error", "OutOfMemoryProfile", id="profile"),
        pytest.param(out_of_memory("capture_model"), 1, "Error", "OutOfMemoryGraphs", id="graphs"),
        pytest.param(out_of_memory("_dummy_sampler_run"), 1, "Error", "OutOfMemorySampler",
                     id="the sampler's warm-up"),
        pytest.param(out_of_memory("execute_model"), 1, "Error", "OutOfMemoryServing",
                     id="a request"),
        pytest.param(FRONT, 1, "Error", "Other", id="only the front's tail: no cause in it"),
        pytest.param("", 137, "OOMKilled", "HostOutOfMemory", id="killed by the kernel"),
        pytest.param(None, 137, "Error", "HostOutOfMemory", id="killed, nobody says why"),
        pytest.param("The node was low on resource: memory.", 137, "Evicted", "HostOutOfMemory",
                     id="evicted from a full node"),
        pytest.param(TOO_SMALL, 137, "Error", "KVCacheTooSmall", id="said its cause, then killed"),
        pytest.param(
            "OCI runtime create failed: nvidia-container-cli: requirement error: unsatisfied "
            "condition: cuda>=12.8, please update your driver to a newer version: unknown",
            128, "StartError", "DriverMismatch", id="the container toolkit refuses",
        ),
        pytest.param("", 139, "Error", "Other", id="a crash in native code"),
        pytest.param("Segmentation fault", 139, "Error", "Other", id="with a word"),
    ],
)  # fmt: skip
def test_last_words(message, exit_code, reason, want):
    refusal = read_last_words(message, exit_code, reason)
    assert refusal is not None
    assert (str(refusal.kind), refusal.exit_code) == (want, exit_code)


@pytest.mark.parametrize(
    ("message", "exit_code", "reason"),
    [
        pytest.param("", 0, "Completed", id="ended well"),
        pytest.param("", None, None, id="still there"),
        pytest.param(None, 0, None, id="no status at all"),
    ],
)
def test_no_refusal(message, exit_code, reason):
    assert read_last_words(message, exit_code, reason) is None


def test_the_engines_figures_arrive():
    refusal = read_last_words(CORE + TOO_SMALL, 1, "Error")
    assert refusal is not None
    assert (refusal.kv_needed_gib, refusal.kv_available_gib) == (8.18, 7.04)
    assert (refusal.estimated_max_model_len, refusal.max_model_len) == (112896, 131072)
    assert refusal.is_memory
    assert refusal.message.startswith("To serve at least one request")


def test_only_memory_refusals_ask_for_a_smaller_plan():
    gated = read_last_words("Cannot access gated repo for url https://hub/x", 1, "Error")
    assert gated is not None
    assert (gated.kind, gated.is_memory) == (Refusal.TOKEN_REQUIRED, False)
