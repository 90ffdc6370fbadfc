"""Conditions about what was found: capacity, the model, and what could be newer."""

from dataclasses import replace

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import canonical_uri
from shipfitter.core.inventory import Pool
from shipfitter.core.model import ModelFacts
from shipfitter.decide.choice import Choice
from shipfitter.decide.doubts import doubts
from shipfitter.decide.resolved import Engine
from shipfitter.decide.world import World
from shipfitter.errors import UserError
from shipfitter.status.conditions import Condition


def capacity(pools: tuple[Pool, ...], world: World) -> Condition:
    """The pools by name and source, and what is not as it should be."""
    told = doubts(pools, world)
    if not pools:
        said = "; ".join(("no ready node offers a usable GPU", *told))
        return Condition("CapacityKnown", False, "NoGpuCapacity", said)
    listed = ", ".join(f"{p.name} ({p.source})" for p in pools[:8])
    return Condition("CapacityKnown", True, "GpusFound", "; ".join((listed, *told)))


def model_sentence(resource: ModelDeployment, world: World, facts: ModelFacts) -> str:
    """Where the facts are from, and which alternatives are left out for want of them."""
    missing = [
        f"{uri} is left out ({found.reason})"
        for uri in dict.fromkeys(canonical_uri(c.uri) for c in resource.spec.model.alternatives)
        if isinstance(found := world.models.get(uri), UserError)
    ]
    return "; ".join([f"{facts.architecture}, facts from {facts.weights_source}", *missing])


def drift(choice: Choice, resource: ModelDeployment, engine: Engine, world: World) -> Condition:
    """A newer default image only recommends itself; a resize in sight is more urgent."""
    newer = world.settings.default_image
    if choice.drifted.status or resource.spec.engine.image or newer == engine.image:
        return choice.drifted
    return replace(
        choice.drifted,
        status=True,
        reason="EngineUpdateAvailable",
        message=f"{engine.image} runs and {newer} is the default now; spec.engine.image takes it",
    )
