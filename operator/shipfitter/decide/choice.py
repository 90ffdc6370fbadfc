"""Which plan holds now: the kept one, a fresh one, or none; and what to say of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.core.intent import Intent
from shipfitter.core.inventory import CapacitySource, Pool
from shipfitter.core.plan import NoFit, Plan, Sizing, VariantPlan, solve
from shipfitter.core.sizing import holds
from shipfitter.decide.resize import PREFERRED_MODEL_PERCENT, Gain, changes, gain, start
from shipfitter.status.conditions import Condition, find, seconds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Resizing:
    """The resize settings of the spec and of the chart."""

    mode: str  # Automatic | Recommend | Off
    minimum_gain_percent: float
    stabilization_seconds: float
    settle_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The plan to realise (None: nothing is created) and what was said about it."""

    plan: Plan | None
    adopted: bool  # the plan is new: write it whole
    planned: Condition
    drifted: Condition
    reason: str = ""  # why the plan changed
    look_again_seconds: float | None = None


def choose(
    intent: Intent,
    pools: tuple[Pool, ...],
    kept: Plan | None,
    *,
    resizing: Resizing,
    prior_conditions: tuple[Mapping[str, Any], ...],
    now_seconds: float,
    stranded: bool = False,
) -> Choice:
    """Keep what still works unless the gain is worth it; never give up what runs for nothing.

    `stranded`: nothing runs, for its pods find no GPU: any plan that could start now is a gain.
    """
    fresh = solve(intent, pools)
    if kept is None:
        return _first(fresh)
    waiting = _Waiting(prior_conditions, now_seconds)
    standing = _standing(kept, pools)
    if standing is None:
        return _broken(kept, fresh, resizing, waiting)
    if isinstance(fresh, NoFit):
        return _keep(standing, _holds())
    running, wish = standing.variants[0].sizing, fresh.variants[0].sizing
    if stranded and running.pool.name != wish.pool.name:
        return _weigh(standing, fresh, start(running, wish), resizing, waiting)
    if not changes(running, wish):
        return _keep(standing, _holds())
    return _weigh(standing, fresh, gain(intent, running, wish), resizing, waiting)


def _first(fresh: Plan | NoFit) -> Choice:
    if isinstance(fresh, NoFit):
        return Choice(
            plan=None,
            adopted=False,
            planned=Condition("Planned", False, fresh.reason, str(fresh)),
            drifted=_holds(),
        )
    return Choice(
        plan=fresh, adopted=True, planned=_planned(fresh), drifted=_holds(), reason="Decided"
    )


def _standing(kept: Plan, pools: tuple[Pool, ...]) -> Plan | None:
    """The kept plan on its pools as they are now; None when one is gone or too small."""
    by_name = {pool.name: pool for pool in pools}
    variants = []
    for variant in kept.variants:
        pool = by_name.get(variant.sizing.pool.name)
        sizing = holds(variant.sizing, pool) if pool else None
        if sizing is None:
            return None
        variants.append(replace(variant, sizing=sizing))
    return replace(kept, variants=tuple(variants))


def _holds() -> Condition:
    return Condition("Drifted", False, "PlanHolds")


def _keep(plan: Plan, drifted: Condition, *, look_again: float | None = None) -> Choice:
    return Choice(
        plan=plan,
        adopted=False,
        planned=_planned(plan),
        drifted=drifted,
        look_again_seconds=look_again,
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """How long a drift has lasted, by the stored condition: a restart loses nothing."""

    conditions: tuple[Mapping[str, Any], ...]
    now_seconds: float

    def left(self, reason: str, patience_seconds: float) -> float:
        before = find(self.conditions, "Drifted")
        if before is None or before.get("status") != "True" or before.get("reason") != reason:
            return patience_seconds
        since = seconds_of(str(before["lastTransitionTime"]))
        left = since + patience_seconds - self.now_seconds
        return max(0.0, min(patience_seconds, left))  # a clock may have been put back


def _broken(kept: Plan, fresh: Plan | NoFit, resizing: Resizing, waiting: _Waiting) -> Choice:
    """The kept plan's pool is gone or too small: wait a little, then take what fits."""
    pool = kept.variants[0].sizing.pool
    gone = f"no {pool.product} of pool {pool.name} can carry the running plan now"
    drifted = Condition("Drifted", True, "PlanNoLongerFits", gone)
    left = waiting.left("PlanNoLongerFits", resizing.settle_seconds)
    if isinstance(fresh, NoFit):
        return Choice(
            plan=kept,
            adopted=False,
            planned=Condition(
                "Planned", False, fresh.reason, f"{gone}; running pods are kept. {fresh}"
            ),
            drifted=drifted,
        )
    if resizing.mode != "Automatic":
        offer = f"{gone}; {changes(kept.variants[0].sizing, fresh.variants[0].sizing)} would fit"
        return _keep(kept, replace(drifted, message=offer))
    if left > 0:
        return _keep(kept, drifted, look_again=left)
    what = changes(kept.variants[0].sizing, fresh.variants[0].sizing) or "the same figures"
    return Choice(
        plan=fresh,
        adopted=True,
        planned=_planned(fresh),
        drifted=_holds(),
        reason=f"{what}: {gone}",
    )


def _weigh(kept: Plan, fresh: Plan, offered: Gain, resizing: Resizing, waiting: _Waiting) -> Choice:
    """Both would work: take the fresh one only for a gain that lasts and GPUs that are free."""
    wish: VariantPlan = fresh.variants[0]
    awaited = offered.starts and wish.sizing.pool.source is CapacitySource.EXPECTED
    room = awaited or wish.sizing.replicas_now >= wish.replicas
    enough = offered.percent >= max(resizing.minimum_gain_percent, 1e-9)
    if not (room and enough) or resizing.mode == "Off":
        return _keep(kept, _holds())
    message = f"{offered.sentence} would bring {_brings(offered)}"
    if resizing.mode == "Recommend":
        return _keep(kept, Condition("Drifted", True, "ResizeRecommended", message))
    left = waiting.left("ResizePending", resizing.stabilization_seconds)
    if left > 0:
        pending = Condition("Drifted", True, "ResizePending", message)
        return _keep(kept, pending, look_again=left)
    return Choice(
        plan=fresh,
        adopted=True,
        planned=_planned(fresh),
        drifted=_holds(),
        reason=f"{offered.sentence}: {_brings(offered)}",
    )


def _brings(offered: Gain) -> str:
    """The gain in words: a share while small, a factor when large."""
    percent = offered.percent
    if offered.starts:
        return "a start, while its pods wait for GPUs that others hold"
    if percent >= PREFERRED_MODEL_PERCENT:
        return "the model that is preferred"
    if percent >= 100:
        return f"{1 + percent / 100:.1f} times as much of what is preferred"
    return f"{percent:.0f} % more of what is preferred"


def _planned(plan: Plan) -> Condition:
    sizing = plan.variants[0].sizing
    return Condition("Planned", True, _verdict_reason(sizing), sentence(plan))


def _verdict_reason(sizing: Sizing) -> str:
    return str(sizing.verdict)


def sentence(plan: Plan) -> str:
    """What was planned and why, in one sentence with its figures."""
    sizing = plan.variants[0].sizing
    return (
        f"max_model_len {sizing.max_model_len}, max_num_seqs {sizing.max_num_seqs} on {plan.why}; "
        f"limited by {sizing.limited_by}"
    )
