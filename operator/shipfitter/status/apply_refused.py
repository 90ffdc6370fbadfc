"""The status where the API server refused what the plan needs: its words, until it takes them."""

from collections.abc import Mapping
from typing import Any

from shipfitter.status.conditions import Condition, merged

REASON = "ApplyRefused"
NAME_TAKEN = "NameTaken"


def with_refusal(
    status: Mapping[str, Any],
    prior: Mapping[str, Any],
    *,
    words: str,
    reason: str = REASON,
    now_seconds: float,
) -> dict[str, Any]:
    """The status to store instead: what serves still serves, and the rest does not come."""
    wanted = [
        Condition(each["type"], each["status"] == "True", each["reason"], each["message"])
        for each in status["conditions"]
    ]
    serves = any(each.type == "Ready" and each.status for each in wanted)
    refused = {
        "Ready": False,
        "Available": False,
        "Reconciling": serves,  # earlier pods serve, and the plan is not on its way
        "Stalled": not serves,
    }
    told = [
        Condition(each.type, refused[each.type], reason, words)
        if each.type in refused and not (serves and each.status)
        else each
        for each in wanted
    ]
    return {
        **status,
        "conditions": merged(
            tuple(prior.get("conditions") or ()),
            told,
            generation=int(status.get("observedGeneration", 1)),
            now_seconds=now_seconds,
        ),
    }
