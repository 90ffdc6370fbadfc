"""The agent's loop: look, compare with what was written, write what is new, wait."""

import logging
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shipfitter.agent.api import Api, ApiError, BackOff
from shipfitter.agent.credentials import CredentialsError, node_claim
from shipfitter.agent.devices import Fingerprint, NvmlUnavailableError
from shipfitter.agent.foreign import ForeignMemory
from shipfitter.agent.host import Host
from shipfitter.agent.pod_resources import NOT_MOUNTED, PodResources
from shipfitter.agent.readiness import Readiness
from shipfitter.agent.reading import Nvml
from shipfitter.agent.report import Status, meaning, unready_status, with_times
from shipfitter.agent.seeing import Holders, seen

log = logging.getLogger("shipfitter.agent")


class GaveUpError(Exception):
    """Only a new container can help: this one lost its devices, or has a library of before."""


# While the library in a container is of another driver than the kernel's, or is not there.
_LIBRARY_TROUBLES = ("LibRmVersionMismatch", "LibraryNotFound", "LibraryMismatch")
# The kernel's module was away: what was wrong with a GPU before may be mended.
_DRIVER_AWAY = ("DriverNotLoaded", "LibRmVersionMismatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often the agent does what; all of it shrinks with the poll interval in tests."""

    poll_seconds: float = 10.0
    refresh_seconds: float = 600.0
    hopeless_looks: int = 6  # with the back-off below: some three minutes

    @property
    def back_off_seconds(self) -> tuple[float, float]:
        """First and last pause after a failure: 5 to 60 s."""
        return self.poll_seconds / 2, self.poll_seconds * 6

    @property
    def start_jitter_seconds(self) -> float:
        """A rollout starts agents by the thousand: spread over 30 s."""
        return self.poll_seconds * 3


class Watch:
    """One node's agent."""

    def __init__(
        self,
        *,
        node_name: str,
        agent_version: str,
        nvml: Nvml,
        host: Host,
        api: Api,
        readiness: Readiness,
        pace: Pace,
        stop: threading.Event,
        pod_resources: PodResources = NOT_MOUNTED,
    ) -> None:
        self._node_name, self._agent_version = node_name, agent_version
        self._nvml, self._host, self._api = nvml, host, api
        self._readiness, self._pace, self._stop = readiness, pace, stop
        self._pod_resources = pod_resources
        self._holders: Holders | None = None  # as of the last reading
        self._foreign = ForeignMemory()
        self._written: Mapping[str, Any] = {}  # the status the API server has from us
        self._wanted: Status | None = None  # the status it should have
        self._fingerprint: Fingerprint | None = None
        self._refresh_at = 0.0
        self._is_doubtful = False  # the driver did not answer all: ask again next time
        self._hopeless_looks, self._nvml_reason = 0, ""
        self._kernel_driver = host.kernel_driver()  # what this container was made for
        self._nvml_back_off = BackOff(*pace.back_off_seconds)
        self._api_back_off = BackOff(*pace.back_off_seconds)

    def run(self) -> None:
        """Until stopped. Raises GaveUpError when only a new container can help."""
        self._stop.wait(random.uniform(0, self._pace.start_jitter_seconds))
        self._remember()
        while not self._stop.is_set():
            self._readiness.round()
            pause_seconds = self._look()
            pause_seconds = max(pause_seconds, self._publish())
            if self._hopeless_looks >= self._pace.hopeless_looks:
                raise GaveUpError(self._last_words())
            self._stop.wait(pause_seconds)

    def _remember(self) -> None:
        """What an earlier agent of this node wrote: the last measurement outlives a restart."""
        while not self._stop.is_set():
            self._readiness.round()
            try:
                found = self._adopted(self._api.own_object(self._node_name))
            except ApiError as error:
                if error.status == 403:
                    log.warning("%s; going on without what was written before", error)
                    return
                self._stop.wait(self._api_trouble(error))
                continue
            self._api_back_off.reset()
            self._written = found.get("status") or {}
            self._foreign = ForeignMemory(
                {
                    gpu["uuid"]: gpu["memory"]["foreignUsedBytes"]
                    for gpu in self._written.get("gpus") or ()
                    if "foreignUsedBytes" in (gpu.get("memory") or {})
                }
            )
            return

    def _adopted(self, found: dict[str, Any] | None) -> dict[str, Any]:
        """The object, if it is of this machine; one of an earlier machine is taken over.

        Else it would be collected together with that machine.
        """
        uid = self._owner_uid()
        if found is None or not uid:
            return found or {}
        if uid in [owner.get("uid") for owner in found["metadata"].get("ownerReferences") or ()]:
            return found
        self._api.create(self._node_name, uid)
        return {}

    def _look(self) -> float:
        """Ask the driver; the seconds until it should be asked again."""
        try:
            fingerprint = self._nvml.fingerprint()
            holders = Holders.ask(self._pod_resources)
            if (
                fingerprint != self._fingerprint
                or holders != self._holders
                or self._foreign.is_unsettled
                or self._is_doubtful
                or time.monotonic() >= self._refresh_at
            ):
                self._foreign.is_unsettled = False
                reading = self._nvml.read()
                self._wanted = seen(reading, self._host, self._foreign, holders)
                self._is_doubtful = reading.is_doubtful
                self._fingerprint, self._holders = fingerprint, holders
        except NvmlUnavailableError as error:
            return self._nvml_trouble(error)
        self._hopeless_looks, self._nvml_reason = 0, ""
        self._nvml_back_off.reset()
        return self._pace.poll_seconds

    def _nvml_trouble(self, error: NvmlUnavailableError) -> float:
        if error.reason != self._nvml_reason:
            log.warning("%s", error)
        self._nvml_reason = error.reason
        self._nvml.close()
        self._fingerprint = None
        self._readiness.failed(str(error))
        if error.reason in _DRIVER_AWAY:
            self._nvml.forget_xids()
        self._hopeless_looks = self._hopeless_looks + 1 if self._needs_restart(error.reason) else 0
        self._wanted = unready_status(error.reason, str(error), self._host, self._written)
        return self._nvml_back_off.pause_seconds()

    def _needs_restart(self, reason: str) -> bool:
        """Whether a container made now would do better: no loop, for the next one begins anew."""
        if reason == "UnknownError":
            return True
        loaded = self._host.kernel_driver()
        return reason in _LIBRARY_TROUBLES and loaded not in ("", self._kernel_driver)

    def _last_words(self) -> str:
        if self._nvml_reason == "UnknownError":
            return (
                f"NVML answered {self._hopeless_looks} times with Unknown Error: the container "
                "lost its devices; exiting so that it is made anew"
            )
        return (
            f"the node's driver is {self._host.kernel_driver()} now and was "
            f"{self._kernel_driver or 'not loaded'} when this container was made, and its library "
            f"does not fit ({self._nvml_reason}); exiting so that it is made anew"
        )

    def _publish(self) -> float:
        """Write what is new, and at times that all is as it was; the seconds to wait at least."""
        if self._wanted is None:
            return 0
        due = time.monotonic() >= self._refresh_at
        news = meaning(self._wanted) != _own_part(self._written)
        if not news and not due:
            self._passed()
            return 0
        status = with_times(self._wanted, timestamp(), self._written, self._agent_version)
        try:
            self._api.write(self._node_name, self._owner_uid(), status)
        except ApiError as error:
            return self._api_trouble(error)
        if news:
            log.info("wrote %s: %s", self._node_name, status["conditions"][0]["message"])
        self._api_back_off.reset()
        self._written = status
        self._refresh_at = time.monotonic() + self._pace.refresh_seconds * random.uniform(0.8, 1.2)
        self._passed()
        return 0

    def _passed(self) -> None:
        if self._fingerprint is not None:
            self._readiness.passed()

    def _api_trouble(self, error: ApiError) -> float:
        log.warning("%s", error)
        self._readiness.failed(str(error))
        return self._api_back_off.pause_seconds(error.retry_after_seconds)

    def _owner_uid(self) -> str:
        """The Node's UID, where our token is bound to that very node."""
        try:
            claim = node_claim(self._api.token())
        except CredentialsError:
            return ""  # the request itself tells what is wrong
        return claim.uid if claim.name == self._node_name else ""


def timestamp() -> str:
    """Now, as the API writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _own_part(written: Mapping[str, Any]) -> dict[str, Any]:
    """What we wrote, in the form `meaning` gives a status we want."""
    kept = {key: value for key, value in written.items() if key != "agentVersion"}
    return meaning(kept) if kept else {}
