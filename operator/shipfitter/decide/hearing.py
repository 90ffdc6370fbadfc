"""Engines that refused, whichever variant they are of, and what is done about it."""

from collections.abc import Mapping
from dataclasses import replace

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.engine_log import EngineRefusal
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.model import ModelFacts
from shipfitter.core.plan import Plan, VariantPlan
from shipfitter.decide.choice import Choice
from shipfitter.decide.groups import words_of_gone
from shipfitter.decide.prior import Prior
from shipfitter.decide.recovery import Recovery, answered, heard, told
from shipfitter.decide.verify import under_load
from shipfitter.decide.world import World
from shipfitter.render.plan_record import read_plan
from shipfitter.render.variant import variant_name
from shipfitter.render.workload import template_of
from shipfitter.status.conditions import timestamp


def named(resource: ModelDeployment, plan: Plan) -> Mapping[str, VariantPlan]:
    """The variants of a plan by the names of their workloads."""
    allocation = resource.spec.gpus.allocation
    name = resource.metadata.name
    return {variant_name(name, v.sizing, allocation=allocation): v for v in plan.variants}


def after_refusals(
    resource: ModelDeployment,
    choice: Choice,
    recovery: Recovery,
    *,
    intent: Intent,
    pools: tuple[Pool, ...],
    prior: Prior,
    world: World,
    models: Mapping[str, ModelFacts],
) -> tuple[Choice, Recovery]:
    """The choice once the engines of the running plan were heard."""
    if choice.plan is None or choice.adopted or prior.plan is None:
        return choice, recovery
    refusal, concerned = _refused(resource, choice.plan, prior, world)
    if refusal is None:
        return told(choice, recovery), recovery
    if concerned.decided_at == timestamp(world.now_seconds):
        # A plan is told from the one before by its time in whole seconds.
        return replace(choice, look_again_seconds=1.0), recovery
    return answered(
        choice,
        refusal,
        recovery,
        concerned=concerned,
        intent=intent,
        pools=pools,
        last_good=read_plan(prior.status.get("lastGoodPlan"), models),
        now_seconds=world.now_seconds,
    )


def _refused(
    resource: ModelDeployment, plan: Plan, prior: Prior, world: World
) -> tuple[EngineRefusal | None, VariantPlan]:
    """What an engine refused and which variant it is of; memory before anything else."""
    words = (*world.pods, *words_of_gone(world))
    templates = {workload.name: template_of(workload.body) for workload in world.workloads}
    variants = {name: v for name, v in named(resource, plan).items() if v.decided_at}
    found = [
        (refusal, variant)
        for name, variant in variants.items()
        if (refusal := heard(words, name, templates.get(name, ""))) is not None
    ]
    found.sort(key=lambda each: not (each[0].is_memory or each[0].may_be_memory))
    refusal, concerned = found[0] if found else (None, _most_restarted(plan, variants, world))
    assert prior.plan is not None
    return under_load(refusal, world, prior.plan, prior.status.get("verify")), concerned


def _most_restarted(plan: Plan, variants: Mapping[str, VariantPlan], world: World) -> VariantPlan:
    """Whose engines ended most often: if one died under load, one of these."""
    restarts = dict.fromkeys(variants, 0)
    for pod in world.pods:
        if pod.variant in restarts:
            restarts[pod.variant] += pod.restarts
    return variants[max(restarts, key=restarts.__getitem__)] if restarts else plan.variants[0]
