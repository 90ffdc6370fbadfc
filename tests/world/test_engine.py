"""The stub as a process: it starts, serves, refuses and dies as the real engine does."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from world.hub import Hub, published_repo, repository

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
SMALL = "Qwen/Qwen3-0.6B"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
H100 = {"total_gib": 79.19, "free_gib": 78.66, "name": "NVIDIA H100 80GB HBM3"}
START_SECONDS = 30.0
LAST_WORDS = {  # as the operator writes it: the console as users know it, errors in a file besides
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "vllm": {
            "class": "vllm.logging_utils.NewLineFormatter",
            "datefmt": "%m-%d %H:%M:%S",
            "format": "%(levelname)s %(asctime)s [%(fileinfo)s:%(lineno)d] %(message)s",
        },
        "short": {"format": "%(message)s"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "vllm",
            "stream": "ext://sys.stdout",
        }
    },
    "loggers": {"vllm": {"handlers": ["console", "last"], "level": "INFO", "propagate": False}},
}


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    repositories = [published_repo(name) for name in (LLAMA, SMALL, NEXT)]
    repositories.append(
        published_repo("Qwen/Qwen3-32B", gated=True, accepted_tokens=("hf_ok",), refs=("main",))
    )
    repositories.append(repository("org/empty", config={"model_type": "llama"}))
    with Hub(*repositories) as serving:
        yield serving


@pytest.fixture(autouse=True)
def no_faults(hub: Hub) -> Iterator[None]:
    yield
    hub.switch()


def environment(hub: Hub, scenario: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "VLLM"))}
    device = {"start_delay_seconds": 0.02, **H100, **(scenario or {})}
    return kept | {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "HF_ENDPOINT": hub.endpoint,
        "ENGINE_STUB_SCENARIO": json.dumps(device),
        **more,
    }


def run(arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A start that ends by itself; output and errors in one."""
    return subprocess.run(
        [sys.executable, "-m", "world.engine", *arguments.split()],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


class Engine:
    """A serving process."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        self.process = process
        self.base = f"http://127.0.0.1:{port}"
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.base + path, timeout=5) as answer:
            return answer.read().decode()

    def post(self, path: str, body: dict[str, Any]) -> str:
        request = urllib.request.Request(self.base + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.read().decode()


@contextmanager
def serving(arguments: str, env: dict[str, str], tmp_path: Path) -> Iterator[Engine]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log"
    command = [sys.executable, "-m", "world.engine", *arguments.split()]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as opened:
        process = subprocess.Popen(
            command, env=env, stdout=opened, stderr=subprocess.STDOUT, text=True
        )
    engine = Engine(process, port, log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert process.poll() is None, engine.log
            assert time.monotonic() < deadline, engine.log
            try:
                engine.get("/health")
                break
            except OSError:
                time.sleep(0.02)
        yield engine
    finally:
        process.kill()
        process.wait()


def metric(page: str, name: str) -> float:
    (value,) = re.findall(rf"^vllm:{name}{{.*}} (\S+)$", page, re.MULTILINE)
    return float(value)


def label(page: str, name: str) -> str:
    (value,) = re.findall(rf'^vllm:cache_config_info{{.*[{{,]{name}="([^"]*)"', page, re.MULTILINE)
    return value


def test_a_start_that_fits_logs_serves_and_stops(hub, tmp_path):
    flags = f"serve {LLAMA} --max-num-seqs 64 --served-model-name llama-8b {LLAMA}"
    with serving(flags, environment(hub), tmp_path) as engine:
        models = json.loads(engine.get("/v1/models"))["data"]
        assert [model["id"] for model in models] == ["llama-8b", LLAMA]
        assert models[0]["max_model_len"] == 131_072
        assert json.loads(engine.get("/version")) == {"version": "0.33.0"}
        page = engine.get("/metrics")
        tokens = int(label(page, "kv_cache_size_tokens"))
        assert int(label(page, "num_gpu_blocks")) * 16 == tokens
        assert float(label(page, "kv_cache_max_concurrency")) == tokens / 131_072
        assert label(page, "enable_prefix_caching") == "True"
        assert metric(page, "num_requests_running") == 0
        wanted_order = [
            "non-default args: {'model_tag': ",
            "Model loading took 14.99 GiB memory and ",
            "Available KV cache memory: ",
            f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for 131,072 tokens",
            "Graph capturing finished in ",
            "Desired GPU memory utilization is (0.92, 72.85 GiB)",
            "Application startup complete.",
        ]
        places = [engine.log.index(words) for words in wanted_order]
        assert places == sorted(places)
        stopping = time.monotonic()
        engine.process.send_signal(signal.SIGTERM)
        assert engine.process.wait(5) == 0
        assert time.monotonic() - stopping < 1.0


def test_it_answers_completions_and_counts_them(hub, tmp_path):
    with serving(f"--model {SMALL} --max-model-len 1024", environment(hub), tmp_path) as engine:
        chat = {"model": SMALL, "messages": [{"role": "user", "content": "hello"}]}
        answer = json.loads(engine.post("/v1/chat/completions", chat))
        assert answer["choices"][0]["message"]["content"]
        streamed = engine.post("/v1/completions", {"prompt": "hello", "stream": True})
        assert streamed.endswith("data: [DONE]\n\n")
        with pytest.raises(urllib.error.HTTPError) as caught:
            engine.post("/v1/completions", {"prompt": "x" * 5000})
        with caught.value as refusal:
            assert "maximum context length is 1024 tokens" in refusal.read().decode()
        page = engine.get("/metrics")
        assert metric(page, "prompt_tokens_total") > 0
        assert metric(page, "request_success_total") == 2


def test_a_test_sets_its_load_health_and_death(hub, tmp_path):
    env = environment(hub, {"exit_code": 137})
    with serving(f"serve {SMALL}", env, tmp_path) as engine:
        engine.post("/_stub", {"running": 5, "waiting": 3, "preemptions": 8, "healthy": False})
        page = engine.get("/metrics")
        assert metric(page, "num_requests_running") == 5
        assert metric(page, "num_requests_waiting") == 3
        assert metric(page, "num_preemptions_total") == 8
        with pytest.raises(urllib.error.HTTPError, match="503"):
            engine.get("/health")
        engine.post("/_stub", {"die": "oom"})
        assert engine.process.wait(5) == 137
        assert "CUDA out of memory" in engine.log


def test_its_own_load_test_runs_against_it(hub, tmp_path):
    with serving(f"serve {SMALL}", environment(hub), tmp_path) as engine:
        bench = (
            f"bench serve --backend openai --base-url {engine.base} --model {SMALL} --num-prompts "
            f"12 --max-concurrency 4 --random-input-len 20 --dataset-name random --save-result "
            f"--result-dir {tmp_path} --result-filename r.json"
        )
        assert run(bench, environment(hub)).returncode == 0
        figures = json.loads((tmp_path / "r.json").read_text())
        assert (figures["completed"], figures["failed"]) == (12, 0)
        assert metric(engine.get("/metrics"), "request_success_total") == 12


def test_it_dies_by_itself_with_the_code_asked_for(hub):
    scenario = {"crash_after_seconds": 0.05, "exit_code": -9}
    env = environment(hub, scenario, POD_LISTEN_ADDRESS="127.3.2.1")
    assert run(f"serve {SMALL} --port 18123", env).returncode == -signal.SIGKILL


def test_all_interfaces_means_the_pods_own_address(hub):
    env = environment(hub, {"crash_after_seconds": 0.05}, POD_LISTEN_ADDRESS="127.3.2.1")
    done = run(f"serve {SMALL} --host 0.0.0.0 --port 18123", env)
    assert "Starting vLLM API server 0 on http://127.3.2.1:18123" in done.stdout


@pytest.mark.parametrize(
    ("flags", "scenario", "want"),
    [
        pytest.param(
            f"{LLAMA} --max-model-len 131072",
            {"total_gib": 24.0, "free_gib": 23.5},
            "ValueError: To serve at least one request with the model's max seq len (131072), "
            "(16.0 GiB KV cache is needed, which is larger than the available KV cache memory",
            id="one request does not fit",
        ),
        pytest.param(
            f"{LLAMA} --gpu-memory-utilization 0.2",
            {},
            "ValueError: No available memory for the cache blocks. Try increasing",
            id="nothing is left for the cache",
        ),
        pytest.param(
            SMALL,
            {"free_gib": 40.0},
            "ValueError: Free memory on device cuda:0 (40.0/79.19 GiB) on startup is less than "
            "desired GPU memory utilization (0.92, 72.85 GiB). Decrease",
            id="the card is in use",
        ),
        pytest.param(
            f"{NEXT} -tp 2 --max-num-seqs 1024 --max-model-len 8192",
            {"gpus": 2, "total_gib": 90.0, "free_gib": 89.5, "activation_gib": 0.5},
            "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (",
            id="a hybrid's state blocks are too few",
        ),
        pytest.param(
            LLAMA,
            {"total_gib": 14.0, "free_gib": 13.9},
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate",
            id="the weights do not fit",
        ),
        pytest.param(
            LLAMA,
            {"oom_in": "profile"},
            "profile_run\n",
            id="out of memory in the profile run",
        ),
        pytest.param(
            SMALL,
            {"graphs_gib": 20.0, "graph_estimate_gib": 0.1},
            "capture_end()",
            id="graphs larger than what was charged for them",
        ),
        pytest.param(
            f"{SMALL} --gpu-memory-utilization 0.99",
            {"sampler_gib": 3.0},
            "_warm_up_sampler(",
            id="the sampler's warm-up does not fit beside the request",
        ),
        pytest.param(
            f"{SMALL} --kv-cache-memory-bytes 90G",
            {},
            "initialize_kv_cache(kv_cache_config)",
            id="a cache asked for by bytes that are not there",
        ),
    ],
)
def test_the_core_refuses_in_the_engines_words(hub, flags, scenario, want):
    done = run(f"serve {flags}", environment(hub, scenario))
    assert done.returncode == 1
    assert want in re.sub(r"^\(\w+ pid=\d+\) ", "", done.stdout, flags=re.MULTILINE)
    tail = "\n".join(done.stdout.splitlines()[-80:])[-2048:]
    assert "See root cause above" in tail
    assert want not in tail


def test_an_older_runner_words_the_samplers_memory_itself(hub):
    env = environment(hub, {"oom_in": "sampler"}, ENGINE_STUB_VERSION="0.19.0")
    done = run(f"serve {SMALL} --max-num-seqs 256", env)
    assert (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 256" in done.stdout
    )


@pytest.mark.parametrize(
    ("version", "want"),
    [
        pytest.param("0.21.0", "with the models's max seq len (131072)", id="until 0.21: models's"),
        pytest.param("0.22.0", "with the model's max seq len (131072)", id="since 0.22: model's"),
    ],
)
def test_a_refusal_has_the_words_of_its_release(hub, version, want):
    env = environment(hub, {"total_gib": 24, "free_gib": 23.5}, ENGINE_STUB_VERSION=version)
    assert want in run(f"serve {LLAMA}", env).stdout


@pytest.mark.parametrize(
    ("version", "want"),
    [
        pytest.param("0.27.0", r"GPU KV cache size: [\d,]+ tokens$", id="two lines until 0.27"),
        pytest.param("0.28.0", r"tokens, Maximum concurrency for 8,192", id="one line since 0.28"),
    ],
)
def test_capacity_is_logged_as_in_its_release(hub, version, want, tmp_path):
    env = environment(hub, ENGINE_STUB_VERSION=version)
    with serving(f"serve {SMALL} --max-model-len 8192", env, tmp_path) as engine:
        assert re.search(want, engine.log, re.MULTILINE)


@pytest.mark.parametrize(
    ("ranks", "want"),
    [
        pytest.param(1, "estimated maximum model length is ", id="one rank: the core says it"),
        pytest.param(2, "To serve at least one request", id="several: still the core"),
    ],
)
def test_last_words_reach_the_file_the_logging_configuration_names(hub, tmp_path, ranks, want):
    words = tmp_path / "termination-log"
    last = {"class": "logging.FileHandler", "filename": str(words), "mode": "a", "level": "ERROR"}
    configuration = LAST_WORDS | {
        "handlers": LAST_WORDS["handlers"] | {"last": last | {"formatter": "short"}}
    }
    named = tmp_path / "logging.json"
    named.write_text(json.dumps(configuration))
    env = environment(
        hub,
        {"total_gib": 24, "free_gib": 23.5, "gpus": ranks, "weights_gib": 15.0},
        VLLM_LOGGING_CONFIG_PATH=str(named),
    )
    done = run(f"serve {LLAMA} -tp {ranks} --max-model-len 131072", env)
    assert done.returncode == 1
    kept = words.read_text()[-4096:]
    assert want in kept
    assert "GiB KV cache is needed" in kept
    assert "ERROR" in done.stdout  # the console stays


def test_a_failing_rank_leaves_its_cause_and_a_healthy_start_leaves_nothing(hub, tmp_path):
    words = tmp_path / "termination-log"
    last = {"class": "logging.FileHandler", "filename": str(words), "mode": "a", "level": "ERROR"}
    named = tmp_path / "logging.json"
    named.write_text(json.dumps(LAST_WORDS | {"handlers": LAST_WORDS["handlers"] | {"last": last}}))
    env = environment(hub, {"gpus": 2}, VLLM_LOGGING_CONFIG_PATH=str(named))
    with serving(f"serve {SMALL} -tp 2", env, tmp_path):
        assert words.read_text() == ""
    env = environment(hub, {"gpus": 2, "oom_in": "load"}, VLLM_LOGGING_CONFIG_PATH=str(named))
    assert run(f"serve {SMALL} -tp 2", env).returncode == 1
    assert words.read_text().count("torch.OutOfMemoryError: CUDA out of memory") == 2


def test_a_logging_configuration_that_is_not_there_is_an_error(hub):
    env = environment(hub, VLLM_LOGGING_CONFIG_PATH="/nowhere.json")
    done = run(f"serve {SMALL}", env)
    assert "Could not load logging config. File does not exist: /nowhere.json" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("flags", "more", "want"),
    [
        pytest.param("org/none", {}, "is not a valid model identifier listed on", id="missing"),
        pytest.param("Qwen/Qwen3-32B", {}, "You are trying to access a gated repo.", id="gated"),
        pytest.param(
            f"{SMALL} --revision v9", {}, "v9 is not a valid git identifier", id="no such revision"
        ),
        pytest.param(
            "org/empty", {}, "Cannot find any model weights with `org/empty`", id="no weights"
        ),
        pytest.param(
            SMALL,
            {"HF_ENDPOINT": "http://127.0.0.1:9"},
            "We couldn't connect to 'http://127.0.0.1:9' to load the files",
            id="no hub",
        ),
        pytest.param(
            SMALL, {"NVIDIA_VISIBLE_DEVICES": "void"}, "Failed to infer device type", id="no GPU"
        ),
        pytest.param(
            f"{SMALL} -tp 4",
            {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"},
            "World size (4) is larger than the number of available GPUs (2) in this node.",
            id="more ranks than visible GPUs",
        ),
    ],
)
def test_the_front_refuses_before_any_gpu_is_touched(hub, flags, more, want):
    env = environment(hub, {"gpus": None, "name": None}, **more)
    env["ENGINE_STUB_DEVICE"] = json.dumps({"total_bytes": 80 * 2**30, "count": 8})
    done = run(f"serve {flags}", env)
    assert done.returncode == 1
    assert want in "\n".join(done.stdout.splitlines()[-80:])[-2048:]
    assert "EngineCore" not in done.stdout


def test_a_gated_model_opens_with_the_pods_token(hub, tmp_path):
    env = environment(hub, HF_TOKEN="hf_ok")
    with serving("serve Qwen/Qwen3-32B --max-model-len 8192", env, tmp_path) as engine:
        assert "Model loading took 61.03 GiB" in engine.log


def test_a_mounted_cache_outlives_the_hub(hub, tmp_path):
    env = environment(hub, HF_HOME=str(tmp_path / "hf"))
    with serving(f"serve {SMALL}", env, tmp_path):
        pass
    hub.switch(down=True)
    with serving(f"serve {SMALL}", env, tmp_path) as engine:
        assert engine.get("/health") == ""


def test_a_warm_compile_cache_leaves_more_for_the_cache(hub, tmp_path):
    env = environment(hub, VLLM_CACHE_ROOT=str(tmp_path / "vllm"))
    available = []
    for _ in range(2):
        with serving(f"serve {LLAMA} --max-num-seqs 16", env, tmp_path) as engine:
            found = re.search(r"Available KV cache memory: ([\d.]+) GiB", engine.log)
            available.append(float(found[1]))
    cold, warm = available
    assert warm > cold


def test_a_folder_serves_as_well_as_a_hub(hub, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name, file in published_repo(SMALL).files.items():
        with (folder / name).open("wb") as opened:
            opened.write(file.head)
            opened.truncate(file.size_bytes)
    env = environment(hub, HF_ENDPOINT="http://127.0.0.1:9")
    with serving(f"serve {folder} --served-model-name small", env, tmp_path) as engine:
        assert json.loads(engine.get("/v1/models"))["data"][0]["id"] == "small"


def test_the_nodes_device_counts_where_no_scenario_names_one(hub, tmp_path):
    env = environment(hub) | {
        "ENGINE_STUB_SCENARIO": '{"start_delay_seconds": 0.02}',
        "ENGINE_STUB_DEVICE": json.dumps({"total_bytes": 24 * 2**30, "free_bytes": 24 * 2**30}),
    }
    with serving(f"serve {SMALL}", env, tmp_path) as engine:
        assert "Free memory on device (23.47/24.0 GiB) on startup." in engine.log


def test_a_follower_waits_and_serves_nothing(hub):
    env = environment(hub, {"gpus": 1})
    flags = f"serve {SMALL} -pp 2 --nnodes 2 --node-rank 1 --headless --master-addr 127.0.0.1"
    with subprocess.Popen(
        [sys.executable, "-m", "world.engine", *flags.split()], env=env, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b"Launching vLLM headless" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(5) == 0
