"""The straight line: parse, resolve, count, choose, render, report."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.storage_rules import MANY, claim_problems
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.model import ModelFacts
from shipfitter.decide.capacity import elsewhere, held_by_pool, pools_for, stranded
from shipfitter.decide.choice import Choice, Resizing, choose
from shipfitter.decide.deletion_cost import deletion_costs
from shipfitter.decide.groups import grouped, with_groups
from shipfitter.decide.hearing import after_refusals, named
from shipfitter.decide.learning import learnt_from, learnt_of
from shipfitter.decide.notices import notices
from shipfitter.decide.objects import Written, manifests
from shipfitter.decide.prior import Prior
from shipfitter.decide.recovery import Recovery
from shipfitter.decide.report import Report, status_of
from shipfitter.decide.resolved import Engine, engine_of, models_of
from shipfitter.decide.told import capacity, drift, model_sentence
from shipfitter.decide.verify import Rollout, Verification, verified
from shipfitter.decide.waiting import held_back, other_pools
from shipfitter.decide.wish import intent_of
from shipfitter.decide.words import differences
from shipfitter.decide.world import Outcome, World
from shipfitter.errors import (
    InvalidSpecError,
    UserError,
)
from shipfitter.render.plan_record import inputs_hash, read_plan
from shipfitter.status.availability import NOTHING_BESIDE, Beside
from shipfitter.status.conditions import Condition
from shipfitter.status.refused_pods import refused_pods


def decide(body: Mapping[str, Any], world: World) -> Outcome:
    """Turn the wish and the world into an outcome; a user's mistake is an outcome too."""
    prior = Prior.of(body, world.workloads)
    try:
        resource = ModelDeployment.parse(body)
        problems = claim_problems(resource, world.claim_access_modes or (MANY,))
        if problems:
            raise InvalidSpecError(problems)
        engine = engine_of(resource, prior, world)
        models = models_of(resource, world)
    except InvalidSpecError as error:
        return _stopped(body, world, prior, "Planned", error)
    except UserError as error:
        return _stopped(body, world, prior, "ModelResolved", error)
    return _decided(Case(body, world, prior, resource, engine, models))


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
        quotas=world.quotas,
    )
    intent = with_groups(intent, world)
    pools = pools_for(resource, world)
    kept = read_plan(prior.plan, dict(models)) if prior.inputs_hash == inputs else None
    held = held_by_pool(named(resource, kept), world.replicas) if kept else {}
    choice = choose(
        intent,
        pools,
        kept,
        resizing=_resizing(resource, world, recovery),
        prior_conditions=prior.conditions,
        now_seconds=world.now_seconds,
        stranded=stranded(world.pods),
        held=held,
    )
    choice = _with_reason(grouped(choice, kept, intent, pools), prior, dict(models))
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
            Condition("ModelResolved", True, "Resolved", model_sentence(resource, world, facts)),
            capacity(pools, world),
            choice.planned,
            drift(choice, resource, engine, world),
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
        beside=_beside(case, choice, intent, pools, held),
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


def _with_reason(choice: Choice, prior: Prior, models: Mapping[str, ModelFacts]) -> Choice:
    """A plan that follows another because the wish changed says what is different."""
    before = read_plan(prior.plan, models) if choice.reason == "Decided" else None
    if before is None or choice.plan is None:
        return choice
    what = differences(before, choice.plan)
    return replace(choice, reason=f"{what}: the spec or its model changed") if what else choice


def _beside(
    case: Case, choice: Choice, intent: Intent, pools: tuple[Pool, ...], held: Mapping[str, int]
) -> Beside:
    """What is in the way of replicas beside their pods."""
    if choice.plan is None:
        return NOTHING_BESIDE
    allowed, quota = held_back(intent, choice.plan)
    return Beside(
        refused=refused_pods(workload.body for workload in case.world.workloads),
        quota=quota,
        allowed=allowed,
        elsewhere=other_pools(intent, pools, choice.plan, held),
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
