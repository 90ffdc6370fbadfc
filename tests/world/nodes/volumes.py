"""A pod's volumes as folders: shared ones in the pod's own, written ones in each container's.

Files from ConfigMaps are copied for each container that mounts them, because paths inside them
(a logging configuration that names the termination message's file) are rewritten for it.
"""

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from world.nodes.downward import field_value
from world.nodes.environment import MissingConfigError, Read, entries
from world.nodes.expansion import PathRewriter
from world.nodes.quantities import resource_field
from world.nodes.storage import Storage
from world.nodes.tokens import Tokens

Object = Mapping[str, Any]
TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
WRITTEN = ("configMap", "secret", "projected", "downwardAPI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Volumes:
    """The volumes of one pod."""

    pod: Object
    folder: Path
    storage: Storage
    tokens: Tokens
    read: Read
    pod_ip: str
    allocatable: Mapping[str, str]

    def mounts(self, container: Object) -> dict[str, str]:
        """Mount path → local path for one container; folders not written by us exist then."""
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes") or ()}
        places = {}
        for mount in container.get("volumeMounts") or ():
            volume = volumes[mount["name"]]
            place = self._place(volume, container["name"]) / mount.get("subPath", "")
            if not place.exists() and not any(kind in volume for kind in WRITTEN):
                place.mkdir(parents=True)
            places[mount["mountPath"]] = str(place)
        return places

    def _place(self, volume: Object, container: str) -> Path:
        name = str(volume["name"])
        match volume:
            case {"hostPath": {"path": path}}:
                return self.storage.host_path(str(path))
            case {"persistentVolumeClaim": {"claimName": claim}}:
                return self.storage.claim(str(claim))
            case _ if any(kind in volume for kind in WRITTEN):
                return self.folder / "containers" / container / "volumes" / name
            case {"emptyDir": _} | {"ephemeral": _}:
                return self.folder / "volumes" / name
        kinds = ", ".join(sorted(volume.keys() - {"name"}))
        raise MissingConfigError(f'volume "{name}": {kinds} is not emulated')

    def write(self, container: Object, rewrite: PathRewriter) -> None:
        """Bring the files of one container up to date."""
        mounted = {mount["name"] for mount in container.get("volumeMounts") or ()}
        for volume in self.pod["spec"].get("volumes") or ():
            if volume["name"] in mounted and any(kind in volume for kind in WRITTEN):
                files = self._files(volume, container, rewrite)
                write_files(self._place(volume, container["name"]), files)

    def _files(self, volume: Object, container: Object, rewrite: PathRewriter) -> dict[str, bytes]:
        match volume:
            case {"configMap": source}:
                return _rewritten(self._picked("configmaps", source), rewrite)
            case {"secret": source}:
                return self._picked("secrets", source, "secretName")
            case {"downwardAPI": source}:
                return self._downward(source, container)
        files: dict[str, bytes] = {}
        for source in volume["projected"].get("sources") or ():
            match source:
                case {"configMap": part}:
                    files.update(_rewritten(self._picked("configmaps", part), rewrite))
                case {"secret": part}:
                    files.update(self._picked("secrets", part))
                case {"downwardAPI": part}:
                    files.update(self._downward(part, container))
                case {"serviceAccountToken": part}:
                    files[part["path"]] = self.tokens.token(self.pod, part).encode()
        return files

    def _picked(self, kind: str, source: Object, name_key: str = "name") -> dict[str, bytes]:
        found = entries(kind, source, self.read, name_key)
        if found is None or not source.get("items"):
            return found or {}
        missing = [item["key"] for item in source["items"] if item["key"] not in found]
        if missing and not source.get("optional"):
            name = source[name_key]
            raise MissingConfigError(f"references non-existent config key: {missing[0]} of {name}")
        return {i["path"]: found[i["key"]] for i in source["items"] if i["key"] in found}

    def _downward(self, source: Object, container: Object) -> dict[str, bytes]:
        files = {}
        for item in source.get("items") or ():
            if "fieldRef" in item:
                value = field_value(item["fieldRef"]["fieldPath"], self.pod, self.pod_ip)
            else:
                spec = self.pod["spec"]
                everyone = [*spec["containers"], *(spec.get("initContainers") or ())]
                name = item["resourceFieldRef"].get("containerName", container["name"])
                named = next((c for c in everyone if c["name"] == name), container)
                value = resource_field(item["resourceFieldRef"], named, self.allocatable)
            files[item["path"]] = value.encode()
        return files

    def token_file(self, container: Object) -> Path | None:
        """The container's token for the API server, if it mounts one."""
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes") or ()}
        mounts = container.get("volumeMounts") or ()
        # The well-known place first; any other projected token is as good for a kubeconfig.
        for mount in sorted(mounts, key=lambda mount: mount["mountPath"] != TOKEN_MOUNT):
            volume = volumes[mount["name"]]
            for source in (volume.get("projected") or {}).get("sources") or ():
                token = source.get("serviceAccountToken")
                if token and not token.get("audience"):
                    return self._place(volume, container["name"]) / str(token["path"])
        return None


def _rewritten(files: Mapping[str, bytes], rewrite: PathRewriter) -> dict[str, bytes]:
    def text(data: bytes) -> bytes:
        try:
            return rewrite(data.decode()).encode()
        except UnicodeDecodeError:
            return data

    return {path: text(data) for path, data in files.items()}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder hold exactly these files; each changes in one step, unchanged ones stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        target = folder / path
        with contextlib.suppress(OSError):
            if target.read_bytes() == data:
                continue
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.fresh")
        fresh.touch(mode=0o600)
        fresh.write_bytes(data)
        os.replace(fresh, target)
    for old in folder.rglob("*"):
        if old.is_file() and str(old.relative_to(folder)) not in files:
            old.unlink()


def remove(folder: Path) -> None:
    """Remove a pod's folder and all in it."""
    shutil.rmtree(folder, ignore_errors=True)
