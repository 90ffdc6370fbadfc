"""One container through all its runs: started, probed, ended, restarted after a delay, stopped."""

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from world.nodes.api import WEATHER, ApiError
from world.nodes.backoff import BackOff
from world.nodes.commands import run_inside
from world.nodes.environment import MissingConfigError
from world.nodes.health import Health
from world.nodes.launch import Launch, Launcher
from world.nodes.logs import texts
from world.nodes.probes import Target, attempt, named_ports
from world.nodes.processes import KILLED, Process
from world.nodes.status import ContainerState, Terminated
from world.nodes.termination import message

Object = Mapping[str, Any]
LEAST_GRACE_SECONDS = 2.0  # after preStop. Source: Kubernetes 1.36, kuberuntime_container.go
RETRY_SECONDS = 1.0
START_ERROR = 128  # Source: containerd's exit code for a program that cannot be started


class Container:
    """`run` takes a thread of its own; `stop` and `kill` come from others."""

    def __init__(
        self,
        launcher: Launcher,
        spec: Object,
        state: ContainerState,
        *,
        restart_policy: str,
        devices: Mapping[str, tuple[str, ...]],
        on_change: Callable[[], None],
    ) -> None:
        self.spec, self.state = spec, state
        self.name: str = spec["name"]
        self.launch: Launch | None = None
        self._launcher, self._policy, self._devices = launcher, restart_policy, devices
        self._runtime, self._on_change = launcher.runtime, on_change
        self._crashes = BackOff(self._runtime.timing.backoff_seconds)
        self._pulls = BackOff(self._runtime.timing.backoff_seconds)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._process: Process | None = None
        self._killed_by_us = False

    @property
    def pid(self) -> int:
        """Its process, or the last one it had; 0 before there was one."""
        return self._process.pid if self._process is not None else 0

    def run(self) -> None:
        """Until it ended for good, or was stopped."""
        while not self._stopping.is_set():
            launch = self._prepare()
            if launch is None:
                continue
            ended = self._run_once(launch)
            if self._stopping.is_set() or not self._restarts_after(ended):
                return
            self._back_off(ended)

    def stop(self, grace_seconds: float) -> None:
        """End it for good: preStop, SIGTERM, and SIGKILL at the end of the grace period."""
        with self._lock:
            self._stopping.set()
            process = self._process
        if process is not None:
            self._terminate(process, grace_seconds)

    def kill(self) -> None:
        """End it for good, at once."""
        with self._lock:
            self._stopping.set()
            process = self._process
        if process is not None:
            process.kill()

    def log(self, *, previous: bool) -> tuple[Path, threading.Event]:
        """The log of the newest run or the one before, and the event that it has ended."""
        state, process = self.state, self._process
        newest = state.container_id if state.running else ""
        ended = state.last.container_id if state.last is not None else ""
        if state.terminated is not None:
            newest = state.terminated.container_id
        shown = ended if previous else newest or ended
        if not shown or process is None:
            what = "previous terminated container" if previous else "container"
            raise LookupError(f'{what} "{self.name}" not found or still waiting to start')
        path = self._launcher.log_path(self.name, int(shown.rpartition("/")[2]))
        over = threading.Event()
        over.set()
        return path, process.ended if shown == f"process://{process.name}" else over

    def _prepare(self) -> Launch | None:
        """The image and the files of the next run; None after waiting for what is missing."""
        name = self.spec["image"]
        image = self._runtime.programs.find(name)
        if image is None:
            why = f'failed to pull image "{name}": no program of the map plays it'
            self._event("Failed", why, "Warning")
            self._wait("ErrImagePull", why, self._runtime.timing.backoff_seconds / 2)
            self._wait(
                "ImagePullBackOff",
                f'Back-off pulling image "{name}": {why}',
                self._pulls.next(ran_seconds=0),
            )
            return None
        try:
            return self._launcher.prepare(self.spec, image, self.state.restarts, self._devices)
        except (MissingConfigError, ApiError, *WEATHER) as error:
            self._wait("CreateContainerConfigError", str(error), RETRY_SECONDS)
            return None

    def _run_once(self, launch: Launch) -> Terminated:
        name = f"{self._launcher.pod['metadata']['uid']}/{self.name}/{self.state.restarts}"
        began_seconds = time.time()
        with self._lock:
            if self._stopping.is_set():
                return Terminated(exit_code=KILLED, reason="Error")
            process = self._runtime.processes.launch(
                name, launch.argv, launch.variables, launch.root, launch.log
            )
            self.launch, self._process, self._killed_by_us = launch, process, False
        if not process.error:
            self._event("Started", f"Container {self.name} started")
            self._set(
                running_since_seconds=began_seconds,
                last=self.state.terminated or self.state.last,
                terminated=None,
                container_id=f"process://{name}",
            )
            self._watch_health(process)
            process.wait()
        ended = self._read_end(process, launch, began_seconds)
        self._set(running_since_seconds=None, terminated=ended, started=False, ready=False)
        return ended

    def _read_end(self, process: Process, launch: Launch, began_seconds: float) -> Terminated:
        code = KILLED if process.exit_code is None else process.exit_code
        reason = "Completed" if code == 0 else "Error"
        if code == KILLED and not self._killed_by_us:
            reason = "OOMKilled"  # nobody else kills here: the program plays the kernel's verdict
        if process.error:
            code, reason = START_ERROR, "StartError"
        words = process.error or message(
            launch.message_file,
            log_lines=texts(launch.log) if code else [],
            policy=self.spec.get("terminationMessagePolicy", "File"),
            exit_code=code,
            containers=len(self._launcher.pod["spec"]["containers"]),
        )
        return Terminated(
            exit_code=code,
            reason=reason,
            message=words,
            started_seconds=began_seconds,
            finished_seconds=time.time(),
            container_id=f"process://{process.name}",
        )

    def _restarts_after(self, ended: Terminated) -> bool:
        return self._policy == "Always" or (self._policy == "OnFailure" and ended.exit_code != 0)

    def _back_off(self, ended: Terminated) -> None:
        seconds = self._crashes.next(ran_seconds=ended.finished_seconds - ended.started_seconds)
        if seconds:
            metadata = self._launcher.pod["metadata"]
            pod = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
            text = f"back-off {seconds:g}s restarting failed container={self.name} pod={pod}"
            self._event("BackOff", text, "Warning")
            self._wait("CrashLoopBackOff", text, seconds)
        if not self._stopping.is_set():
            self._set(restarts=self.state.restarts + 1)

    def _wait(self, reason: str, text: str, seconds: float) -> None:
        last = self.state.terminated or self.state.last
        self._set(waiting_reason=reason, waiting_message=text, terminated=None, last=last)
        self._stopping.wait(seconds)

    def _set(self, **changes: Any) -> None:
        with self._lock:
            self.state = dataclasses.replace(self.state, **changes)
        self._on_change()

    def _watch_health(self, process: Process) -> None:
        def on_started(is_ready: bool) -> None:
            self._set(started=True, ready=is_ready)

        def on_ready(is_ready: bool, detail: str) -> None:
            if not is_ready:
                self._event("Unhealthy", f"Readiness probe failed: {detail}", "Warning")
            if not process.ended.is_set():
                self._set(ready=is_ready)

        def on_unhealthy(which: str, probe: Object, detail: str) -> None:
            if self._stopping.is_set():
                return  # a pod that ends is not asked whether it lives
            self._event("Unhealthy", f"{which} probe failed: {detail}", "Warning")
            self._event("Killing", f"Container {self.name} failed its {which.lower()} probe")
            pod_grace_seconds = self._launcher.pod["spec"].get("terminationGracePeriodSeconds", 30)
            grace_seconds = probe.get("terminationGracePeriodSeconds", pod_grace_seconds)
            self._terminate(process, grace_seconds)

        Health(
            container=self.spec,
            target=self._target(),
            ended=process.ended,
            period_factor=self._runtime.timing.probe_factor,
            patience_factor=self._runtime.timing.patience_factor,
            on_started=on_started,
            on_ready=on_ready,
            on_unhealthy=on_unhealthy,
        ).start()

    def _terminate(self, process: Process, grace_seconds: float) -> None:
        factor = self._runtime.timing.grace_factor
        deadline = time.monotonic() + grace_seconds * factor
        hook = (self.spec.get("lifecycle") or {}).get("preStop") or {}
        if process.ended.is_set():
            return
        if "sleep" in hook:
            process.wait(min(hook["sleep"]["seconds"], grace_seconds) * factor)
        elif hook:
            attempt(hook, self._target(), grace_seconds * factor)
        process.terminate()
        if process.wait(max(deadline - time.monotonic(), LEAST_GRACE_SECONDS * factor)) is None:
            self._killed_by_us = True
            process.kill()
            process.wait()

    def _target(self) -> Target:
        return Target(
            address=self._launcher.place.address,
            ports=named_ports(self.spec),
            run_command=self._run_inside,
        )

    def _run_inside(self, command: Sequence[str], timeout_seconds: float) -> tuple[int | None, str]:
        assert self.launch is not None, "only a running container is probed"
        name = f"{self._launcher.pod['metadata']['uid']}/{self.name}"
        return run_inside(self._runtime.processes, self.launch, name, command, timeout_seconds)

    def _event(self, reason: str, text: str, kind: str = "Normal") -> None:
        self._runtime.events.post(self._launcher.pod, reason, text, container=self.name, kind=kind)
