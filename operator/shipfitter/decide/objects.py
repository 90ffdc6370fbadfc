"""The choice as manifests: whole workloads only when the decision changed, scale otherwise."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.api.model_deployment import Allocation, ModelDeployment
from shipfitter.api.storage_rules import MANY, binds_to_one_node
from shipfitter.core.plan import Plan
from shipfitter.decide.choice import Choice
from shipfitter.decide.prior import INPUTS_ANNOTATION, PLAN_ANNOTATION, Prior, annotations
from shipfitter.decide.record import decided_at, recorded, variant_of
from shipfitter.decide.rollout import rolled_out
from shipfitter.decide.scaling import Scaling
from shipfitter.decide.world import Apply, Delete, LiveWorkload, World
from shipfitter.render.claim_template import claim_template
from shipfitter.render.config_map import logging_config_map
from shipfitter.render.deployment import on_one_node
from shipfitter.render.disruption import disruption_budget
from shipfitter.render.service import service
from shipfitter.render.workload import workload
from shipfitter.status.conditions import timestamp

# While pods move between variants, or surge may have to be given up, look again soon.
ROLLING_LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What to apply and delete, the record of the plan, and the variants that should serve."""

    applies: tuple[Apply, ...] = ()
    deletes: tuple[Delete, ...] = ()
    record: Mapping[str, Any] | None = None
    variants: tuple[str, ...] = ()
    rolling: bool = False  # pods are still to be made, replaced or taken away
    look_again_seconds: float | None = None


def manifests(
    resource: ModelDeployment,
    world: World,
    prior: Prior,
    choice: Choice,
    *,
    inputs: str,
    image: str,
) -> Written:
    """All objects of the chosen plan; none where there is no plan."""
    if choice.plan is None:
        return Written()
    record = recorded(
        resource,
        prior.plan,
        choice.plan,
        adopted=choice.adopted,
        reason=choice.reason,
        inputs=inputs,
        now=timestamp(world.now_seconds),
    )
    scaling = Scaling(resource, world, choice.plan)
    applies, deletes = _beside(resource, world, choice.plan)
    deletes += [_delete(workload) for workload in scaling.moves.finished]
    stale = _stale(world, scaling, record)
    whole = _one_after_the_other(world, scaling, stale)
    applies += [_whole(resource, world, scaling, name, record, image=image) for name in whole]
    applies += scaling.scales()
    live = {workload.name: workload for workload in world.workloads}
    rolling = (
        bool(stale)
        or len(scaling.moves.replicas) > len(scaling.variants)
        or any(
            _unready(world, name, variant.replicas) for name, variant in scaling.variants.items()
        )
        or any(not rolled_out(live[name], world.pods) for name in scaling.variants if name in live)
    )
    if not rolling:  # until then a pod of the earlier template may have to be made anew
        deletes += _unused_claim_templates(world, applies)
    return Written(
        applies=tuple(applies),
        deletes=tuple(deletes),
        record=record,
        variants=tuple(scaling.variants),
        rolling=rolling,
        look_again_seconds=ROLLING_LOOK_SECONDS if rolling else None,
    )


def _beside(
    resource: ModelDeployment, world: World, plan: Plan
) -> tuple[list[Apply], list[Delete]]:
    """What is there once for all variants, and what each needs before its pods are made."""
    applies = [
        Apply(manifest=logging_config_map(resource)),
        Apply(manifest=service(resource)),
    ]
    if resource.spec.gpus.allocation is Allocation.DRA:
        templates = [claim_template(resource, each.sizing) for each in plan.variants]
        by_name = {each["metadata"]["name"]: each for each in templates}
        applies += [Apply(manifest=each) for each in by_name.values()]
    groups = [(each.replicas, each.sizing.settings.layout.nodes) for each in plan.variants]
    pods = sum(replicas * nodes for replicas, nodes in groups)
    budget = disruption_budget(
        resource,
        group_size=max(nodes for _, nodes in groups),
        pods=pods,
        waiting=_without_gpus(world, pods),
    )
    if budget is not None:
        return [*applies, Apply(manifest=budget)], []
    if not world.disruption_budget_uid:
        return applies, []
    needless = Delete(  # below two replicas it would block every drain
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        name=resource.metadata.name,
        uid=world.disruption_budget_uid,
    )
    return applies, [needless]


def _without_gpus(world: World, wanted: int) -> int:
    """How many of the wanted pods are missing because they wait for GPUs."""
    live = [pod for pod in world.pods if not pod.terminating]
    waiting = sum(pod.waiting_for_gpu_since is not None for pod in live)
    return min(waiting, max(0, wanted - (len(live) - waiting)))


def _stale(world: World, scaling: Scaling, record: Mapping[str, Any]) -> list[str]:
    """The variants whose workload is not there or was written for another decision."""
    live = {workload.name: workload for workload in world.workloads}
    return [
        name
        for name in scaling.variants
        if name not in live or not _carries(live[name], name, record)
    ]


def _one_after_the_other(world: World, scaling: Scaling, stale: list[str]) -> list[str]:
    """Those to be written now: of several whose pods serve only one, once the others are done.

    Each may be without a replica while it replaces its pods; all at once would be without as many.
    """
    live = {workload.name: workload for workload in world.workloads}
    serving = {pod.variant for pod in world.pods if pod.ready and not pod.terminating}
    at_once = [name for name in stale if name not in live or name not in serving]
    waiting = [name for name in stale if name not in at_once]
    others = [name for name in scaling.variants if name in live and name not in stale]
    starting = {pod.variant for pod in world.pods if pod.gpus and not (pod.ready or pod.broken)}
    busy = any(not rolled_out(live[name], world.pods) or name in starting for name in others)
    return at_once if busy else at_once + waiting[:1]


def _whole(
    resource: ModelDeployment,
    world: World,
    scaling: Scaling,
    name: str,
    record: Mapping[str, Any],
    *,
    image: str,
) -> Apply:
    """A variant's workload; a new one starts with its replicas and strategy, not with defaults."""
    new = all(workload.name != name for workload in world.workloads)
    how = scaling.strategy(name)
    whole = workload(
        resource,
        scaling.variants[name],
        record,
        image=image,
        replicas=scaling.moves.replicas[name] if new else None,
        max_surge=how.max_surge if new else None,
        max_unavailable=how.max_unavailable if new else None,
        hub_endpoint=world.settings.hub_endpoint,
    )
    if binds_to_one_node(world.claim_access_modes or (MANY,)):
        whole = on_one_node(whole, resource)
    return Apply(manifest=whole)


def _unused_claim_templates(world: World, applies: list[Apply]) -> list[Delete]:
    kind = "ResourceClaimTemplate"
    used = {a.manifest["metadata"]["name"] for a in applies if a.manifest["kind"] == kind}
    return [
        Delete(api_version="resource.k8s.io/v1", kind=kind, name=name, uid=uid)
        for name, uid in world.claim_templates.items()
        if name not in used
    ]


def _carries(live: LiveWorkload, name: str, record: Mapping[str, Any]) -> bool:
    """Whether the workload was written for this very decision of its variant."""
    stored = annotations(live)
    try:
        written = json.loads(stored.get(PLAN_ANNOTATION, ""))
    except ValueError:
        return False
    mine, wanted = variant_of(written, name), variant_of(record, name)
    if mine is None or wanted is None:
        return False
    same = decided_at(written, mine) == decided_at(record, wanted)
    return same and stored.get(INPUTS_ANNOTATION) == record.get("inputsHash")


def _unready(world: World, wanted: str, replicas: int) -> bool:
    ready = sum(pod.ready for pod in world.pods if pod.variant == wanted)
    return ready < replicas


def _delete(workload: LiveWorkload) -> Delete:
    metadata = workload.body["metadata"]
    return Delete(
        api_version=str(workload.body.get("apiVersion", "apps/v1")),
        kind=str(workload.body.get("kind", "Deployment")),
        name=workload.name,
        uid=str(metadata["uid"]),
    )
