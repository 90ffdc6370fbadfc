"""What was decided before: from status, or from the workload's annotations when status is lost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.decide.record import decided_at
from shipfitter.decide.rollout import spec_replicas
from shipfitter.decide.world import LiveWorkload

PLAN_ANNOTATION = "shipfitter.dev/plan"
INPUTS_ANNOTATION = "shipfitter.dev/inputs-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The last decision, as recorded."""

    plan: Mapping[str, Any] | None
    inputs_hash: str
    image: str
    version: str
    conditions: tuple[Mapping[str, Any], ...]
    status: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any], workloads: tuple[LiveWorkload, ...]) -> "Prior":
        """Status first; without it the workload's own record holds, and nothing is re-decided."""
        status = body.get("status") or {}
        plan = status.get("plan") or _annotated(workloads)
        engine = status.get("engine") or (plan or {}).get("engine") or {}
        return cls(
            # The annotation holds the engine's pins too; in a status they stand beside the plan.
            plan={key: plan[key] for key in plan if key != "engine"} if plan else None,
            inputs_hash=str((plan or {}).get("inputsHash", "")),
            image=str(engine.get("image", "")),
            version=str(engine.get("version", "")),
            conditions=tuple(status.get("conditions") or ()),
            status=status,
        )


def annotations(workload: LiveWorkload) -> Mapping[str, str]:
    """The workload's annotations."""
    found: Mapping[str, str] = workload.body.get("metadata", {}).get("annotations") or {}
    return found


def _annotated(workloads: tuple[LiveWorkload, ...]) -> Mapping[str, Any] | None:
    """The latest decision that a workload carries; a damaged record counts as none.

    Variants that came later than the first are in their own workload's record; those without a
    workload are gone. How many replicas each has, the workloads know best.
    """
    live = {workload.name: spec_replicas(workload) for workload in workloads}
    records = [record for workload in workloads if (record := _record(workload)) is not None]
    latest = max(records, key=_latest, default=None)
    if latest is None:
        return None
    variants = [
        {**variant, "replicas": live[variant["name"]]}
        for variant in latest["variants"]
        if variant.get("name") in live
    ]
    return {**latest, "variants": variants or latest["variants"]}


def _record(workload: LiveWorkload) -> Mapping[str, Any] | None:
    try:
        record = json.loads(annotations(workload).get(PLAN_ANNOTATION, ""))
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("variants") else None


def _latest(record: Mapping[str, Any]) -> tuple[str, int]:
    times = [decided_at(record, variant) for variant in record["variants"]]
    return max(times), len(times)
