"""Where folders come from that outlive a pod, and the objects a pod's files are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from world.nodes.api import Api, ApiError
from world.nodes.environment import Read


def reader(api: Api, namespace: str) -> Read:
    """Reads ConfigMaps and Secrets of one namespace, as is the kubelet's right."""

    def read(kind: str, name: str) -> Mapping[str, Any] | None:
        return _found(api, f"/api/v1/namespaces/{namespace}/{kind}/{name}")

    return read


def _found(api: Api, path: str) -> Mapping[str, Any] | None:
    try:
        return api.get(path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Host paths and claims as one node's pods see them."""

    api: Api
    namespace: str
    host: Path  # the node's own file system
    host_paths: Mapping[str, str]  # hostPath → local path, instead of a folder under `host`
    claims: Path  # a folder for each claim whose volume names none

    def host_path(self, path: str) -> Path:
        """The local file or folder behind a `hostPath`."""
        return Path(self.host_paths.get(path) or f"{self.host}/{path}")

    def claim(self, name: str) -> Path:
        """The folder behind a claim: what its volume names, where that exists on this machine."""
        claim = _found(
            self.api, f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims/{name}"
        )
        volume_name = ((claim or {}).get("spec") or {}).get("volumeName")
        volume = (
            _found(self.api, f"/api/v1/persistentvolumes/{volume_name}") if volume_name else None
        )
        spec = (volume or {}).get("spec") or {}
        path = Path((spec.get("hostPath") or spec.get("local") or {}).get("path") or "/nonexistent")
        return path if path.exists() else self.claims / self.namespace / name
