"""What was decided before: from status, or from the workload's annotations when status is lost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    """The record on the newest workload that carries one; a damaged record counts as none."""
    newest = sorted(
        workloads,
        key=lambda w: str(w.body.get("metadata", {}).get("creationTimestamp", "")),
        reverse=True,
    )
    for workload in newest:
        try:
            record = json.loads(annotations(workload).get(PLAN_ANNOTATION, ""))
        except ValueError:
            continue
        if isinstance(record, dict):
            return record
    return None
