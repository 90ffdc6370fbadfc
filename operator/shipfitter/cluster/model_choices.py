"""What a ModelDeployment's raw body says of its models, before anything of it is known to parse."""

from collections.abc import Mapping
from typing import Any

from shipfitter.api.inline_facts import inline_model_facts
from shipfitter.core.model import ModelFacts
from shipfitter.errors import InvalidSpecError, UserError


def has_token(body: Mapping[str, Any]) -> bool:
    """Whether the spec names a Secret with a token."""
    model = (body.get("spec") or {}).get("model")
    return isinstance(model, Mapping) and bool(model.get("tokenSecretRef"))


def on_a_claim(uri: str) -> InvalidSpecError:
    """What is to be said of a claim where no Job can be made."""
    return InvalidSpecError(
        (
            f"spec.model.uri: {uri} is on a claim, which the operator cannot read; "
            "write what sizing needs into spec.model.facts (config and weightsBytes)",
        )
    )


def pinned_revision(body: Mapping[str, Any], uri: str) -> str:
    """The commit this spec already runs, where only the status still knows it."""
    status = body.get("status") or {}
    if status.get("observedGeneration") != body["metadata"].get("generation"):
        return ""  # the spec changed since: it may ask for another revision
    variants = (status.get("plan") or {}).get("variants") or ()
    if not any(each.get("modelUri") == uri for each in variants):
        return ""
    return str((status.get("model") or {}).get("revision") or "")


def choices(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The model and its alternatives as written; what is malformed is for the parser to report."""
    model = (body.get("spec") or {}).get("model")
    if not isinstance(model, Mapping):
        return []
    alternatives = model.get("alternatives")
    listed = [model, *(alternatives if isinstance(alternatives, list) else [])]
    return [
        each for each in listed if isinstance(each, Mapping) and isinstance(each.get("uri"), str)
    ]


def inline_facts(uri: str, facts: Any) -> ModelFacts | UserError:
    """Facts that the user wrote out."""
    try:
        return inline_model_facts(uri, facts)
    except UserError as error:
        return error
