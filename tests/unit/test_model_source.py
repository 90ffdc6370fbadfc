"""Where facts come from when the hub does not give them."""

import pytest

from shipfitter.errors import HubUnavailableError, ModelNotFoundError, TokenRequiredError
from shipfitter.operator import model_source

LLAMA = "hf://meta-llama/Llama-3.1-8B-Instruct"


def ask(monkeypatch, error, uri=LLAMA, revision=None, **options):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(model_source, "fetch_model_facts", refuse)
    return model_source.fetch_or_known(
        uri, revision=revision, endpoint=None, timeout_seconds=1, **options
    )


@pytest.mark.parametrize("error", [TokenRequiredError("gated"), HubUnavailableError("away")])
def test_a_known_model_needs_no_hub(monkeypatch, error):
    facts = ask(monkeypatch, error)
    assert facts.checkpoint_bytes == 16_060_522_496
    assert "come with Shipfitter" in facts.weights_source


@pytest.mark.parametrize(
    ("error", "uri", "revision"),
    [
        pytest.param(TokenRequiredError("gated"), "hf://acme/secret", None, id="not a known model"),
        pytest.param(TokenRequiredError("gated"), LLAMA, "v2", id="another revision was asked"),
        pytest.param(ModelNotFoundError("gone"), LLAMA, None, id="the hub says it is not there"),
    ],
)
def test_everything_else_is_refused_as_before(monkeypatch, error, uri, revision):
    with pytest.raises(type(error)):
        ask(monkeypatch, error, uri, revision)


def test_with_a_token_a_known_model_is_read_and_not_remembered(monkeypatch):
    """Whoever has a token gets exact facts and a pinned commit; the hub's absence is no reason."""
    with pytest.raises(TokenRequiredError):
        ask(monkeypatch, TokenRequiredError("gated"), may_be_known=False)
    facts = ask(monkeypatch, HubUnavailableError("away"), may_be_known=False)
    assert "come with Shipfitter" in facts.weights_source
