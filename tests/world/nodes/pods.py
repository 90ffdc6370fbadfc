"""One pod bound to one of our nodes: admitted, brought up, reported, ended, given back."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from world.nodes.admission import Admitted, admit
from world.nodes.api import WEATHER, ApiError
from world.nodes.containers import Container
from world.nodes.devices import UnexpectedAdmissionError
from world.nodes.environment import MissingConfigError
from world.nodes.expansion import PathRewriter
from world.nodes.node import Node
from world.nodes.reports import GONE, Report, pod_status, refused
from world.nodes.runtime import Runtime
from world.nodes.volumes import remove

LOG = logging.getLogger("world.nodes")
Object = Mapping[str, Any]
RETRY_SECONDS = 1.0
REPORT_SECONDS = 10.0
LEAST_GRACE_SECONDS = 1  # Source: Kubernetes 1.36, pkg/kubelet/pod_workers.go
OVER = ("Succeeded", "Failed")


class Pod:
    """One thread brings it up, one reports and ends it, and each container that runs has one."""

    def __init__(self, runtime: Runtime, node: Node, body: Object) -> None:
        self.runtime, self.node, self.body = runtime, node, body
        metadata = body["metadata"]
        self.uid: str = metadata["uid"]
        self.path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self.folder: Path = runtime.folder / "pods" / self.uid
        self.pod_ip = runtime.addresses.take()
        self.admitted: Admitted | None = None
        self._refusal = ""
        self._missing = ""  # what a volume waits for
        self._changed = threading.Condition()
        self._dirty = True
        self._gone = False  # deleted by somebody who did not wait for us
        self._abandoned = False  # the machine is off
        self._told = Report(runtime.api, self.path, body)
        self._began_seconds = time.time()
        self._runs: list[threading.Thread] = []
        self._keeper = threading.Thread(target=self._keep, name=f"keep {self.path}", daemon=True)

    @property
    def containers(self) -> tuple[Container, ...]:
        """All of them, the init containers first."""
        return (*self.admitted.init, *self.admitted.containers) if self.admitted else ()

    def start(self) -> None:
        """Admit the pod and bring it up."""
        self.folder.mkdir(parents=True)
        try:
            self.admitted = admit(
                self.runtime,
                self.node,
                self.body,
                pod_ip=self.pod_ip,
                folder=self.folder,
                on_change=self.wake,
            )
        except UnexpectedAdmissionError as error:
            self._refusal = str(error)
        else:
            self._begin(self._bring_up)
        self._keeper.start()

    def update(self, body: Object) -> None:
        """The object changed."""
        self.body = body
        self.wake()

    def vanish(self) -> None:
        """The object is gone."""
        self._gone = True
        self.wake()

    def abandon(self) -> None:
        """Everything ends at once, and nobody is told."""
        self._abandoned = True
        for container in self.containers:
            container.kill()
        self.wake()

    def resync(self) -> None:
        """The API server may have been told something else meanwhile."""
        self._told.forget()
        self.wake()

    def wake(self) -> None:
        """Look again."""
        with self._changed:
            self._dirty = True
            self._changed.notify_all()

    def log(self, name: str, *, previous: bool) -> tuple[Path, threading.Event]:
        """A container's log and the event that it has ended; LookupError when there is none."""
        for container in self.containers:
            if container.name == name:
                return container.log(previous=previous)
        raise LookupError(f'container "{name}" is not valid for pod {self.path}')

    def join(self) -> None:
        """Wait until it is given back."""
        self._keeper.join()

    @property
    def _ending(self) -> bool:
        return self._gone or self._abandoned or "deletionTimestamp" in self.body["metadata"]

    def _begin(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name=f"run {self.path}", daemon=True)
        self._runs.append(thread)
        thread.start()

    def _bring_up(self) -> None:
        assert self.admitted is not None
        while not self._ending and not self._write_files(self.containers, PathRewriter({})):
            with self._changed:
                self._changed.wait(RETRY_SECONDS)
        for container in self.admitted.init:
            if self._ending:
                return
            container.run()
            if not container.state.succeeded:
                return
        for container in self.admitted.containers:
            if not self._ending and container.state.terminated is None:
                self._begin(container.run)

    def _write_files(self, containers: Sequence[Container], rewrite: PathRewriter) -> bool:
        """Bring written volumes up to date; False when something is missing."""
        assert self.admitted is not None
        try:
            for container in containers:
                self.admitted.volumes.write(container.spec, rewrite)
        except (MissingConfigError, ApiError, *WEATHER) as error:
            if str(error) != self._missing:
                self.runtime.events.post(self.body, "FailedMount", str(error), kind="Warning")
            self._missing = str(error)
            return False
        self._missing = ""
        return True

    def _keep(self) -> None:
        try:
            self._report_until_ending()
            self._end()
        finally:
            self._give_back()
            self.runtime.tokens.forget(self.uid)
            self.runtime.addresses.give_back(self.pod_ip)
            remove(self.folder)

    def _give_back(self) -> None:
        self.node.devices.release(self.uid)

    def _wait(self, seconds: float) -> None:
        """Until something changed, at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: self._dirty, seconds)
            self._dirty = False

    def _report_until_ending(self) -> None:
        refresh_seconds = self.runtime.timing.refresh_seconds
        refreshed = time.monotonic()
        while not self._ending:
            reported = self._report()
            if self._told.phase in OVER:
                self._give_back()
            self._wait(refresh_seconds if reported else RETRY_SECONDS)
            if time.monotonic() - refreshed >= refresh_seconds:
                self._refresh()
                refreshed = time.monotonic()

    def _refresh(self) -> None:
        """ConfigMaps, Secrets and tokens as they are now, in the containers that run."""
        if self.admitted is None or self.node.silent.is_set():
            return
        for container in self.containers:
            launch = container.launch
            if launch is not None and container.state.running:
                rewriter = self.admitted.launcher.rewriter(container.spec, launch.message_file)
                self._write_files((container,), rewriter)

    def _end(self) -> None:
        grace_seconds = (
            self.body["metadata"].get("deletionGracePeriodSeconds") or LEAST_GRACE_SECONDS
        )
        left = threading.Semaphore(0)

        def stop(container: Container) -> None:
            container.stop(LEAST_GRACE_SECONDS if self._gone else grace_seconds)
            left.release()
            self.wake()

        for container in self.containers:
            self._begin(partial(stop, container))
        stopped = 0
        while stopped < len(self.containers):
            if self._gone or self._abandoned:  # nobody waits for a graceful end any more
                for container in self.containers:
                    container.kill()
            self._report()
            self._wait(REPORT_SECONDS)
            while left.acquire(blocking=False):
                stopped += 1
        for run in self._runs:
            run.join()
        self._give_back()
        self._confirm()

    def _confirm(self) -> None:
        """Tell the API server that the pod has ended; only this removes the object."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        while not self._gone and not self._abandoned:
            if not self.node.silent.is_set() and self._report():
                try:
                    self.runtime.api.delete(self.path, options)
                    return
                except ApiError as error:
                    if error.status in GONE:
                        return
                    LOG.warning("%s: not deleted: %s", self.path, error)
                except WEATHER as error:
                    LOG.warning("%s: not deleted: %s", self.path, error)
            self._wait(RETRY_SECONDS)

    def _report(self) -> bool:
        if self._gone or self._abandoned or self.node.silent.is_set():
            return True
        return self._told.write(self._status())

    def _status(self) -> dict[str, Any]:
        if self.admitted is None:
            return refused(self._refusal, self._told.conditions, self._began_seconds)
        return pod_status(
            [container.state for container in self.admitted.init],
            [container.state for container in self.admitted.containers],
            body=self.body,
            pod_ip=self.pod_ip,
            ending=self._ending,
            previous=self._told.conditions,
            began_seconds=self._began_seconds,
        )
