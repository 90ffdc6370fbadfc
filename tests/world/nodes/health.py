"""The probes of one run of a container: startup first, then readiness and liveness."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from world.nodes.probes import ProbeLoop, Target

Object = Mapping[str, Any]


@dataclass(kw_only=True)
class Health:
    """Turns verdicts of probes into what happens to the container."""

    container: Object
    target: Target
    ended: threading.Event  # of this run: no probe outlives it
    period_factor: float
    patience_factor: float
    on_started: Callable[[bool], None]  # with: is it ready at once?
    on_ready: Callable[[bool, str], None]
    on_unhealthy: Callable[[str, Object, str], None]  # which probe, the probe, why
    loops: list[ProbeLoop] = field(default_factory=list)

    @property
    def ready_once_started(self) -> bool:
        return "readinessProbe" not in self.container

    def start(self) -> None:
        """Begin to probe."""
        if "startupProbe" in self.container:
            self._loop("startupProbe", self._on_startup, initial=None)
        else:
            self._after_startup()

    def _on_startup(self, succeeded: bool, detail: str) -> None:
        if not succeeded:
            self.on_unhealthy("Startup", self.container["startupProbe"], detail)
            return
        self.loops[0].end()
        self._after_startup()

    def _after_startup(self) -> None:
        self.on_started(self.ready_once_started)
        if "readinessProbe" in self.container:
            self._loop("readinessProbe", self.on_ready, initial=False)
        if "livenessProbe" in self.container:
            self._loop("livenessProbe", self._on_liveness, initial=True)

    def _on_liveness(self, succeeded: bool, detail: str) -> None:
        if not succeeded:
            self.on_unhealthy("Liveness", self.container["livenessProbe"], detail)

    def _loop(
        self, name: str, on_change: Callable[[bool, str], None], *, initial: bool | None
    ) -> None:
        loop = ProbeLoop(
            self.container[name],
            self.target,
            on_change,
            self.ended,
            initial=initial,
            period_factor=self.period_factor,
            patience_factor=self.patience_factor,
        )
        self.loops.append(loop)
        loop.start()
