"""Conditions by the Kubernetes conventions: an unchanged one keeps its lastTransitionTime."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shipfitter.status.reasons import BY_NAME

LONGEST_MESSAGE = 4096
CLOCK = "Drifted"  # its lastTransitionTime is what resize waits are measured from


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is or is not so, and why."""

    type: str
    status: bool
    reason: str
    message: str = ""

    def __post_init__(self) -> None:
        assert self.reason in BY_NAME, f"give {self.reason} a meaning in status/reasons.py"


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as the API server writes it."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float:
    """The instant an RFC 3339 text names."""
    return datetime.fromisoformat(text).timestamp()


def find(conditions: Iterable[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    """The condition of this type, as stored."""
    return next((c for c in conditions if c.get("type") == kind), None)


def merged(
    prior: Sequence[Mapping[str, Any]],
    wanted: Sequence[Condition],
    *,
    generation: int,
    now_seconds: float,
) -> list[dict[str, Any]]:
    """The conditions to store: those wanted, each with the time its status last changed."""
    result = []
    for condition in wanted:
        before = find(prior, condition.type)
        status = "True" if condition.status else "False"
        same = before is not None and before.get("status") == status
        if condition.type == CLOCK:  # a different drift starts its own waiting time
            same = same and before is not None and before.get("reason") == condition.reason
        since = before["lastTransitionTime"] if before and same else timestamp(now_seconds)
        result.append(
            {
                "type": condition.type,
                "status": status,
                "reason": condition.reason,
                "message": shortened(condition.message),
                "observedGeneration": generation,
                "lastTransitionTime": since,
            }
        )
    return result


def shortened(message: str) -> str:
    """A message the schema takes."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
