"""What the API server was told of a pod; it is written again only when it differs."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from world.nodes.api import STRATEGIC, WEATHER, Api, ApiError
from world.nodes.node import ADDRESS
from world.nodes.status import ContainerState, conditions, phase, stamp

LOG = logging.getLogger("world.nodes")
GONE = (404, 409)  # the object, or this one of that name


class Report:
    """The status of one pod as last written."""

    def __init__(self, api: Api, pod_path: str, body: Mapping[str, Any]) -> None:
        self._api, self._path, self._uid = api, pod_path, body["metadata"]["uid"]
        before = (body.get("status") or {}).get("conditions") or []
        self._written: dict[str, Any] = {"conditions": before}

    @property
    def phase(self) -> str:
        """Empty before the first writing."""
        return str(self._written.get("phase", ""))

    @property
    def conditions(self) -> list[dict[str, Any]]:
        """With the times that the next ones keep."""
        conditions: list[dict[str, Any]] = self._written["conditions"]
        return conditions

    def forget(self) -> None:
        """The next status is written in any case."""
        self._written = {"conditions": self.conditions}

    def write(self, status: dict[str, Any]) -> bool:
        """Write a status; False when that has to be tried again."""
        if status == self._written:
            return True
        body = {"metadata": {"uid": self._uid}, "status": status}
        try:
            self._api.patch(f"{self._path}/status", body, STRATEGIC)
        except ApiError as error:
            if error.status not in GONE:
                LOG.warning("%s: status not written: %s", self._path, error)
                return False
        except WEATHER as error:
            LOG.warning("%s: status not written: %s", self._path, error)
            return False
        self._written = status
        return True


def pod_status(
    init: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    *,
    body: Mapping[str, Any],
    pod_ip: str,
    ending: bool,
    previous: Sequence[Mapping[str, Any]],
    began_seconds: float,
) -> dict[str, Any]:
    """The whole status of an admitted pod, as a strategic merge wants it."""
    policy = body["spec"].get("restartPolicy", "Always")
    pod_phase = phase(init, containers, policy, ending=ending)
    return {
        "phase": pod_phase,
        "conditions": conditions(init, containers, pod_phase, previous, time.time()),
        "hostIP": ADDRESS,
        "hostIPs": [{"ip": ADDRESS}],
        "podIP": pod_ip,
        # Merged lists would keep the address of a run before the machine was off.
        "podIPs": [{"$patch": "replace"}, {"ip": pod_ip}],
        "startTime": stamp(began_seconds),
        "observedGeneration": body["metadata"].get("generation"),
        "initContainerStatuses": [state.body() for state in init],
        "containerStatuses": [state.body() for state in containers],
    }


def refused(
    why: str, previous: Sequence[Mapping[str, Any]], began_seconds: float
) -> dict[str, Any]:
    """The status of a pod that was not admitted; it never runs."""
    return {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": why,
        "startTime": stamp(began_seconds),
        "conditions": list(previous),
    }
