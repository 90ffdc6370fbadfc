"""What the real engine is given besides the operator's arguments."""

import json

import pytest

from real_engine.program import ADDRESS, FOLDER, SOCKETS, additions, cache_bytes, variables
from world.hub.published import published_config

GIB = 2**30
WORDS = ["serve", "acme/tiny", "--max-model-len=4096", "--gpu-memory-utilization=0.5"]
FOUND = {
    "total_gib": 10.0, "free_gib": 9.5, "weights_gib": 1.0,
    "overhead_gib": 0.1, "activation_gib": 0.2, "graph_estimate_gib": 0.1,
}  # fmt: skip


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A pod that was given one GPU, and a model that is read from a file."""
    facts = {"config": published_config("Qwen/Qwen3-0.6B"), "stored_bytes": GIB}
    (tmp_path / "model.json").write_text(json.dumps(facts))
    monkeypatch.setenv("ENGINE_STUB_MODEL", str(tmp_path / "model.json"))
    monkeypatch.setenv("ENGINE_STUB_SCENARIO", json.dumps(FOUND))
    monkeypatch.setenv("ENGINE_STUB_VERSION", "0.32.0")


def test_the_cache_is_what_the_gpu_would_have_left(gpu):
    assert cache_bytes(WORDS[1:]) == pytest.approx(3.6 * GIB, abs=8)


def test_only_what_a_cpu_cannot_find_is_added(gpu):
    first, *others = additions(WORDS, {ADDRESS: "127.18.0.5"})
    assert first.startswith("--kv-cache-memory-bytes=38")
    assert others == ["--enforce-eager", "--host=127.18.0.5"]


def test_bytes_that_the_operator_names_are_left_to_it(gpu):
    words = [*WORDS, "--kv-cache-memory-bytes=1000"]
    assert additions(words, {ADDRESS: "a"}) == ["--enforce-eager", "--host=a"]


def test_a_pod_without_a_gpu_has_no_cache(gpu, monkeypatch):
    monkeypatch.setenv("ENGINE_STUB_SCENARIO", json.dumps({**FOUND, "gpus": 0}))
    with pytest.raises(SystemExit, match="no GPU"):
        cache_bytes(WORDS[1:])


def test_the_engine_finds_its_own_programs_and_not_our_modules():
    given = {FOLDER: "/e", SOCKETS: "/s", "PATH": "/usr/bin", "PYTHONPATH": "/ours", "A": "b"}
    found = variables(given)
    assert found["PATH"] == "/e/bin:/usr/bin"
    assert (found["VLLM_RPC_BASE_PATH"], found["A"]) == ("/s", "b")
    assert "PYTHONPATH" not in found
