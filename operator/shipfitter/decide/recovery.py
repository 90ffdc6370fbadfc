"""When an engine refuses: one bounded step, at most five times, then back to what served."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.core.bounds import Bound, Limit, merged
from shipfitter.core.engine_log import EngineRefusal, read_last_words
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.plan import NoFit, Plan, VariantPlan
from shipfitter.core.step_down import steps_down
from shipfitter.decide.choice import Choice
from shipfitter.decide.keeping import back_to, same_figures, stepped_down
from shipfitter.decide.words import differences
from shipfitter.status.conditions import Condition, seconds_of, timestamp
from shipfitter.status.engine_words import spoken
from shipfitter.status.pods import LivePod

MOST_ATTEMPTS = 5
# How long to wait before each attempt: the first at once, then longer, so that nothing flaps.
DELAYS_SECONDS = (0.0, 10.0, 30.0, 60.0, 120.0)
BACK = "back to the plan that served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The story of refusals for one set of inputs."""

    inputs_hash: str
    attempts: int = 0
    last_error: str = ""
    last_step: str = ""
    next_attempt_at: str = ""
    bounds: tuple[Bound, ...] = ()

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, inputs_hash: str) -> "Recovery":
        """As stored; a changed spec starts afresh."""
        if not stored or stored.get("inputsHash") != inputs_hash:
            return cls(inputs_hash=inputs_hash)
        return cls(
            inputs_hash=inputs_hash,
            attempts=int(stored.get("attempts", 0)),
            last_error=str(stored.get("lastError", "")),
            last_step=str(stored.get("lastStep", "")),
            next_attempt_at=str(stored.get("nextAttemptAt", "")),
            bounds=merged(_bounds(stored)),
        )

    @property
    def exhausted(self) -> bool:
        """Whether no further step is tried."""
        return self.attempts >= MOST_ATTEMPTS

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until the next attempt; never longer than any delay, whatever clocks did."""
        if not self.next_attempt_at:
            return 0.0
        left = seconds_of(self.next_attempt_at) - now_seconds
        return max(0.0, min(DELAYS_SECONDS[-1], left))

    def record(self) -> dict[str, Any] | None:
        """As status.recovery keeps it; None where nothing happened."""
        if not self.last_error:
            return None
        record: dict[str, Any] = {
            "attempts": self.attempts,
            "lastError": self.last_error,
            "lastStep": self.last_step,
            "inputsHash": self.inputs_hash,
            "bounds": [
                {"pool": b.pool, "setting": str(b.limit), "value": b.value} for b in self.bounds
            ],
        }
        return record | ({"nextAttemptAt": self.next_attempt_at} if self.next_attempt_at else {})


def _bounds(stored: Mapping[str, Any]) -> list[Bound]:
    """Bounds as stored; one that a later release wrote is left out."""
    known = {str(limit) for limit in Limit}
    return [
        Bound(str(each["pool"]), Limit(each["setting"]), float(each["value"]))
        for each in stored.get("bounds") or ()
        if each.get("setting") in known
    ]


def heard(pods: tuple[LivePod, ...], variant: str, template: str) -> EngineRefusal | None:
    """What an engine of this very template said when it ended; a memory refusal before any other.

    Not told apart by time: clocks differ, and pods stay where a new plan changes nothing in them.
    """
    refusals = [
        refusal
        for pod in pods
        if pod.variant == variant and pod.broken and pod.template_hash == template
        if (refusal := read_last_words(pod.termination_message, pod.exit_code, pod.ended_reason))
        if not refusal.may_be_memory or pod.restarts  # what nobody explains may pass by itself
    ]
    memory = [each for each in refusals if each.is_memory or each.may_be_memory]
    return next(iter(memory or refusals), None)


def answered(
    choice: Choice,
    refusal: EngineRefusal,
    recovery: Recovery,
    *,
    concerned: VariantPlan,
    intent: Intent,
    pools: tuple[Pool, ...],
    last_good: Plan | None,
    now_seconds: float,
) -> tuple[Choice, Recovery]:
    """The choice after a refusal of one variant: a smaller one, the last good plan, or none."""
    plan = choice.plan
    if plan is None or not choice.planned.status:  # its GPUs are gone: nobody knows what would fit
        return choice, recovery
    if not (refusal.is_memory or refusal.may_be_memory):
        return told(choice, recovery), recovery
    if recovery.exhausted:
        return _given_up(choice, recovery, last_good, intent, pools)
    waiting = recovery.wait_seconds(now_seconds)
    if waiting > 0:
        return replace(told(choice, recovery), look_again_seconds=waiting), recovery
    bounds, fresh, what = _smaller(refusal, plan, concerned, recovery, intent=intent, pools=pools)
    stepped = replace(recovery, last_error=spoken(refusal), bounds=bounds)
    if not isinstance(fresh, Plan):
        nothing = f"nothing smaller fits: {fresh}" if fresh else "what could be smaller is pinned"
        stepped = replace(stepped, last_step=nothing[:1024])
        return _given_up(choice, stepped, last_good, intent, pools)
    attempts = recovery.attempts + 1
    delay = DELAYS_SECONDS[min(attempts, MOST_ATTEMPTS - 1)]
    stepped = replace(
        stepped,
        attempts=attempts,
        last_step=f"attempt {attempts} of {MOST_ATTEMPTS}: {what}",
        next_attempt_at=timestamp(now_seconds + delay),
    )
    planned = Condition(
        "Planned", True, "SteppedDown", f"{what}, since the engine said: {stepped.last_error}"
    )
    reason = f"{what}: the engine said: {stepped.last_error}"[:1024]
    return Choice(
        plan=fresh, adopted=True, planned=planned, drifted=choice.drifted, reason=reason
    ), stepped


def _smaller(
    refusal: EngineRefusal,
    plan: Plan,
    concerned: VariantPlan,
    recovery: Recovery,
    *,
    intent: Intent,
    pools: tuple[Pool, ...],
) -> tuple[tuple[Bound, ...], Plan | NoFit | None, str]:
    """The first step that changes something and leaves something: bounds, plan, what changed."""
    sizing = concerned.sizing
    missing = max(
        (b.value for b in recovery.bounds
         if b.limit is Limit.MISSING_BYTES and b.pool == sizing.pool.name),
        default=0.0,
    )  # fmt: skip
    steps = steps_down(refusal, sizing, missing_bytes=missing, attempts=recovery.attempts)
    fresh: Plan | NoFit | None = None
    for step in steps:
        bounds = merged((*recovery.bounds, *step))
        fresh = stepped_down(replace(intent, bounds=bounds), pools, plan, concerned)
        if not isinstance(fresh, NoFit) and (what := differences(plan, fresh)):
            return bounds, fresh, what
    # Bounds of steps that led nowhere would only mislead later plans.
    return recovery.bounds, fresh if isinstance(fresh, NoFit) else None, ""


def told(choice: Choice, recovery: Recovery) -> Choice:
    """The choice with the story of earlier refusals, as long as their bounds are in force."""
    is_back = recovery.last_step.startswith(BACK)
    if not (recovery.attempts or is_back) or not choice.planned.status:
        return choice
    reason = "RolledBack" if is_back else "SteppedDown"
    message = f"{choice.planned.message}; {recovery.last_step}: {recovery.last_error}"
    return replace(choice, planned=Condition("Planned", True, reason, message))


def _given_up(
    choice: Choice,
    recovery: Recovery,
    last_good: Plan | None,
    intent: Intent,
    pools: tuple[Pool, ...],
) -> tuple[Choice, Recovery]:
    """Back to what served, if anything did and it is not what just failed."""
    said = f"the engine said: {recovery.last_error}"
    said = (
        f"{recovery.attempts} attempts failed; {said}"
        if recovery.exhausted
        else f"{said}; {recovery.last_step}"
    )
    plan = choice.plan
    assert plan is not None
    if last_good is None or same_figures(plan, last_good):
        backed_off = Condition("Planned", False, "BackedOff", said)
        return replace(choice, planned=backed_off), recovery
    back = Choice(
        plan=back_to(intent, pools, plan, last_good),
        adopted=True,
        planned=Condition("Planned", True, "RolledBack", said),
        drifted=choice.drifted,
        reason=f"{BACK}: {said}"[:1024],
    )
    return back, replace(recovery, last_step=f"{BACK} after: {recovery.last_step}"[:1024])
