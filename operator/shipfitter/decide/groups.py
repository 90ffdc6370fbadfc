"""Replicas over several nodes: whether this cluster can run them, and what their pods tell."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shipfitter.api.storage_rules import MANY, binds_to_one_node
from shipfitter.core.alternatives import named
from shipfitter.core.group_obstacles import INSTALL, LEADER_WORKER_SET_MISSING, group_wish
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.plan import Plan, solve
from shipfitter.decide.choice import Choice
from shipfitter.decide.rollout import Strategy
from shipfitter.decide.world import LivePod, World
from shipfitter.render.workload import template_of
from shipfitter.status.conditions import Condition

# Nodes that others leave tell nobody; how often to look whether enough are free at once.
WAITING_LOOK_SECONDS = 10.0
ONE_NODE_CLAIM = (
    "the cache claim can be mounted by one node alone: name one with access mode ReadWriteMany in "
    "spec.storage.cacheClaim, or none"
)


def with_groups(intent: Intent, world: World) -> Intent:
    """The intent with whether a replica may span nodes here."""
    if binds_to_one_node(world.claim_access_modes or (MANY,)):
        return replace(intent, one_node_because=ONE_NODE_CLAIM, may_spread=False)
    return replace(intent, spans_nodes=world.leader_worker_sets)


def grouped(choice: Choice, kept: Plan | None, intent: Intent, pools: tuple[Pool, ...]) -> Choice:
    """The choice where groups cannot be had: what runs is kept, and the condition says why."""
    if choice.plan is None:
        waits = choice.planned.reason == "WaitingForGpu"
        return replace(choice, look_again_seconds=WAITING_LOOK_SECONDS) if waits else choice
    if intent.spans_nodes:
        return choice
    if kept is not None and kept.variants[0].sizing.settings.layout.nodes > 1:
        what = f"{named(kept.variants[0].sizing)} is planned and stays so, but {INSTALL}"
        missing = Condition("Planned", False, LEADER_WORKER_SET_MISSING, what)
        return replace(choice, plan=None, adopted=False, planned=missing)
    return _with_preferred(choice, choice.plan, intent, pools)


def _with_preferred(choice: Choice, plan: Plan, intent: Intent, pools: tuple[Pool, ...]) -> Choice:
    """Where a later model is taken for want of groups, the condition says so."""
    uris = [model.uri for model in intent.models]
    uri = plan.variants[0].sizing.model.uri
    earlier = intent.models[: uris.index(uri)] if uri in uris else ()
    if not earlier or intent.one_node_because or not choice.planned.status:
        return choice
    preferred = group_wish(replace(intent, models=earlier), pools, solve)
    if preferred is None:
        return choice
    message = f"{choice.planned.message}; {named(preferred)} is preferred, but {INSTALL}"
    told = replace(choice.planned, reason=LEADER_WORKER_SET_MISSING, message=message)
    return replace(choice, planned=told)


def words_of_gone(world: World) -> tuple[LivePod, ...]:
    """Pods of groups that ended and were made anew, until their group serves again."""
    serving = {pod.name for pod in world.pods if pod.ready}
    templates = {workload.name: template_of(workload.body) for workload in world.workloads}
    return tuple(
        pod
        for pod in world.departed
        if pod.template_hash == templates.get(pod.variant) and _leader_name(pod) not in serving
    )


def _leader_name(pod: LivePod) -> str:
    """Source: LeaderWorkerSet v1: leaders are SET-GROUP, workers SET-GROUP-WORKER."""
    group = pod.name.removeprefix(f"{pod.variant}-").split("-")[0]
    return f"{pod.variant}-{group}"


def has_strategy(body: Mapping[str, Any], how: Strategy) -> bool:
    """Whether a live Deployment or LeaderWorkerSet replaces its replicas in this way."""
    spec = body.get("spec") or {}
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or (
        spec.get("rolloutStrategy") or {}
    ).get("rollingUpdateConfiguration")
    found = rolling or {}
    return (found.get("maxSurge"), found.get("maxUnavailable")) == (
        how.max_surge,
        how.max_unavailable,
    )
