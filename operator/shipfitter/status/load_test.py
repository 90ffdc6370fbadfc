"""A load test of a plan, as its Job shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTest:
    """One Job that loads the engines of one plan."""

    name: str
    uid: str = ""
    plan_hash: str = ""
    running: bool = True
    going: bool = False  # it is being deleted
    figures: Mapping[str, Any] = field(default_factory=dict)  # in the names of status.verify
    error: str = ""  # why there are no figures
    trouble: str = ""  # what keeps it from beginning
    load: Mapping[str, int] = field(default_factory=dict)  # in the names of status.verify
    restarts: Mapping[str, int] = field(default_factory=dict)  # by engine pod, when it began

    @property
    def succeeded(self) -> bool:
        """Whether it ended with figures."""
        return not self.running and not self.error
