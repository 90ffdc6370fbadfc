"""The plan as it is recorded: a variant that is kept stays in it word for word."""

from collections.abc import Mapping
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.inventory import CapacitySource
from shipfitter.core.plan import Plan
from shipfitter.render.plan_record import plan_record

Record = Mapping[str, Any]


def recorded(
    resource: ModelDeployment,
    prior: Record | None,
    plan: Plan,
    *,
    adopted: bool,
    reason: str,
    inputs: str,
    now: str,
) -> Record:
    """The record of the plan now.

    Of a variant that was decided earlier nothing changes but its replicas, whatever this release
    would compute; each variant has its own time of decision where that is not the plan's.
    """
    fresh = plan_record(resource, plan, inputs_hash=inputs, decided_at=now, reason=reason)
    base = fresh if adopted or prior is None else prior
    known = {str(each["name"]): each for each in (prior or {}).get("variants") or ()}
    variants = []
    for written, variant in zip(fresh["variants"], plan.variants, strict=True):
        before = known.get(written["name"]) if variant.decided_at else None
        kept = {**(before or written), "replicas": variant.replicas}
        if kept.get("capacitySource") == CapacitySource.EXPECTED:  # until its nodes are there
            kept["capacitySource"] = written["capacitySource"]
        kept.pop("decidedAt", None)
        at = variant.decided_at if before else now
        variants.append(kept if at == base.get("decidedAt") else {**kept, "decidedAt": at})
    told = {"reason": reason} if reason and base is not fresh else {}
    return {**base, **told, "variants": variants}


def decided_at(record: Record, variant: Record) -> str:
    """When the figures of one of a record's variants were decided."""
    return str(variant.get("decidedAt") or record.get("decidedAt") or "")


def variant_of(record: Record | None, name: str) -> Record | None:
    """The variant of this name."""
    variants = (record or {}).get("variants") or ()
    return next((each for each in variants if each.get("name") == name), None)
