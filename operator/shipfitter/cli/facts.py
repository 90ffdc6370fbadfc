"""Model facts from wherever they are: inline, the hub, or those that come with Shipfitter."""

import os
from collections.abc import Mapping

from shipfitter.api.inline_facts import inline_model_facts
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import ModelAlternative, canonical_uri, hub_repository
from shipfitter.core.model import ModelFacts
from shipfitter.errors import HubUnavailableError, TokenRequiredError, UserError
from shipfitter.known_models import known_model_facts

HUB_TIMEOUT_SECONDS = 20.0


def facts_for(
    resource: ModelDeployment, *, offline: bool = False
) -> Mapping[str, ModelFacts | UserError]:
    """For each model the resource names, its facts or the reason they cannot be had, by uri.

    Inline facts come first, then those that come with Shipfitter (for models named without a
    revision: no network, the same answer everywhere), then the hub.
    """
    found: dict[str, ModelFacts | UserError] = {}
    for choice in resource.spec.model.choices:
        uri = canonical_uri(choice.uri)
        try:
            found[uri] = _facts(choice, offline=offline)
        except UserError as error:
            found[uri] = error
    return found


def _facts(choice: ModelAlternative, *, offline: bool) -> ModelFacts:
    if choice.facts is not None:
        return inline_model_facts(canonical_uri(choice.uri), choice.facts)
    repository = hub_repository(choice.uri)
    if repository is None:
        raise TokenRequiredError(
            f"{choice.uri} lies on a claim that cannot be read from here: give its config.json and "
            "weight bytes in spec.model.facts"
        )
    known = known_model_facts(repository)
    if known is not None and choice.revision in (None, "main"):
        return known
    if offline:
        raise HubUnavailableError(
            f"{choice.uri} is not among the models known without a hub: give spec.model.facts, or "
            "leave out --offline"
        )
    from shipfitter.hub import fetch_model_facts

    return fetch_model_facts(
        choice.uri,
        revision=choice.revision,
        endpoint=os.environ.get("HF_ENDPOINT"),
        token=os.environ.get("HF_TOKEN"),
        timeout_seconds=HUB_TIMEOUT_SECONDS,
    )
