"""Where a model comes from."""

import pytest

from shipfitter.api.model_source import (
    ModelRef,
    canonical_uri,
    claim_and_path,
    hub_repository,
    served_name,
    short_name,
)


@pytest.mark.parametrize(
    ("uri", "canonical", "repository", "claim", "names"),
    [
        ("a/b", "hf://a/b", "a/b", None, ("a/b", "b")),
        ("hf://a/b", "hf://a/b", "a/b", None, ("a/b", "b")),
        ("pvc://c", "pvc://c", None, ("c", ""), ("c", "c")),
        ("pvc://c/", "pvc://c/", None, ("c", ""), ("c", "c")),
        ("pvc://c/d/e/", "pvc://c/d/e/", None, ("c", "d/e"), ("e", "e")),
    ],
)
def test_a_uri(uri, canonical, repository, claim, names):
    assert canonical_uri(uri) == canonical
    assert hub_repository(uri) == repository
    assert claim_and_path(uri) == claim
    assert (served_name(uri), short_name(uri)) == names


def test_choices_start_with_the_model_itself():
    model = ModelRef(uri="a/b", alternatives=({"uri": "a/c"},))
    assert [choice.uri for choice in model.choices] == ["a/b", "a/c"]
