"""Events: one for each transition, with the condition's own words."""

from collections.abc import Mapping
from typing import Any

from shipfitter.decide.prior import Prior
from shipfitter.decide.world import Notice
from shipfitter.status.conditions import find

# Conditions whose changes a person wants to read in `kubectl describe`.
TOLD = ("ModelResolved", "Planned", "Available", "Drifted", "Reconciling", "Verified")
QUIET = {"RollingOut", "Inspecting", "Settled"}  # of Reconciling only what is in its way is news
CALM = {"Inspecting", "Starting", "RollingOut", "ResizePending", "ScaledToZero"}
GOOD_NEWS = {"ModelResolved", "Planned", "Available", "Verified"}


def notices(prior: Prior, status: Mapping[str, Any], plan_reason: str = "") -> tuple[Notice, ...]:
    """What changed since the stored status, and why the plan changed where it did."""
    told = []
    if plan_reason and plan_reason != "Decided":
        told.append(Notice(type="Normal", reason="Resized", message=plan_reason))
    for kind in TOLD:
        before, after = find(prior.conditions, kind), find(status["conditions"], kind)
        if after is None or _same(before, after):
            continue
        if kind == "Drifted" and after["status"] == "False":
            continue
        if kind == "Reconciling" and after["reason"] in QUIET:
            continue
        if kind == "Verified" and after["reason"] == "Verifying":
            continue
        good = (after["status"] == "True") == (kind in GOOD_NEWS)
        calm = after["reason"] in CALM
        told.append(
            Notice(
                type="Normal" if good or calm else "Warning",
                reason=after["reason"],
                message=after["message"][:1024],
            )
        )
    return tuple(told)


def _same(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    return before is not None and (before["status"], before["reason"]) == (
        after["status"],
        after["reason"],
    )
