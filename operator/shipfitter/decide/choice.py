"""Which plan holds now: the kept one, a fresh one, or none; and what to say of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.core.intent import Intent, Verdict
from shipfitter.core.inventory import Pool
from shipfitter.core.plan import NoFit, Plan, solve_bare, with_outlook
from shipfitter.core.resplit import NOBODY, moved, placed, rescaled
from shipfitter.core.spread import may_come
from shipfitter.decide.keeping import at_rest, beside, off_lost_pools, standing
from shipfitter.decide.resize import PREFERRED_MODEL_PERCENT, Gain, plan_percent, start
from shipfitter.decide.words import added, differences, sentence
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
    adopted: bool  # the plan was made anew; variants that stay in it are not written again
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
    held: Mapping[str, int] = NOBODY,
) -> Choice:
    """Keep what still works unless the gain is worth it; never give up what runs for nothing.

    `stranded`: nothing runs, for its pods find no GPU: any plan that could start now is a gain.
    `held`: replicas that have GPUs, by pool.
    """
    fresh = solve_bare(intent, pools)
    if kept is None:
        return _seen(intent, pools, _first(fresh))
    variants, lost = standing(kept, pools)
    scaled = replace(kept, variants=rescaled(intent, pools, variants, held))
    scales = Scales(intent, pools, resizing, _Waiting(prior_conditions, now_seconds), held)
    if len(lost) == len(variants):
        chosen = scales.broken(scaled, fresh)
    elif lost:
        chosen = scales.partly_broken(scaled)
    else:
        chosen = scales.compared(scaled, fresh, stranded=stranded)
    if not chosen.adopted and any(not variant.decided_at for variant in scaled.variants):
        return replace(chosen, reason=added(scaled))
    return _seen(intent, pools, chosen) if chosen.adopted else chosen


def _seen(intent: Intent, pools: tuple[Pool, ...], chosen: Choice) -> Choice:
    """A fresh plan that is taken tells also what else there would be."""
    if chosen.plan is None or chosen.plan.frontier:
        return chosen
    return replace(chosen, plan=with_outlook(intent, pools, chosen.plan))


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
        return max(0.0, since + patience_seconds - self.now_seconds)


@dataclass(frozen=True, slots=True)
class Scales:
    """The running plan against others, under the cluster and the settings of now."""

    intent: Intent
    pools: tuple[Pool, ...]
    resizing: Resizing
    waiting: _Waiting
    held: Mapping[str, int]

    def seats(self, plan: Plan) -> tuple[int, ...]:
        """Of each variant's replicas those that have GPUs or find some."""
        return placed(self.intent, self.pools, plan.variants, self.held)

    def broken(self, kept: Plan, fresh: Plan | NoFit) -> Choice:
        """The kept plan's pools are gone or too small: wait a little, then take what fits."""
        pool = kept.variants[0].sizing.pool
        gone = f"no {pool.product} of pool {pool.name} can carry the running plan now"
        if not isinstance(fresh, NoFit):
            return self._after(gone, kept, fresh, differences(kept, fresh) or "the same figures")
        return Choice(
            plan=kept,
            adopted=False,
            planned=Condition(
                "Planned", False, fresh.reason, f"{gone}; running pods are kept. {fresh}"
            ),
            drifted=Condition("Drifted", True, "PlanNoLongerFits", gone),
        )

    def partly_broken(self, kept: Plan) -> Choice:
        """Some of the plan's pools are gone: their replicas go to the others, none for nothing."""
        _, lost = standing(kept, self.pools)
        names = ", ".join(variant.sizing.pool.name for variant in lost)
        gone = f"pool {names} can carry its part of the running plan no more"
        after = replace(kept, variants=off_lost_pools(self.intent, self.pools, kept, self.held))
        what = differences(kept, after)
        if not what:
            return _keep(kept, Condition("Drifted", True, "PlanNoLongerFits", gone))
        return self._after(gone, kept, after, what)

    def _after(self, gone: str, kept: Plan, fresh: Plan, what: str) -> Choice:
        """The plan that follows one that holds no more, once that has lasted."""
        drifted = Condition("Drifted", True, "PlanNoLongerFits", gone)
        if self.resizing.mode != "Automatic":
            return _keep(kept, replace(drifted, message=f"{gone}; {what} would fit"))
        left = self.waiting.left("PlanNoLongerFits", self.resizing.settle_seconds)
        if left > 0:
            return _keep(kept, drifted, look_again=left)
        return _adopt(fresh, f"{what}: {gone}")

    def compared(self, kept: Plan, fresh: Plan | NoFit, *, stranded: bool) -> Choice:
        """All of the plan stands: what could be better is weighed."""
        better = moved(self.intent, self.pools, kept.variants, self.held)
        if better is not None:
            wish = replace(kept, variants=better)
            starts = Gain(PREFERRED_MODEL_PERCENT, differences(kept, wish), starts=True)
            return self._weigh(kept, wish, starts)
        if isinstance(fresh, NoFit):
            return _keep(kept, _holds())
        running, first = kept.variants[0].sizing, fresh.variants[0].sizing
        if stranded and running.pool.name != first.pool.name:
            return self._weigh(kept, fresh, start(running, first))
        wish = beside(self.intent, kept, fresh, self.resizing.minimum_gain_percent)
        if at_rest(kept, wish):
            return _keep(kept, _holds())
        percent = plan_percent(self.intent, kept, self.seats(kept), wish, self.seats(wish))
        return self._weigh(kept, wish, Gain(percent, differences(kept, wish)))

    def _weigh(self, kept: Plan, fresh: Plan, offered: Gain) -> Choice:
        """Both would work: take the fresh one only for a gain that lasts and free GPUs."""
        awaited = offered.starts and any(may_come(v.sizing.pool) for v in fresh.variants)
        least = min(self.intent.replicas, max(1, sum(self.seats(kept))))
        room = awaited or sum(self.seats(fresh)) >= least
        enough = offered.percent >= max(self.resizing.minimum_gain_percent, 1e-9)
        if not (room and enough) or self.resizing.mode == "Off":
            return _keep(kept, _holds())
        message = f"{offered.sentence} would bring {_brings(offered)}"
        if self.resizing.mode == "Recommend":
            return _keep(kept, Condition("Drifted", True, "ResizeRecommended", message))
        left = self.waiting.left("ResizePending", self.resizing.stabilization_seconds)
        if left > 0:
            pending = Condition("Drifted", True, "ResizePending", message)
            return _keep(kept, pending, look_again=left)
        return _adopt(fresh, f"{offered.sentence}: {_brings(offered)}")


def _adopt(fresh: Plan, reason: str) -> Choice:
    return Choice(
        plan=fresh, adopted=True, planned=_planned(fresh), drifted=_holds(), reason=reason
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
    unsure = any(v.sizing.verdict is Verdict.BORDERLINE for v in plan.variants)
    verdict = Verdict.BORDERLINE if unsure else plan.variants[0].sizing.verdict
    return Condition("Planned", True, str(verdict), sentence(plan))
