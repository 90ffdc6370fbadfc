"""The product's door to the hub, against a hub on this machine."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shipfitter.core.model import TensorHeader
from shipfitter.errors import (
    HubUnavailableError,
    InvalidSpecError,
    ModelNotFoundError,
    TokenRequiredError,
)
from shipfitter.hub import (
    fetch_checkpoint,
    fetch_model_facts,
    read_checkpoint,
    read_model_facts,
)
from world.hub import Hub, published_bytes, published_config, published_repo, repository
from world.hub.virtual_files import VirtualFile, json_file

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
TENSORS = [("a.weight", "BF16", (4, 8)), ("b.weight", "F8_E4M3", (16,)), ("c", "F32", ())]
HEADERS = {TensorHeader(name, dtype, shape) for name, dtype, shape in TENSORS}
MISSING_SHARD = json_file({"weight_map": {"a": "model-00001-of-00002.safetensors"}})


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    repositories = [
        published_repo("Qwen/Qwen3-0.6B", refs=("main", "v1")),
        published_repo("deepseek-ai/DeepSeek-V3"),
        published_repo(LLAMA, gated=True, accepted_tokens=("hf_ok",)),
        repository("org/one", config={"a": 1}, tensors=TENSORS),
        repository("org/two", config={"a": 1}, tensors=TENSORS, shard_bytes=65),
        repository("org/secret", config={}, private=True, accepted_tokens=("hf_ok",)),
        repository("org/off", config={}, disabled=True),
        repository("org/no-config", tensors=TENSORS),
        repository(
            "org/torn", config={}, more_files={"model.safetensors.index.json": MISSING_SHARD}
        ),
        repository("org/words", more_files={"config.json": VirtualFile(b"[1, 2]")}),
        repository("org/long", more_files={"config.json": VirtualFile(b"{", 4_000_002)}),
        repository(
            "org/pytorch",
            config={},
            more_files={
                "pytorch_model-00001-of-00002.bin": VirtualFile(b"PK", 5000, large=True),
                "pytorch_model-00002-of-00002.bin": VirtualFile(b"PK", 700, large=True),
                "training_args.bin": VirtualFile(b"PK", 9, large=True),
            },
        ),
        repository(
            "org/twice",
            config={},
            tensors=TENSORS,
            more_files={
                "consolidated.safetensors": VirtualFile(b"", 10, large=True),
                "original/model.safetensors": VirtualFile(b"", 10, large=True),
            },
        ),
    ]
    with Hub(*repositories) as serving:
        yield serving


@pytest.fixture(autouse=True)
def no_faults(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield
    hub.switch()


def fetch(hub: Hub, uri: str, token: str | None = None, seconds: float = 20.0):
    return fetch_checkpoint(uri, endpoint=hub.endpoint, token=token, timeout_seconds=seconds)


@pytest.mark.parametrize(
    ("uri", "want_files"),
    [
        pytest.param("hf://org/one", 1, id="a checkpoint of one file"),
        pytest.param("org/two", 2, id="a sharded one through its index"),
        pytest.param("org/twice", 1, id="copies in other formats are left out"),
    ],
)
def test_headers_of_every_file_the_engine_loads_are_read(hub, uri, want_files):
    found = fetch(hub, uri)
    assert set(found.tensors) == HEADERS
    assert found.stored_bytes == 64 + 16 + 4
    assert len(found.files) == want_files


def test_config_name_and_commit_are_the_repositorys(hub):
    found = fetch(hub, "hf://Qwen/Qwen3-0.6B")
    assert found.config == published_config("Qwen/Qwen3-0.6B")
    assert found.name == "Qwen/Qwen3-0.6B"
    assert found.revision == hub.repositories["Qwen/Qwen3-0.6B"].sha
    assert found.stored_bytes == published_bytes("Qwen/Qwen3-0.6B")


@pytest.mark.parametrize(
    ("uri", "revision"),
    [
        pytest.param("hf://Qwen/Qwen3-0.6B@v1", None, id="the uri's revision"),
        pytest.param("hf://Qwen/Qwen3-0.6B@v9", "v1", id="the argument goes before the uri's"),
    ],
)
def test_a_revision_becomes_the_commit_it_stands_for(hub, uri, revision):
    found = fetch_checkpoint(uri, revision=revision, endpoint=hub.endpoint)
    assert found.revision == hub.repositories["Qwen/Qwen3-0.6B"].sha


def test_every_file_is_read_at_the_commit_first_seen(hub):
    sha = hub.repositories["org/one"].sha
    before = hub.requests[f"GET /org/one/resolve/{sha}/config.json"]
    fetch(hub, "org/one")
    assert hub.requests[f"GET /org/one/resolve/{sha}/config.json"] == before + 1


def test_the_largest_checkpoint_costs_megabytes_not_terabytes(hub):
    before = hub.bytes_sent
    found = fetch(hub, "deepseek-ai/DeepSeek-V3", seconds=60)
    assert found.stored_bytes == published_bytes("deepseek-ai/DeepSeek-V3")
    assert hub.bytes_sent - before < 60_000_000


def test_without_safetensors_the_files_sizes_are_known(hub):
    found = fetch(hub, "org/pytorch")
    assert found.stored_bytes == 5700
    assert found.tensors == ()


def test_a_gated_model_opens_with_its_token(hub):
    assert fetch(hub, LLAMA, token="hf_ok").stored_bytes == published_bytes(LLAMA)


@pytest.mark.parametrize(
    ("uri", "token", "want_error", "want_words"),
    [
        pytest.param(
            "org/none",
            None,
            ModelNotFoundError,
            "check the spelling of spec.model.uri",
            id="unknown",
        ),
        pytest.param(
            "org/none",
            "hf_ok",
            ModelNotFoundError,
            "check the spelling",
            id="unknown, with a token",
        ),
        pytest.param(
            "org/secret", None, ModelNotFoundError, "spec.model.tokenSecretRef", id="private"
        ),
        pytest.param(
            "org/one@v9", None, ModelNotFoundError, "no revision 'v9'", id="no such revision"
        ),
        pytest.param(
            "org/no-config", None, ModelNotFoundError, "has no config.json", id="no config.json"
        ),
        pytest.param(
            "org/torn",
            None,
            ModelNotFoundError,
            "has no model-00001-of-00002.safetensors",
            id="an index names a shard that is missing",
        ),
        pytest.param(
            "org/words", None, ModelNotFoundError, "got list", id="config.json is no object"
        ),
        pytest.param(
            "org/long", None, ModelNotFoundError, "longer than", id="config.json is endless"
        ),
        pytest.param("org/off", None, ModelNotFoundError, "has disabled it", id="disabled"),
        pytest.param(
            LLAMA, None, TokenRequiredError, "is gated; name a Secret", id="gated, no token"
        ),
        pytest.param(
            LLAMA,
            "hf_stranger",
            TokenRequiredError,
            "has no access to it",
            id="gated, a token without access",
        ),
        pytest.param(
            "org/one", "hf_wrong", TokenRequiredError, "does not accept the token", id="bad token"
        ),
        pytest.param(
            "pvc://claim/llama", None, InvalidSpecError, "only a pod can read", id="on a claim"
        ),
        pytest.param("s3://bucket/x", None, InvalidSpecError, "got 's3://bucket/x'", id="no uri"),
    ],
)
def test_a_refusal_says_what_to_change(hub, uri, token, want_error, want_words):
    with pytest.raises(want_error) as caught:
        fetch(hub, uri, token)
    assert want_words in str(caught.value)
    assert "hf_" not in str(caught.value)


@pytest.mark.parametrize("token", [None, "hf_stranger"])
def test_a_gated_model_names_both_ways_out(hub, token):
    with pytest.raises(
        TokenRequiredError, match=r"spec\.model\.tokenSecretRef.*spec\.model\.facts"
    ):
        fetch(hub, LLAMA, token)


@pytest.mark.parametrize(
    ("faults", "want_words"),
    [
        pytest.param({"down": True}, "cannot be reached", id="connections are closed"),
        pytest.param({"status": 429, "retry_after_seconds": 60}, "answers 429", id="rate limited"),
        pytest.param({"status": 500}, "answers 500", id="an error of its own"),
        pytest.param({"status": 503}, "answers 503", id="overloaded"),
        pytest.param({"delay_seconds": 2.0}, "did not answer in time", id="slow"),
        pytest.param({"cut_after_bytes": 3}, "cannot be reached", id="answers break off"),
    ],
)
def test_weather_is_told_apart_and_asked_again(hub, faults, want_words):
    hub.switch(**faults)
    started = time.monotonic()
    with pytest.raises(HubUnavailableError) as caught:
        fetch(hub, "org/one", seconds=1.0)
    assert want_words in str(caught.value)
    assert "asked again by itself" in str(caught.value)
    assert time.monotonic() - started < 4


def test_no_hub_at_all_is_weather():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(HubUnavailableError, match="cannot be reached"):
            fetch_checkpoint("org/one", endpoint=endpoint, timeout_seconds=2)


@pytest.mark.parametrize("fault", ["garbled_headers", "huge_headers"])
def test_a_broken_weight_file_is_named(hub, fault):
    hub.switch(**{fault: True})
    with pytest.raises(ModelNotFoundError, match=r"org/one: model\.safetensors: this is no"):
        fetch(hub, "org/one")


@pytest.mark.parametrize("fault", ["lying_sizes", "ignore_ranges"])
def test_what_a_mirror_says_of_sizes_and_ranges_is_not_needed(hub, fault):
    hub.switch(**{fault: True})
    before = hub.bytes_sent
    found = fetch(hub, LLAMA, token="hf_ok")
    assert found.stored_bytes == published_bytes(LLAMA)
    assert hub.bytes_sent - before < 100_000_000


def test_facts_follow_from_the_hub(hub):
    facts = fetch_model_facts(LLAMA, endpoint=hub.endpoint, token="hf_ok")
    assert facts.name == LLAMA
    assert facts.revision == hub.repositories[LLAMA].sha
    assert facts.checkpoint_bytes == published_bytes(LLAMA)
    assert facts.weights_source == "safetensors headers"


def write_folder(folder: Path, name: str) -> Path:
    """The files of a repository as sparse files in a folder."""
    for file_name, file in published_repo(name).files.items():
        with (folder / file_name).open("wb") as opened:
            opened.write(file.head)
            opened.truncate(file.size_bytes)
    return folder


def test_a_folder_holds_the_same_facts_as_the_hub(hub, tmp_path):
    folder = write_folder(tmp_path, LLAMA)
    from_hub = fetch(hub, LLAMA, token="hf_ok")
    found = read_checkpoint(folder, name=LLAMA)
    assert (found.config, found.tensors, found.stored_bytes, found.files) == (
        from_hub.config,
        from_hub.tensors,
        from_hub.stored_bytes,
        from_hub.files,
    )
    assert read_model_facts(folder, name=LLAMA).checkpoint_bytes == published_bytes(LLAMA)


@pytest.mark.parametrize(
    ("files", "want_words"),
    [
        pytest.param({}, "config.json cannot be read", id="an empty folder"),
        pytest.param({"config.json": b"{"}, "this is no JSON", id="half a config"),
        pytest.param(
            {"config.json": b"{}", "model.safetensors": b"\x00\x00"},
            "this is no safetensors file",
            id="a weight file of two bytes",
        ),
        pytest.param(
            {
                "config.json": b"{}",
                "model.safetensors.index.json": b'{"weight_map": {"a": "../../etc/passwd"}}',
            },
            "which is not in the folder",
            id="an index that points outside",
        ),
    ],
)
def test_a_folder_without_a_model_is_named(tmp_path, files, want_words):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelNotFoundError) as caught:
        read_checkpoint(tmp_path)
    assert want_words in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_the_client_is_imported_only_to_fetch():
    code = "import sys, shipfitter.hub; print('huggingface_hub' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
