"""The Job's program: facts or one sentence, and an exit code that tells which."""

import os
import subprocess
import sys
import time

import pytest

from shipfitter.cli import inspect_model
from shipfitter.core.inspected import MESSAGE_BYTES, unpacked
from shipfitter.hub import fetch_model_facts
from world.hub import Hub, published_repo, repository
from world.hub.virtual_files import json_file

LLAMA = "hf://meta-llama/Llama-3.1-8B-Instruct"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}
TENSORS = [("model.embed_tokens.weight", "BF16", (256, 64))]
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def hub():
    gated = published_repo("meta-llama/Llama-3.1-8B-Instruct", gated=True, accepted_tokens=["ok"])
    torn = json_file({"weight_map": {"a": "model-00001-of-00002.safetensors"}})
    strange = {**CONFIG, "architectures": ["StrangeForCausalLM"]}
    with Hub(
        gated,
        repository("org/torn", config=CONFIG, more_files={INDEX: torn}),
        repository("org/strange", config=strange, tensors=TENSORS),
    ) as serving:
        yield serving


@pytest.fixture
def run(hub, tmp_path, monkeypatch):
    """Exit code and last words of one run."""

    def running(*arguments, token=""):
        # The hub's client takes its environment in when it is imported: a process for each.
        message = tmp_path / "message"
        message.unlink(missing_ok=True)
        words = [sys.executable, "-m", "shipfitter", "inspect", *arguments]
        environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "HF_TOKEN": token}
        done = subprocess.run(
            [*words, f"--message-file={message}"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        told = message.read_text()
        assert told in done.stdout, "its log says the same"
        assert len(told.encode()) <= MESSAGE_BYTES
        return done.returncode, told

    yield running
    hub.switch()


def test_a_gated_model_is_told_in_one_message(run, hub):
    code, told = run(LLAMA, "--secret=hf/token", token="ok\n")
    assert code == 0
    assert unpacked(told) == fetch_model_facts(LLAMA, endpoint=hub.endpoint, token="ok")


@pytest.mark.parametrize(
    ("uri", "token", "want"),
    [
        pytest.param(LLAMA, "", (10, "key 'token' of Secret 'hf'"), id="token missing"),
        pytest.param(LLAMA, "hf_stranger", (11, "has no access to it"), id="token without access"),
        pytest.param(LLAMA, "hf_no", (11, "does not accept the token"), id="no token of the hub's"),
        pytest.param("org/none", "ok", (20, "no such repository"), id="no such repository"),
        pytest.param(f"{LLAMA}@v9", "ok", (20, "no revision 'v9'"), id="no such revision"),
        pytest.param("org/torn", "ok", (21, "has no model-00001"), id="corrupt index"),
        pytest.param("org/strange", "ok", (22, "StrangeForCausalLM"), id="a class nobody knows"),
    ],
)
def test_errors_are_told_apart(run, uri, token, want):
    code, told = run(uri, "--secret=hf/token", token=token)
    assert code == want[0]
    assert want[1] in told
    assert "\n" not in told
    assert "hf_" not in told, "no token is ever said"


def test_weather_is_told_as_such(run, hub):
    hub.switch(status=503)
    assert run(LLAMA, "--timeout-seconds=2", token="ok")[0] == 30


def folder(tmp_path, **files):
    for name, content in files.items():
        (tmp_path / name.replace("__", ".")).write_bytes(content)
    return f"--folder={tmp_path}"


CONFIG_BYTES = json_file(CONFIG).head


@pytest.mark.parametrize(
    ("files", "want"),
    [
        pytest.param({}, (20, "config.json cannot be read"), id="wrong path"),
        pytest.param({"config__json": b"{"}, (21, "this is no JSON"), id="half a config"),
        pytest.param(
            {"config__json": CONFIG_BYTES, "model__safetensors__index__json": b'{"weight_m'},
            (21, "this is no JSON"),
            id="corrupt index",
        ),
        pytest.param(
            {
                "config__json": CONFIG_BYTES,
                "model__safetensors__index__json": b'{"weight_map": {"a": "b.safetensors"}}',
            },
            (21, "'b.safetensors', which is not in the folder"),
            id="an index of files that are not there",
        ),
        pytest.param(
            {"config__json": CONFIG_BYTES, "model__safetensors": b"\0"},
            (21, "this is no safetensors file"),
            id="a file cut off",
        ),
    ],
)
def test_a_folder_is_spoken_of_by_its_uri(run, tmp_path, files, want):
    code, told = run("pvc://shelf/llama", folder(tmp_path, **files))
    assert code == want[0]
    assert want[1] in told
    assert told.startswith("pvc://shelf/llama")
    assert str(tmp_path) not in told


def test_a_folder_is_read_without_any_hub(run, hub, tmp_path):
    hub.switch(down=True)
    files = repository("a/b", config=CONFIG, tensors=TENSORS).files
    for name, file in files.items():
        with (tmp_path / name).open("wb") as opened:
            opened.write(file.head)
            opened.truncate(file.size_bytes)
    code, told = run("pvc://shelf/llama", f"--folder={tmp_path}")
    assert code == 0
    facts = unpacked(told)
    assert (facts.name, facts.checkpoint_bytes) == ("llama", 256 * 64 * 2)
    assert facts.weights_source == "safetensors headers"


def test_a_file_that_never_ends_is_out_of_time(run, tmp_path):
    os.mkfifo(tmp_path / "config.json")  # nobody writes: reading it hangs, as on a dead share
    began = time.monotonic()
    seconds = 1 - inspect_model.LAST_WORDS_SECONDS
    code, told = run("pvc://shelf/llama", f"--folder={tmp_path}", f"--timeout-seconds={seconds}")
    assert code == 124
    assert "out of time" in told
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(MemoryError(), (12, "not enough memory"), id="not enough memory"),
        pytest.param(RuntimeError("oops"), (1, "RuntimeError: oops"), id="a mistake of ours"),
        pytest.param(PermissionError(13, "Permission denied"), (20, "denied"), id="no right"),
    ],
)
def test_whatever_happens_there_are_last_words(tmp_path, monkeypatch, capsys, error, want):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(inspect_model, "read_checkpoint", fail)
    message = tmp_path / "message"
    arguments = ["pvc://shelf/llama", "--folder=/models", f"--message-file={message}"]
    assert inspect_model.main(arguments, {}) == want[0]
    assert want[1] in message.read_text()


def test_by_hand_it_speaks_to_the_terminal(tmp_path, capsys):
    nowhere = tmp_path / "no" / "message"
    arguments = ["pvc://shelf/x", f"--folder={tmp_path}", f"--message-file={nowhere}"]
    assert inspect_model.main(arguments, {}) == 20
    assert "config.json cannot be read" in capsys.readouterr().out
