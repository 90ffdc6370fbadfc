"""What a resource names, resolved: its engine and its models."""

from dataclasses import dataclass

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import canonical_uri
from shipfitter.core.engines import EngineVersion
from shipfitter.core.model import ModelFacts
from shipfitter.decide.prior import Prior
from shipfitter.decide.world import World
from shipfitter.errors import HubUnavailableError, InspectingError, InvalidSpecError, UserError
from shipfitter.render.plan_record import engine_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The image that runs, and its version."""

    image: str
    version: EngineVersion


def engine_of(resource: ModelDeployment, prior: Prior, world: World) -> Engine:
    """The spec's image, else the one pinned at the first plan, else the chart's."""
    image = resource.spec.engine.image or prior.image or world.settings.default_image
    text = resource.spec.engine.version or engine_version(image)
    if text is None:
        raise InvalidSpecError(
            (f"spec.engine.version: {image} does not tell its version; give it, such as 0.33.0",)
        )
    return Engine(image=image, version=EngineVersion.parse(text))


def models_of(resource: ModelDeployment, world: World) -> tuple[tuple[str, ModelFacts], ...]:
    """Facts of the first choice and of those alternatives that are known.

    Raises the first choice's UserError: another model is taken where the first does not fit, not
    where it is misspelt. What is still being read is waited for, or the choice would be too early.
    """
    choices = [canonical_uri(choice.uri) for choice in resource.spec.model.choices]
    first = world.models.get(choices[0])
    if first is None:
        raise HubUnavailableError(f"spec.model.uri: {choices[0]} is still being read")
    if isinstance(first, UserError):
        raise first
    for uri in choices:
        if isinstance(reading := world.models.get(uri), InspectingError):
            raise reading
    return tuple(
        (uri, facts) for uri in choices if isinstance(facts := world.models.get(uri), ModelFacts)
    )
