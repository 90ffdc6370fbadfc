"""Where a model comes from: its uri, its revision, or its facts written out."""

import re
from typing import Annotated, Any

from pydantic import Field

from shipfitter.api.base import ApiModel, FreeForm, Name, Word, validated
from shipfitter.api.rules import URI_RULE

ModelUri = Annotated[str, Field(max_length=512, json_schema_extra=validated(URI_RULE))]
Revision = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$")]


class SecretKeyRef(ApiModel):
    """A key of a Secret in the deployment's namespace."""

    name: Name
    key: Word = "token"


class ModelAlternative(ApiModel):
    """Another form of the same model, taken when those before it do not fit."""

    uri: ModelUri
    """hf://ORG/NAME, ORG/NAME or pvc://CLAIM/PATH."""
    revision: Revision | None = None
    """Branch, tag or commit; absent: the one named main."""
    facts: FreeForm | None = None
    """As in model.facts."""


class ModelRef(ModelAlternative):
    """The model to serve."""

    token_secret_ref: SecretKeyRef | None = None
    """The Hub token for gated and private models; read by the engine and the inspection Job."""
    alternatives: Annotated[tuple[ModelAlternative, ...], Field(max_length=16)] = ()
    """Tried in order when the model above does not fit."""
    facts: FreeForm | None = None
    """What sizing must know, so that it needs no network: config (the content of config.json) and
    weightsBytes (the size of the weight files)."""

    @property
    def choices(self) -> tuple[ModelAlternative, ...]:
        """The model and its alternatives, first choice first."""
        return (self, *self.alternatives)


def canonical_uri(uri: str) -> str:
    """The uri with its scheme.

    >>> canonical_uri("Qwen/Qwen3-32B")
    'hf://Qwen/Qwen3-32B'
    """
    return uri if "://" in uri else f"hf://{uri}"


def hub_repository(uri: str) -> str | None:
    """ORG/NAME of a model on the Hub; None for one on a claim.

    >>> hub_repository("hf://Qwen/Qwen3-32B")
    'Qwen/Qwen3-32B'
    """
    canonical = canonical_uri(uri)
    return canonical.removeprefix("hf://") if canonical.startswith("hf://") else None


def claim_and_path(uri: str) -> tuple[str, str] | None:
    """Claim and path below its root of a model on a claim; None for one on the Hub.

    >>> claim_and_path("pvc://models/llama/8b/")
    ('models', 'llama/8b')
    """
    match = re.match(r"^pvc://([^/]+)/?(.*?)/?$", uri)
    return (match[1], match[2]) if match else None


def short_name(uri: str) -> str:
    """What people call the model: the last part of its uri.

    >>> short_name("hf://meta-llama/Llama-3.1-8B-Instruct"), short_name("pvc://models/llama/8b")
    ('Llama-3.1-8B-Instruct', '8b')
    """
    return uri.rstrip("/").rsplit("/", 1)[-1]


def served_name(uri: str) -> str:
    """The name clients know the model by: ORG/NAME on the Hub, the last part of the path else."""
    return hub_repository(uri) or short_name(uri)


class InlineFacts(ApiModel):
    """The content of model.facts."""

    config: dict[str, Any]
    weights_bytes: Annotated[int, Field(gt=0)] | None = None
