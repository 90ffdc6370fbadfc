"""`shipfitter compare-log`: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shipfitter.cli.app import app

DATA = Path(__file__).parents[1] / "data"
LOGS = DATA / "logs"
KEYS = {"read", "outcome", "predicted"}


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["compare-log", "--offline", *map(str, arguments)], input=stdin)


def record(*arguments, **more):
    result = run("-o", "json", *arguments, **more)
    return result.exit_code, json.loads(result.stdout)


def test_read_and_outcome_without_a_prediction():
    code, got = record(LOGS / "gated-repository.log")
    assert (code, set(got), got["outcome"]) == (0, KEYS, "TokenRequired")
    assert got["predicted"] is None
    assert set(got["read"].values()) == {None}


def test_the_prediction_is_that_of_estimate():
    log = LOGS / "v0.19.0-debug-breakdown.log"
    code, got = record(log)
    flags = "--tensor-parallel-size 2 --max-model-len 8192 --gpu-memory-utilization 0.95"
    options = "-o json --engine-version 0.19.0 --gpu H100 --gpu-memory-mib 81089.35"
    estimated = CliRunner().invoke(
        app, ["estimate", *options.split(), "--", "vllm", "serve", "openai/gpt-oss-20b",
              *flags.split()]
    )  # fmt: skip
    want = json.loads(estimated.stdout)
    assert code == 0
    assert got["predicted"]["verdict"] == want["verdict"]
    assert got["predicted"]["perGpu"]["weightsBytes"] == want["perGpu"]["weightsBytes"]
    assert got["predicted"]["kvCacheTokens"] == pytest.approx(want["kvCacheTokens"], rel=1e-3)


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log")))
def test_the_table_keeps_to_the_width(name):
    result = run(LOGS / f"{name}.log")
    assert result.exit_code == 0, result.output
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


def test_the_table_puts_prediction_beside_log():
    shown = run(LOGS / "v0.28.0-one-line-cache-and-consumed.log").stdout
    (weights,) = [line for line in shown.splitlines() if line.strip().startswith("weights")]
    assert weights.split()[:5] == ["weights", "15.00", "GiB", "14.99", "GiB"]
    (cache,) = [line for line in shown.splitlines() if "KV cache memory" in line]
    assert "56.21 GiB" in cache
    assert " to " in cache


def test_options_say_what_the_log_does_not(tmp_path):
    facts = tmp_path / "facts.json"
    config = json.loads((DATA / "models" / "Kimi-K2.5.json").read_text(encoding="utf-8"))
    facts.write_text(json.dumps(config), encoding="utf-8")
    log = tmp_path / "excerpt.log"
    log.write_text("INFO 01-30 07:11:40 [gpu_worker.py:378] Available KV cache memory: 1.50 GiB\n")
    assert record(log)[1]["predicted"] is None
    options = ("--gpu", "H200", "--engine-version", "0.15.0", "--model-facts", facts)
    code, got = record(log, *options)
    assert code == 0
    assert got["predicted"]["engineVersion"] == "0.15.0"
    assert got["predicted"]["perGpu"]["totalBytes"] > 139 * 2**30


def test_standard_input():
    code, got = record("-", stdin="# GPU blocks: 1952, # CPU blocks: 2048\n")
    assert (code, got["read"]["numGpuBlocks"]) == (0, 1952)


def test_a_log_that_powershell_wrote(tmp_path):
    log = tmp_path / "wide.log"
    log.write_bytes("Available KV cache memory: 3.81 GiB\r\n".encode("utf-16"))
    assert record(log)[1]["read"]["kvCacheMemoryGib"] == 3.81


def test_a_file_without_a_word_of_the_engine(tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear all,\n", encoding="utf-8")
    result = run(letter)
    assert result.exit_code == 2
    assert "no line of a vLLM log" in result.stderr
    assert result.stdout == ""


def test_no_such_file(tmp_path):
    result = run(tmp_path / "none.log")
    assert result.exit_code == 2
    assert "none.log: No such file or directory; give the path of a log" in result.stderr
