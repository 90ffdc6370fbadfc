"""The straight line: parse, resolve, count, choose, render, report."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import canonical_uri
from shipfitter.api.storage_rules import MANY, claim_problems
from shipfitter.core.engines import EngineVersion
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.model import ModelFacts
from shipfitter.decide.capacity import elsewhere, held_by_pool, pools_for, stranded
from shipfitter.decide.choice import Choice, Resizing, choose
from shipfitter.decide.deletion_cost import deletion_costs
from shipfitter.decide.doubts import doubts
from shipfitter.decide.groups import grouped, with_groups
from shipfitter.decide.hearing import after_refusals, named
from shipfitter.decide.learning import learnt_from, learnt_of
from shipfitter.decide.notices import notices
from shipfitter.decide.objects import Written, manifests
from shipfitter.decide.prior import Prior
from shipfitter.decide.recovery import Recovery
from shipfitter.decide.report import Report, status_of
from shipfitter.decide.verify import Rollout, Verification, verified
from shipfitter.decide.wish import intent_of
from shipfitter.decide.world import Outcome, World
from shipfitter.errors import (
    HubUnavailableError,
    InspectingError,
    InvalidSpecError,
    UserError,
)
from shipfitter.render.plan_record import engine_version, inputs_hash, read_plan
from shipfitter.status.conditions import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The image that runs, and its version."""

    image: str
    version: EngineVersion


def decide(body: Mapping[str, Any], world: World) -> Outcome:
    """Turn the wish and the world into an outcome; a user's mistake is an outcome too."""
    prior = Prior.of(body, world.workloads)
    try:
        resource = ModelDeployment.parse(body)
        problems = claim_problems(resource, world.claim_access_modes or (MANY,))
        if problems:
            raise InvalidSpecError(problems)
        engine = _engine(resource, prior, world)
        models = _models(resource, world)
    except InvalidSpecError as error:
        return _stopped(body, world, prior, "Planned", error)
    except UserError as error:
        return _stopped(body, world, prior, "ModelResolved", error)
    return _decided(Case(body, world, prior, resource, engine, models))


def _engine(resource: ModelDeployment, prior: Prior, world: World) -> Engine:
    """The spec's image, else the one pinned at the first plan, else the chart's."""
    image = resource.spec.engine.image or prior.image or world.settings.default_image
    text = resource.spec.engine.version or engine_version(image)
    if text is None:
        raise InvalidSpecError(
            (f"spec.engine.version: {image} does not tell its version; give it, such as 0.33.0",)
        )
    return Engine(image=image, version=EngineVersion.parse(text))


def _models(resource: ModelDeployment, world: World) -> tuple[tuple[str, ModelFacts], ...]:
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


def _stopped(
    body: Mapping[str, Any], world: World, prior: Prior, kind: str, error: UserError
) -> Outcome:
    """Nothing is decided; what runs is left exactly as it is."""
    report = Report(
        body=body,
        world=world,
        prior=prior,
        plan_record=prior.plan,
        conditions=(Condition(kind, False, error.reason, str(error)),),
    )
    status = status_of(report)
    return Outcome(status=status, notices=notices(prior, status))


@dataclass(frozen=True, slots=True)
class Case:
    """A resource that parses, with a model that is known."""

    body: Mapping[str, Any]
    world: World
    prior: Prior
    resource: ModelDeployment
    engine: Engine
    models: tuple[tuple[str, ModelFacts], ...]  # first choice first


def _decided(case: Case) -> Outcome:
    body, world, prior, resource = case.body, case.world, case.prior, case.resource
    engine, models = case.engine, case.models
    facts = models[0][1]
    inputs = inputs_hash(resource, facts=facts, image=engine.image)
    recovery = Recovery.of(prior.status.get("recovery"), inputs)
    intent = replace(
        intent_of(resource, engine.version, models),
        bounds=recovery.bounds,
        learnt=learnt_of(resource, world),
        elsewhere=elsewhere(resource, world),
    )
    intent = with_groups(intent, world)
    pools = pools_for(resource, world)
    kept = read_plan(prior.plan, dict(models)) if prior.inputs_hash == inputs else None
    choice = choose(
        intent,
        pools,
        kept,
        resizing=_resizing(resource, world, recovery),
        prior_conditions=prior.conditions,
        now_seconds=world.now_seconds,
        stranded=stranded(world.pods),
        held=held_by_pool(named(resource, kept), world.replicas) if kept else {},
    )
    choice = grouped(choice, kept, intent, pools)
    choice, recovery = after_refusals(
        resource,
        choice,
        recovery,
        intent=intent,
        pools=pools,
        prior=prior,
        world=world,
        models=dict(models),
    )
    written = manifests(resource, world, prior, choice, inputs=inputs, image=engine.image)
    lesson = learnt_from(
        resource,
        intent,
        named(resource, choice.plan) if choice.plan else {},
        stored=tuple(prior.status.get("observed") or ()),
        world=world,
    )
    verification = _verification(case, choice, intent, written)
    chosen = choice.plan.variants[0].sizing.model if choice.plan else None
    report = Report(
        body=body,
        world=world,
        prior=prior,
        plan_record=written.record or prior.plan,
        conditions=(
            Condition("ModelResolved", True, "Resolved", _model_sentence(resource, world, facts)),
            _capacity(pools, world),
            choice.planned,
            _drift(choice, resource, engine, world),
            *([lesson.condition] if lesson.condition else []),
            *([verification.condition] if verification.condition else []),
        ),
        facts=chosen.facts if chosen else facts,
        uri=chosen.uri if chosen else models[0][0],
        engine_image=engine.image,
        engine_version=str(engine.version),
        variants=written.variants,
        rolling=written.rolling,
        recovery=recovery.record(),
        observed=lesson.observed,
        verify=verification.record,
    )
    status = status_of(report)
    return Outcome(
        calibrations=lesson.updates,
        applies=written.applies,
        deletes=(*written.deletes, *verification.deletes),
        deletion_costs=deletion_costs(world.pods, world.nodes, _deployments(world)),
        status=status,
        notices=notices(prior, status, choice.reason),
        load_test=verification.start,
        requeue_after_seconds=_soonest(
            choice.look_again_seconds or written.look_again_seconds,
            verification.look_again_seconds,
        ),
    )


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)


def _deployments(world: World) -> tuple[str, ...]:
    """The variants whose pods go one by one."""
    return tuple(w.name for w in world.workloads if w.body.get("kind") == "Deployment")


def _verification(case: Case, choice: Choice, intent: Intent, written: Written) -> Verification:
    """The load test of what is written, where it is wished for."""
    rollout = Rollout(
        record=written.record,
        rolling=written.rolling or choice.adopted,
        image=case.engine.image,
        version=case.engine.version,
        typical_tokens=intent.typical,
    )
    return verified(case.resource, case.world, case.prior.status.get("verify"), rollout)


def _resizing(resource: ModelDeployment, world: World, recovery: Recovery) -> Resizing:
    """After five refusals nothing is resized by itself: the user has the word."""
    resize = resource.spec.resize
    return Resizing(
        mode="Off" if recovery.exhausted else str(resize.mode),
        minimum_gain_percent=resize.minimum_gain_percent,
        stabilization_seconds=resize.stabilization_seconds,
        settle_seconds=world.settings.settle_seconds,
    )


def _capacity(pools: tuple[Pool, ...], world: World) -> Condition:
    """The pools by name and source, and what is not as it should be."""
    told = doubts(pools, world)
    if not pools:
        said = "; ".join(("no ready node offers a usable GPU", *told))
        return Condition("CapacityKnown", False, "NoGpuCapacity", said)
    listed = ", ".join(f"{p.name} ({p.source})" for p in pools[:8])
    return Condition("CapacityKnown", True, "GpusFound", "; ".join((listed, *told)))


def _model_sentence(resource: ModelDeployment, world: World, facts: ModelFacts) -> str:
    """Where the facts are from, and which alternatives are left out for want of them."""
    missing = [
        f"{uri} is left out ({found.reason})"
        for uri in dict.fromkeys(canonical_uri(c.uri) for c in resource.spec.model.alternatives)
        if isinstance(found := world.models.get(uri), UserError)
    ]
    return "; ".join([f"{facts.architecture}, facts from {facts.weights_source}", *missing])


def _drift(choice: Choice, resource: ModelDeployment, engine: Engine, world: World) -> Condition:
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
