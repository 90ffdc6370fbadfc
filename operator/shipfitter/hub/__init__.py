"""The model hub: the only package that imports `huggingface_hub`, and only to fetch something."""

from pathlib import Path

from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.hub.checkpoint import Checkpoint
from shipfitter.hub.local import read_checkpoint

__all__ = [
    "Checkpoint",
    "fetch_checkpoint",
    "fetch_model_facts",
    "read_checkpoint",
    "read_model_facts",
]


def fetch_checkpoint(
    uri: str,
    *,
    revision: str | None = None,
    endpoint: str | None = None,
    token: str | None = None,
    timeout_seconds: float = 30.0,
) -> Checkpoint:
    """A repository's config.json and tensor headers at one commit; a few hundred kilobytes a shard.

    `revision` goes before one in the uri; with neither, the main branch. `endpoint` and `token`
    absent: as huggingface_hub finds them (HF_ENDPOINT, HF_TOKEN, a saved login). The timeout is for
    all requests together.

    Raises ModelNotFoundError, TokenRequiredError, HubUnavailableError or InvalidSpecError.
    """
    from shipfitter.hub.remote import fetch  # noqa: PLC0415  # the client takes 0.3 s to import

    return fetch(
        uri, revision=revision, endpoint=endpoint, token=token, timeout_seconds=timeout_seconds
    )


def fetch_model_facts(
    uri: str,
    *,
    revision: str | None = None,
    endpoint: str | None = None,
    token: str | None = None,
    timeout_seconds: float = 30.0,
) -> ModelFacts:
    """What sizing must know of a model on the hub; see `fetch_checkpoint`.

    Raises what `fetch_checkpoint` raises, and UnknownArchitectureError.
    """
    checkpoint = fetch_checkpoint(
        uri, revision=revision, endpoint=endpoint, token=token, timeout_seconds=timeout_seconds
    )
    return _facts(checkpoint)


def read_model_facts(path: str | Path, *, name: str | None = None) -> ModelFacts:
    """What sizing must know of a model in a folder of this machine.

    Raises ModelNotFoundError or UnknownArchitectureError.
    """
    return _facts(read_checkpoint(path, name=name))


def _facts(checkpoint: Checkpoint) -> ModelFacts:
    return model_facts(
        checkpoint.config,
        name=checkpoint.name,
        tensors=checkpoint.tensors,
        checkpoint_bytes=checkpoint.stored_bytes,
        revision=checkpoint.revision,
    )
