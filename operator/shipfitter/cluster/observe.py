"""The world of one decision, seen once: capacity, models, workloads and pods."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from shipfitter.cluster import ledger, trim
from shipfitter.cluster.caches import Caches
from shipfitter.cluster.calibrations import Calibrations
from shipfitter.cluster.client import Client
from shipfitter.cluster.engines import Engines
from shipfitter.cluster.free_gpus import ForeignUse, Used
from shipfitter.cluster.kinds import (
    CLAIM,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    LEADER_WORKER_SET,
    OWNER_LABEL,
)
from shipfitter.cluster.last_logs import LastLogs
from shipfitter.cluster.model_facts import Found
from shipfitter.cluster.queue import Key
from shipfitter.cluster.quotas import counted, gpu_quotas, requested
from shipfitter.cluster.trim import OwnPod
from shipfitter.cluster.verification import Verifications
from shipfitter.core.calibrate import CalibrationKey, Learning
from shipfitter.core.capacity import NodeCapacity
from shipfitter.core.quota import GpuQuota
from shipfitter.decide.world import LivePod, LiveWorkload, Outcome, Settings, World
from shipfitter.status.load_test import LoadTest
from shipfitter.status.pods import ObservedEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnState:
    """What exists of one deployment, read live: a decision must not rest on an older answer."""

    workloads: tuple[LiveWorkload, ...]
    claim_access_modes: tuple[str, ...] | None
    learnt: Mapping[CalibrationKey, Learning]
    priority_class: str = ""  # of its pods
    load_tests: tuple[LoadTest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Reads what decisions need."""

    client: Client
    caches: Caches
    foreign: ForeignUse
    settings: Settings
    engines: Engines | None = None
    last_logs: LastLogs | None = None
    calibrations: Calibrations | None = None
    verifications: Verifications | None = None
    promises: ledger.Promises = field(default_factory=ledger.Promises)
    now: Callable[[], float] = time.time

    def own_state(self, key: Key, body: Mapping[str, Any]) -> OwnState:
        """What takes requests; also the list of all pods is made fresh, where it is too old."""
        self.foreign.used()
        return OwnState(
            workloads=tuple(self._workloads(key)) if self._may_have_some(key, body) else (),
            claim_access_modes=self._claim_access_modes(key, body),
            learnt=self.calibrations.learnt() if self.calibrations else {},
            load_tests=self.verifications.look(key, body) if self.verifications else (),
            priority_class=_priority_class(body),
        )

    def world(self, key: Key, own: OwnState, models: Mapping[str, Found]) -> World:
        """Everything one decision may look at; from here on it is memory alone, and quick."""
        pods = self.caches.own_pods()
        budget = self.caches.known(DISRUPTION_BUDGET, key.namespace, key.name)
        return World(
            now_seconds=self.now(),
            nodes=self._nodes(key, pods),
            models=models,
            workloads=own.workloads,
            learnt=own.learnt,
            load_tests=own.load_tests,
            pods=tuple(
                live_pod(self._heard(pod), self.engines.said(pod) if self.engines else None)
                for pod in sorted(pods, key=lambda each: each.name)
                if (pod.namespace, pod.owner) == key
            ),
            departed=tuple(
                live_pod(pod)
                for pod in self.caches.last_words.of(key)
                if pod.variant in {w.name for w in own.workloads if _is_group(w)}
            ),
            leader_worker_sets=self.caches.has_groups,
            claim_access_modes=own.claim_access_modes,
            disruption_budget_uid=budget.uid if budget else "",
            expected=self.caches.expected_nodes(),
            has_claims=self.caches.slices.present,
            claim_templates={each.name: each.uid for each in self.caches.own_claim_templates(key)},
            quotas=self._quotas(key, own, pods),
            own_requests=requested(pods, key),
            settings=self.settings,
        )

    def _heard(self, pod: OwnPod) -> OwnPod:
        return self.last_logs.told(pod) if self.last_logs else pod

    def promise(self, key: Key, own: OwnState, outcome: Outcome) -> None:
        """Until `promises.withdraw`, other deployments count what this outcome will take."""
        known = {each.name: trim.own_workload(each.body) for each in own.workloads}
        self.promises.make(key, ledger.promised(key, outcome.applies, known))

    def _claim_access_modes(self, key: Key, body: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Of the cache claim; None where none is named or it does not exist (yet)."""
        storage = (body.get("spec") or {}).get("storage")
        name = storage.get("cacheClaim") if isinstance(storage, Mapping) else None
        claim = self.client.read(CLAIM, key.namespace, name) if isinstance(name, str) else None
        if claim is None:
            return None
        return tuple(claim.get("spec", {}).get("accessModes") or ())

    def _quotas(self, key: Key, own: OwnState, pods: list[OwnPod]) -> tuple[GpuQuota, ...]:
        """What quotas say, with pods of other deployments that are still to be made."""
        found = self.caches.namespace_quotas()
        if not any(each.namespace == key.namespace for each in found):
            return ()
        others = self.promises.over(self.caches.own_workloads(), but_for=key)
        coming = ledger.to_come((w for w in others if w.namespace == key.namespace), pods)
        return tuple(
            replace(quota, used_by_others=quota.used_by_others + counted(quota, coming))
            for quota in gpu_quotas(found, key, own.priority_class, requested(pods, key))
        )

    def _nodes(self, key: Key, pods: list[OwnPod]) -> tuple[NodeCapacity, ...]:
        """Nodes with all that is held or promised on them, but for this deployment's promises."""
        used = _together(self.foreign.known(), ledger.held(pods))
        others = self.promises.over(self.caches.own_workloads(), but_for=key)
        nodes = self.caches.capacity.nodes(used, self.caches.taken_devices())
        return ledger.charge(nodes, ledger.claims(others, pods))

    def _may_have_some(self, key: Key, body: Mapping[str, Any]) -> bool:
        """False for a deployment we never told anything about and see no workload of."""
        seen = ((each.namespace, each.owner) for each in self.caches.own_workloads())
        return bool(body.get("status")) or key in seen

    def _workloads(self, key: Key) -> list[LiveWorkload]:
        selection = {"labelSelector": f"{OWNER_LABEL}={key.name}"}
        groups = (LEADER_WORKER_SET,) if self.caches.has_groups else ()
        return [
            live_workload(kind.api_version, kind.kind, raw)
            for kind in (DEPLOYMENT, *groups)
            for page in self.client.pages(kind, key.namespace, query=selection)
            for raw in page.get("items") or ()
        ]


def _priority_class(body: Mapping[str, Any]) -> str:
    placement = (body.get("spec") or {}).get("placement")
    name = placement.get("priorityClassName") if isinstance(placement, Mapping) else None
    return name if isinstance(name, str) else ""


def live_workload(api_version: str, kind: str, raw: Mapping[str, Any]) -> LiveWorkload:
    """A listed workload; items of a list do not say what they are."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != "managedFields"}
    body = {**raw, "apiVersion": api_version, "kind": kind, "metadata": metadata}
    return LiveWorkload(name=metadata["name"], body=body)


def _is_group(workload: LiveWorkload) -> bool:
    return bool(workload.body["kind"] == LEADER_WORKER_SET.kind)


def live_pod(pod: OwnPod, observed: ObservedEngine | None = None) -> LivePod:
    """A pod as decisions know it."""
    since = pod.unschedulable_since
    holds = bool(pod.node) and not pod.ended
    return LivePod(
        name=pod.name,
        variant=pod.variant,
        ready=pod.ready and pod.serves,  # a worker's engine has no readiness of its own
        phase=pod.phase,
        node=pod.node,
        waiting_for_gpu_since=datetime.fromisoformat(since).timestamp() if since else None,
        unschedulable=pod.unschedulable,
        template_hash=pod.template_hash,
        restarts=pod.restarts,
        waiting_reason=pod.waiting_reason,
        termination_message=pod.termination_message,
        exit_code=pod.exit_code,
        terminating=pod.terminating,
        gpus=sum(pod.gpus.values()) if holds else 0,
        gpu_resource=next(iter(pod.gpus), ""),
        created_seconds=datetime.fromisoformat(pod.created).timestamp() if pod.created else 0.0,
        ended_reason=pod.ended_reason,
        address=pod.address,
        cost=pod.deletion_cost,
        observed=observed,
        serves=pod.serves,
    )


def _together(one: Used, other: Used) -> dict[str, dict[str, int]]:
    total: dict[str, dict[str, int]] = {node: dict(counts) for node, counts in one.items()}
    for node, counts in other.items():
        mine = total.setdefault(node, {})
        for name, count in counts.items():
            mine[name] = mine.get(name, 0) + count
    return total
