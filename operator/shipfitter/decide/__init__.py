"""World in, outcome out: the straight line of one reconcile, shared by the operator and `plan`."""

from shipfitter.decide.line import decide
from shipfitter.decide.world import (
    Apply,
    Delete,
    LivePod,
    LiveWorkload,
    Notice,
    Outcome,
    Settings,
    World,
)

__all__ = [
    "Apply",
    "Delete",
    "LivePod",
    "LiveWorkload",
    "Notice",
    "Outcome",
    "Settings",
    "World",
    "decide",
]
