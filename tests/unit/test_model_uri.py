"""Where a model lives, read from its uri."""

import pytest

from shipfitter.core.model_uri import ModelUri, parse_model_uri
from shipfitter.errors import InvalidSpecError


@pytest.mark.parametrize(
    ("uri", "want"),
    [
        pytest.param("hf://Qwen/Qwen3-32B", ModelUri(repository="Qwen/Qwen3-32B"), id="a hub"),
        pytest.param("Qwen/Qwen3-32B", ModelUri(repository="Qwen/Qwen3-32B"), id="hf:// left out"),
        pytest.param(
            "hf://a/b@refs/pr/1", ModelUri(repository="a/b", revision="refs/pr/1"), id="a revision"
        ),
        pytest.param("hf://a/b__c.d-e", ModelUri(repository="a/b__c.d-e"), id="all allowed signs"),
        pytest.param(
            "pvc://models/llama/8b", ModelUri(claim="models", path="llama/8b"), id="a claim"
        ),
        pytest.param("pvc://models", ModelUri(claim="models"), id="a claim's root"),
        pytest.param("pvc://models//a/", ModelUri(claim="models", path="a"), id="spare slashes"),
    ],
)
def test_a_place_is_read(uri, want):
    assert parse_model_uri(uri) == want
    assert parse_model_uri(str(want)) == want


@pytest.mark.parametrize(
    ("uri", "want_words"),
    [
        pytest.param("", "names no ORG/NAME", id="nothing"),
        pytest.param("hf://Qwen3-32B", "names no ORG/NAME", id="no organisation"),
        pytest.param("a/b/c", "names no ORG/NAME", id="one part too many"),
        pytest.param("hf://a/b--c", "names no ORG/NAME", id="two dashes"),
        pytest.param("hf://a/../b", "names no ORG/NAME", id="a way up"),
        pytest.param("hf://a/b.", "names no ORG/NAME", id="a dot at the end"),
        pytest.param("hf://a/b.git", "names no ORG/NAME", id="a git address"),
        pytest.param("hf://a/b\n", "names no ORG/NAME", id="a line break"),
        pytest.param(f"hf://a/{'b' * 97}", "names no ORG/NAME", id="a name too long"),
        pytest.param("hf://a/b@", "after @ comes", id="no revision after @"),
        pytest.param("hf://a/b@x y", "after @ comes", id="a blank in the revision"),
        pytest.param("s3://bucket/x", "neither hf nor pvc", id="another scheme"),
        pytest.param("pvc://Claim/x", "no folder of a claim", id="a claim in capitals"),
        pytest.param("pvc:///x", "no folder of a claim", id="no claim"),
        pytest.param("pvc://c/../x", "no folder of a claim", id="out of the claim"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_field(uri, want_words):
    with pytest.raises(InvalidSpecError) as caught:
        parse_model_uri(uri, where="spec.model.alternatives[1].uri")
    assert want_words in str(caught.value)
    assert str(caught.value).startswith("spec.model.alternatives[1].uri: ")


@pytest.mark.parametrize(
    ("uri", "want"),
    [("hf://Qwen/Qwen3-32B@v1", "Qwen/Qwen3-32B"), ("pvc://c/llama/8b", "8b"), ("pvc://c", "c")],
)
def test_clients_know_it_by_repository_or_last_folder(uri, want):
    assert parse_model_uri(uri).name == want
