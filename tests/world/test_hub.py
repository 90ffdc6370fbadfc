"""The hub on this machine, asked by the real `huggingface_hub` client."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from world.hub import Hub, published_config, published_names, published_repo, repository
from world.hub.published import published_bytes

TINY = [("a.weight", "BF16", (4, 8)), ("b.weight", "F8_E4M3", (16,)), ("c", "F32", ())]


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    repositories = [
        published_repo("Qwen/Qwen3-0.6B"),
        published_repo("meta-llama/Llama-3.1-8B-Instruct", gated=True, accepted_tokens=("hf_ok",)),
        repository("org/tiny", config={"model_type": "llama"}, tensors=TINY, refs=("main", "v1")),
        repository("org/sharded", config={}, tensors=TINY, shard_bytes=65),
        repository("org/secret", config={}, private=True, accepted_tokens=("hf_ok",)),
    ]
    with Hub(*repositories) as serving:
        yield serving


@pytest.fixture(autouse=True)
def no_faults(hub: Hub) -> Iterator[None]:
    yield
    hub.switch()


def api(hub: Hub, token: str | bool = False) -> HfApi:
    return HfApi(endpoint=hub.endpoint, token=token)


@pytest.mark.parametrize("name", published_names())
def test_a_published_repository_holds_the_bytes_its_checkpoint_stores(name):
    assert published_repo(name).stored_bytes == published_bytes(name)


def test_model_info_names_commit_files_and_sizes(hub):
    info = api(hub).model_info("org/tiny", files_metadata=True)
    sizes = {entry.rfilename: entry.size for entry in info.siblings}
    assert info.sha == hub.repositories["org/tiny"].sha
    assert (
        sizes["model.safetensors"]
        == hub.repositories["org/tiny"].files["model.safetensors"].size_bytes
    )


def test_the_tree_lists_the_same_files(hub):
    paths = {entry.path for entry in api(hub).list_repo_tree("org/tiny")}
    assert paths == {"README.md", "config.json", "model.safetensors"}


def test_headers_come_by_range_requests(hub):
    hub_bytes_before = hub.bytes_sent
    metadata = api(hub).get_safetensors_metadata("meta-llama/Llama-3.1-8B-Instruct", token="hf_ok")
    assert metadata.parameter_count == {"BF16": 8_030_261_248}
    assert hub.bytes_sent - hub_bytes_before < 2_000_000


@pytest.mark.parametrize(
    ("name", "want_files"),
    [
        pytest.param("org/tiny", 1, id="a small model is one file"),
        pytest.param("org/sharded", 2, id="a larger one is sharded with an index"),
    ],
)
def test_dtypes_and_shapes_arrive_whole(hub, name, want_files):
    metadata = api(hub).get_safetensors_metadata(name)
    tensors = {
        (tensor, info.dtype, tuple(info.shape))
        for file in metadata.files_metadata.values()
        for tensor, info in file.tensors.items()
    }
    assert tensors == set(TINY)
    assert len(metadata.files_metadata) == want_files


def test_a_download_through_the_cache_gives_the_config(hub, tmp_path):
    path = hf_hub_download(
        "Qwen/Qwen3-0.6B", "config.json", endpoint=hub.endpoint, token=False, cache_dir=tmp_path
    )
    with open(path, encoding="utf-8") as opened:
        assert json.load(opened) == published_config("Qwen/Qwen3-0.6B")
    assert hub.repositories["Qwen/Qwen3-0.6B"].sha in path


@pytest.mark.parametrize(
    "revision",
    [
        pytest.param("main", id="a branch"),
        pytest.param("v1", id="a tag"),
        pytest.param("commit", id="a commit"),
    ],
)
def test_a_revision_is_resolved_to_its_commit(hub, revision):
    sha = hub.repositories["org/tiny"].sha
    info = api(hub).model_info("org/tiny", revision=sha if revision == "commit" else revision)
    assert info.sha == sha


@pytest.mark.parametrize(
    ("wanted", "token", "want"),
    [
        pytest.param(
            ("org/none", "config.json", "main"), False, RepositoryNotFoundError, id="no repository"
        ),
        pytest.param(
            ("org/none", "config.json", "main"),
            "hf_ok",
            RepositoryNotFoundError,
            id="nor with token",
        ),
        pytest.param(
            ("org/secret", "config.json", "main"), False, RepositoryNotFoundError, id="private"
        ),
        pytest.param(
            ("org/tiny", "no.json", "main"), False, RemoteEntryNotFoundError, id="no file"
        ),
        pytest.param(
            ("org/tiny", "config.json", "v9"), False, RevisionNotFoundError, id="no revision"
        ),
        pytest.param(
            ("meta-llama/Llama-3.1-8B-Instruct", "config.json", "main"),
            False,
            GatedRepoError,
            id="gated and no token",
        ),
        pytest.param(
            ("meta-llama/Llama-3.1-8B-Instruct", "config.json", "main"),
            "hf_stranger",
            GatedRepoError,
            id="gated and a token without access",
        ),
    ],
)
def test_refusals_are_the_errors_the_client_knows(hub, tmp_path, wanted, token, want):
    name, file, revision = wanted
    with pytest.raises(want):
        hf_hub_download(
            name,
            file,
            revision=revision,
            endpoint=hub.endpoint,
            token=token,
            cache_dir=tmp_path,
        )


def test_a_token_nobody_holds_is_invalid(hub):
    with pytest.raises(HfHubHTTPError) as caught:
        api(hub, "hf_wrong").model_info("org/tiny")
    assert caught.value.response.status_code == 401
    assert not isinstance(caught.value, RepositoryNotFoundError)


def test_faults_are_switched_from_another_process_and_run_out(hub):
    request = urllib.request.Request(
        f"{hub.endpoint}/_control", data=b'{"status": 503, "status_times": 1}', method="POST"
    )
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["status"] == 503
    with pytest.raises(HfHubHTTPError) as caught:
        api(hub).model_info("org/tiny")
    assert caught.value.response.status_code == 503
    assert api(hub).model_info("org/tiny").sha


def test_an_unknown_fault_is_a_mistake_in_the_test(hub):
    request = urllib.request.Request(
        f"{hub.endpoint}/_control", data=b'{"donw": true}', method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    with caught.value as answer:
        assert "no such fault: ['donw']" in answer.read().decode()


def test_requests_are_counted(hub):
    before = hub.requests["GET /api/models/org/tiny"]
    api(hub).model_info("org/tiny")
    assert hub.requests["GET /api/models/org/tiny"] == before + 1
