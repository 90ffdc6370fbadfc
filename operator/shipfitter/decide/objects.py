"""The choice as manifests: whole workloads only when the decision changed, scale otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.api.model_deployment import Allocation, ModelDeployment
from shipfitter.api.storage_rules import MANY, binds_to_one_node
from shipfitter.core.inventory import CapacitySource
from shipfitter.core.plan import Sizing
from shipfitter.decide.choice import Choice
from shipfitter.decide.groups import has_strategy
from shipfitter.decide.prior import INPUTS_ANNOTATION, PLAN_ANNOTATION, Prior, annotations
from shipfitter.decide.rollout import (
    Strategy,
    Takeover,
    rolled_out,
    spec_replicas,
    strategy,
    takeover,
)
from shipfitter.decide.world import Apply, Delete, LiveWorkload, World
from shipfitter.render.claim_template import claim_template
from shipfitter.render.config_map import logging_config_map
from shipfitter.render.deployment import on_one_node
from shipfitter.render.disruption import disruption_budget
from shipfitter.render.plan_record import plan_record
from shipfitter.render.service import service
from shipfitter.render.variant import variant_name, workload_kind
from shipfitter.render.workload import workload, workload_scale
from shipfitter.status.conditions import timestamp

SCALE_MANAGER = "shipfitter-scale"
# While pods move between variants, or surge may have to be given up, look again soon.
ROLLING_LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What to apply and delete, the record of the plan, and the variant that should serve."""

    applies: tuple[Apply, ...] = ()
    deletes: tuple[Delete, ...] = ()
    record: Mapping[str, Any] | None = None
    variant: str = ""
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
    name = resource.metadata.name
    sizing = choice.plan.variants[0].sizing
    wanted = variant_name(name, sizing, allocation=resource.spec.gpus.allocation)
    record = _with_source(prior.plan, sizing)
    if choice.adopted or record is None:
        record = plan_record(
            resource,
            choice.plan,
            inputs_hash=inputs,
            decided_at=timestamp(world.now_seconds),
            reason=choice.reason,
        )
    live = next((w for w in world.workloads if w.name == wanted), None)
    moves = takeover(
        wanted,
        resource.spec.replicas,
        world.workloads,
        world.replicas,
        may_yield=_may_yield(resource, world, sizing, wanted),
    )
    applies = [
        Apply(manifest=logging_config_map(resource)),
        Apply(manifest=service(resource)),
    ]
    if resource.spec.gpus.allocation is Allocation.DRA:
        applies.append(Apply(manifest=claim_template(resource, sizing)))
    budget = disruption_budget(resource, group_size=sizing.settings.layout.nodes)
    deletes = [_delete(workload) for workload in moves.finished]
    if budget is not None:
        applies.append(Apply(manifest=budget))
    elif world.disruption_budget_uid:  # below two replicas it would block every drain
        deletes.append(
            Delete(
                api_version="policy/v1",
                kind="PodDisruptionBudget",
                name=name,
                uid=world.disruption_budget_uid,
            )
        )
    written_whole = live is None or not _carries(live, record)
    if written_whole:
        # A new workload starts with its replicas and strategy, never with Kubernetes' defaults.
        how = _strategy(resource, world, sizing, wanted)
        whole = workload(
            resource,
            choice.plan.variants[0],
            record,
            image=image,
            replicas=moves.replicas[wanted] if live is None else None,
            max_surge=how.max_surge if live is None else None,
            max_unavailable=how.max_unavailable if live is None else None,
            hub_endpoint=world.settings.hub_endpoint,
        )
        if _binds_to_one_node(world):
            whole = on_one_node(whole, resource)
        applies.append(Apply(manifest=whole))
    applies.extend(_scales(resource, world, moves, wanted, sizing))
    rolling = (
        written_whole
        or len(moves.replicas) > 1
        or _unready(world, wanted, resource.spec.replicas)
        or (live is not None and not rolled_out(live))
    )
    if not rolling:  # until then a pod of the earlier template may have to be made anew
        deletes += _unused_claim_templates(world, applies)
    return Written(
        applies=tuple(applies),
        deletes=tuple(deletes),
        record=record,
        variant=wanted,
        rolling=rolling,
        look_again_seconds=ROLLING_LOOK_SECONDS if rolling else None,
    )


def _with_source(record: Mapping[str, Any] | None, sizing: Sizing) -> Mapping[str, Any] | None:
    """The record of a plan that is kept; once its nodes are there, with who tells of them.

    Otherwise a source is no part of what was decided: agents come and go.
    """
    if record is None:
        return None
    (first, *others) = record["variants"]
    if first.get("capacitySource") != CapacitySource.EXPECTED:
        return record
    return {**record, "variants": [{**first, "capacitySource": str(sizing.pool.source)}, *others]}


def _unused_claim_templates(world: World, applies: list[Apply]) -> list[Delete]:
    kind = "ResourceClaimTemplate"
    used = {a.manifest["metadata"]["name"] for a in applies if a.manifest["kind"] == kind}
    return [
        Delete(api_version="resource.k8s.io/v1", kind=kind, name=name, uid=uid)
        for name, uid in world.claim_templates.items()
        if name not in used
    ]


def _carries(live: LiveWorkload, record: Mapping[str, Any]) -> bool:
    """Whether the workload was written for this very decision."""
    stored = annotations(live)
    return stored.get(INPUTS_ANNOTATION) == record.get("inputsHash") and (
        f'"decidedAt":"{record.get("decidedAt")}"'
        in stored.get(PLAN_ANNOTATION, "").replace(" ", "")
    )


def _unready(world: World, wanted: str, replicas: int) -> bool:
    ready = sum(pod.ready for pod in world.pods if pod.variant == wanted)
    return ready < replicas


def _room(world: World, sizing: Sizing) -> bool:
    """Whether one more replica finds free GPUs on nodes of the pool right now."""
    members = {node.name for node in sizing.pool.nodes}
    layout = sizing.settings.layout
    pods = sum(
        (node.allocatable_gpus - node.used_gpus) // layout.gpus_per_node
        for node in world.nodes
        if node.name in members
        and node.resource_name == sizing.pool.resource_name
        and node.ready
        and node.schedulable
    )
    return pods >= layout.nodes


def _may_yield(resource: ModelDeployment, world: World, sizing: Sizing, wanted: str) -> bool:
    """Whether an old variant must give up GPUs before the new one can start on the same nodes."""
    if str(resource.spec.rollout.mode) == "Surge" or _room(world, sizing):
        return False
    mine = [pod for pod in world.pods if pod.variant == wanted]
    waits = any(pod.waiting_for_gpu_since is not None for pod in mine)
    if not waits and any(pod.gpus and pod.serves and not pod.ready for pod in mine):
        return False  # it has its GPUs: the old ones serve until it does
    members = {node.name for node in sizing.pool.nodes}
    return any(pod.variant != wanted and pod.node in members for pod in world.pods)


def _binds_to_one_node(world: World) -> bool:
    """Whether the cache claim lets pods of one node in only, and one after the other."""
    return binds_to_one_node(world.claim_access_modes or (MANY,))


def _strategy(resource: ModelDeployment, world: World, sizing: Sizing, name: str) -> Strategy:
    pods = tuple(pod for pod in world.pods if pod.variant == name)
    # A surge pod that has its GPUs took the room there was: to give surging up now would end a pod
    # that serves for one that only starts.
    surges = sum(pod.gpus for pod in pods) > resource.spec.replicas * sizing.gpus_per_replica
    return strategy(
        str(resource.spec.rollout.mode),
        pods,
        room_to_surge=surges or _room(world, sizing),
        now_seconds=world.now_seconds,
    )


def _scales(
    resource: ModelDeployment, world: World, moves: Takeover, wanted: str, sizing: Sizing
) -> list[Apply]:
    applies = []
    for name, replicas in sorted(moves.replicas.items()):
        how = _strategy(resource, world, sizing, name)
        live = next((w for w in world.workloads if w.name == name), None)
        if live is not None and spec_replicas(live) == replicas and has_strategy(live.body, how):
            continue
        manifest = workload_scale(
            resource,
            name,
            kind=str(live.body["kind"]) if live else workload_kind(sizing),
            replicas=replicas,
            max_surge=how.max_surge,
            max_unavailable=how.max_unavailable,
        )
        applies.append(Apply(manifest=manifest, manager=SCALE_MANAGER))
    return applies


def _delete(workload: LiveWorkload) -> Delete:
    metadata = workload.body["metadata"]
    return Delete(
        api_version=str(workload.body.get("apiVersion", "apps/v1")),
        kind=str(workload.body.get("kind", "Deployment")),
        name=workload.name,
        uid=str(metadata["uid"]),
    )
