"""When an engine refuses: one bounded step, at most five times, then back to what served."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.core.bounds import Bound, Limit, merged
from shipfitter.core.engine_log import EngineRefusal, read_last_words
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.plan import NoFit, Plan, solve
from shipfitter.core.step_down import step_down
from shipfitter.decide.choice import Choice
from shipfitter.decide.resize import changes
from shipfitter.status.conditions import Condition, seconds_of, timestamp
from shipfitter.status.engine_words import spoken
from shipfitter.status.pods import LivePod

MOST_ATTEMPTS = 5
# How long to wait before each attempt: the first at once, then longer, so that nothing flaps.
DELAYS_SECONDS = (0.0, 10.0, 30.0, 60.0, 120.0)


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
        """How long until the next attempt."""
        return (
            max(0.0, seconds_of(self.next_attempt_at) - now_seconds)
            if self.next_attempt_at
            else 0.0
        )

    def record(self) -> dict[str, Any] | None:
        """As status.recovery keeps it; None where nothing happened."""
        if not self.attempts:
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


def heard(pods: tuple[LivePod, ...], variant: str, decided_at: str) -> EngineRefusal | None:
    """What an engine of this very plan said when it ended; a memory refusal before any other."""
    since = seconds_of(decided_at) if decided_at else 0.0
    refusals = [
        refusal
        for pod in pods
        if pod.variant == variant and pod.broken and pod.created_seconds >= since
        if (refusal := read_last_words(pod.termination_message, pod.exit_code, pod.ended_reason))
    ]
    memory = [refusal for refusal in refusals if refusal.is_memory]
    return next(iter(memory or refusals), None)


def same_second(pods: tuple[LivePod, ...], now_seconds: float) -> bool:
    """Whether a broken pod was made in this very second.

    A plan is told from the one before, and its pods from earlier ones, by times in whole seconds.
    """
    return any(pod.broken and int(pod.created_seconds) == int(now_seconds) for pod in pods)


def answered(
    choice: Choice,
    refusal: EngineRefusal,
    recovery: Recovery,
    *,
    intent: Intent,
    pools: tuple[Pool, ...],
    last_good: Plan | None,
    now_seconds: float,
) -> tuple[Choice, Recovery]:
    """The choice after a refusal of the running plan: a smaller one, the last good one, or none."""
    plan = choice.plan
    if plan is None or not refusal.is_memory:
        return choice, recovery
    waiting = recovery.wait_seconds(now_seconds)
    if waiting > 0 and not recovery.exhausted:
        return replace(choice, look_again_seconds=waiting), recovery
    if recovery.exhausted:
        return _given_up(choice, recovery, last_good), recovery
    sizing = plan.variants[0].sizing
    missing = max(
        (b.value for b in recovery.bounds
         if b.limit is Limit.MISSING_BYTES and b.pool == sizing.pool.name),
        default=0.0,
    )  # fmt: skip
    bounds = merged((*recovery.bounds, *step_down(refusal, sizing, missing)))
    fresh = solve(replace(intent, bounds=bounds), pools)
    attempts = recovery.attempts + 1
    delay = DELAYS_SECONDS[min(attempts, MOST_ATTEMPTS - 1)]
    stepped = Recovery(
        inputs_hash=recovery.inputs_hash,
        attempts=attempts,
        last_error=spoken(refusal),
        next_attempt_at=timestamp(now_seconds + delay),
        bounds=bounds,
    )
    if isinstance(fresh, NoFit):
        stepped = replace(
            stepped, attempts=MOST_ATTEMPTS, last_step=f"nothing smaller fits: {fresh}"[:1024]
        )
        return _given_up(choice, stepped, last_good), stepped
    what = changes(sizing, fresh.variants[0].sizing) or "the same figures, started again"
    stepped = replace(stepped, last_step=f"attempt {attempts} of {MOST_ATTEMPTS}: {what}")
    planned = Condition(
        "Planned", True, "SteppedDown", f"{what}, since the engine said: {stepped.last_error}"
    )
    reason = f"{what}: the engine said: {stepped.last_error}"[:1024]
    return Choice(
        plan=fresh, adopted=True, planned=planned, drifted=choice.drifted, reason=reason
    ), stepped


def told(choice: Choice, recovery: Recovery) -> Choice:
    """The choice with the story of earlier refusals, as long as their bounds are in force."""
    if not recovery.attempts or not choice.planned.status:
        return choice
    reason = "RolledBack" if recovery.exhausted else "SteppedDown"
    message = f"{choice.planned.message}; {recovery.last_step}: {recovery.last_error}"
    return replace(choice, planned=Condition("Planned", True, reason, message))


def _given_up(choice: Choice, recovery: Recovery, last_good: Plan | None) -> Choice:
    """Back to what served, if anything did and it is not what just failed."""
    said = f"{recovery.attempts} attempts failed; the engine said: {recovery.last_error}"
    plan = choice.plan
    assert plan is not None
    different = last_good is not None and bool(
        changes(plan.variants[0].sizing, last_good.variants[0].sizing)
    )
    if last_good is None or not different:
        backed_off = Condition("Planned", False, "BackedOff", said)
        return replace(choice, planned=backed_off)
    return Choice(
        plan=last_good,
        adopted=True,
        planned=Condition("Planned", True, "RolledBack", said),
        drifted=choice.drifted,
        reason=f"back to the plan that served: {said}"[:1024],
    )
