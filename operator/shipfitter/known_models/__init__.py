"""Facts of well-known models, so that a plan needs no hub: config.json and weight bytes, as data.

Gated repositories are among them: the operator reads no Secrets, so it could not ask for those.
"""

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from shipfitter.core.model import ModelFacts, model_facts

SOURCE = "facts that come with Shipfitter"


def known_repositories() -> tuple[str, ...]:
    """The repositories whose facts are here, by name."""
    names = (entry.name for entry in files(__name__).iterdir())
    return tuple(
        sorted(
            name.removesuffix(".json").replace("--", "/", 1)
            for name in names
            if name.endswith(".json")
        )
    )


def known_config(repository: str) -> tuple[dict[str, Any], int] | None:
    """config.json and weight bytes of ORG/NAME as published; None for a model that is not here."""
    if "/" not in repository or ".." in repository:
        return None
    entry = files(__name__) / f"{repository.replace('/', '--', 1)}.json"
    if not entry.is_file():
        return None
    known = json.loads(entry.read_text(encoding="utf-8"))
    return known["config"], known["weightsBytes"]


@cache
def known_model_facts(repository: str) -> ModelFacts | None:
    """The facts of ORG/NAME as it was published; None for a model that is not here."""
    known = known_config(repository)
    if known is None:
        return None
    config, weights_bytes = known
    facts = model_facts(config, name=repository, checkpoint_bytes=weights_bytes)
    return replace(facts, weights_source=SOURCE)
