"""Facts from the hub, or those that come with Shipfitter where the hub does not give them."""

import logging

from shipfitter.api.model_source import hub_repository
from shipfitter.core.model import ModelFacts
from shipfitter.errors import HubUnavailableError, TokenRequiredError
from shipfitter.hub import fetch_model_facts
from shipfitter.known_models import known_model_facts

log = logging.getLogger(__name__)


def fetch_or_known(
    uri: str,
    *,
    revision: str | None,
    endpoint: str | None,
    timeout_seconds: float,
    may_be_known: bool = True,
) -> ModelFacts:
    """The hub's answer; for a gated model, or a hub that is away, what is known of it anyway.

    Only for models named without a revision; for a gated one not where somebody has a token for it.
    Raises what `fetch_model_facts` raises.
    """
    try:
        return fetch_model_facts(
            uri, revision=revision, endpoint=endpoint, timeout_seconds=timeout_seconds
        )
    except (TokenRequiredError, HubUnavailableError) as error:
        repository = hub_repository(uri)
        known = known_model_facts(repository) if repository else None
        has_token = isinstance(error, TokenRequiredError) and not may_be_known
        if known is None or has_token or revision not in (None, "", "main"):
            raise
        log.info("model %s: %s; using %s", uri, error.reason, known.weights_source)
        return known
