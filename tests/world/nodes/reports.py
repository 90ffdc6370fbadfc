"""What the API server was told of a pod; it is written again only when it differs."""

import logging
from collections.abc import Mapping
from typing import Any

from world.nodes.api import STRATEGIC, WEATHER, Api, ApiError

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
