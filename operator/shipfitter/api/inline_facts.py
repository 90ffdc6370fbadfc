"""Model facts that a user wrote into the spec: no network needed at all."""

from typing import Any

from pydantic import ValidationError

from shipfitter.api.model_source import InlineFacts, served_name
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.errors import InvalidSpecError


def inline_model_facts(uri: str, facts: Any, *, path: str = "spec.model.facts") -> ModelFacts:
    """The facts of a model from what stands in the spec.

    Raises InvalidSpecError with every mistake, UnknownArchitectureError for a class whose memory is
    not known.
    """
    try:
        inline = InlineFacts.model_validate(facts)
    except ValidationError as error:
        problems = (
            f"{path}.{'.'.join(map(str, each['loc']))}: {each['msg'].lower()}, "
            f"got {each['input']!r}"
            for each in error.errors()
        )
        raise InvalidSpecError(tuple(problems)) from error
    return model_facts(inline.config, name=served_name(uri), checkpoint_bytes=inline.weights_bytes)
