"""What spec.template may say: fields of a pod that we do not model and that bind no host."""

from collections.abc import Iterator, Mapping
from typing import Any

ENGINE_CONTAINER = "engine"
OWN_PREFIX = "shipfitter.dev/"

_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_INSTEAD = {
    "args": "write the flags in spec.engine.args",
    "command": "remove it",
    "image": "set spec.engine.image",
    "ports": "remove it",
}
_INSTEAD_IN_SPEC = {
    "serviceAccountName": "set spec.serviceAccountName",
    "imagePullSecrets": "set spec.imagePullSecrets",
    "priorityClassName": "set spec.placement.priorityClassName",
    "restartPolicy": "remove it",
    "nodeName": "use spec.placement.nodeSelector",
    "subdomain": "remove it",
    "hostname": "remove it",
}
_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")


def template_problems(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path below the template and what is wrong there, with the way out."""
    for key in template:
        if key not in ("metadata", "spec"):
            yield key, "is no part of a pod template: only metadata and spec are laid over"
    yield from _metadata_problems(template.get("metadata"))
    spec = template.get("spec")
    if spec is None:
        return
    if not isinstance(spec, Mapping):
        yield "spec", f"should be an object, got {spec!r}"
        return
    for key in _HOST_NAMESPACES:
        if spec.get(key):
            yield f"spec.{key}", "pods may not share a namespace of the host: remove it"
    for key, way_out in _INSTEAD_IN_SPEC.items():
        if key in spec:
            yield f"spec.{key}", f"is no part of the overlay: {way_out}"
    yield from _security_problems("spec.securityContext", spec.get("securityContext"))
    yield from _volume_problems(spec.get("volumes"))
    for name in _CONTAINER_LISTS:
        yield from _container_problems(f"spec.{name}", spec.get(name))


def _metadata_problems(metadata: Any) -> Iterator[tuple[str, str]]:
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        yield "metadata", f"should be an object, got {metadata!r}"
        return
    for key, value in metadata.items():
        if key not in ("labels", "annotations"):
            yield f"metadata.{key}", "only labels and annotations are laid over: remove it"
        elif not isinstance(value, Mapping):
            yield f"metadata.{key}", f"should be an object, got {value!r}"
        else:
            yield from _own_keys(f"metadata.{key}", value)


def _own_keys(path: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    own = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by")
    for key, value in entries.items():
        if str(key).startswith(OWN_PREFIX) or key in own:
            yield f"{path}[{key}]", "Shipfitter finds its pods by it: remove it"
        elif not isinstance(value, str):
            yield f"{path}[{key}]", f"should be a string, got {value!r} (put it in quotes)"


def _named(path: str, items: Any) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Each item with its path; None where it cannot be laid over."""
    if items is None:
        return
    if not isinstance(items, list | tuple):
        yield path, None
        return
    for index, item in enumerate(items):
        named = isinstance(item, Mapping) and isinstance(item.get("name"), str)
        yield f"{path}[{index}]", item if named else None


_NO_NAME = "should be a list of objects with a name each: items are merged by name"


def _volume_problems(volumes: Any) -> Iterator[tuple[str, str]]:
    for path, volume in _named("spec.volumes", volumes):
        if volume is None:
            yield path, _NO_NAME
        elif "hostPath" in volume:
            yield f"{path}.hostPath", "pods may not mount the host's files: use a claim"


def _container_problems(list_path: str, containers: Any) -> Iterator[tuple[str, str]]:
    for path, container in _named(list_path, containers):
        if container is None:
            yield path, _NO_NAME
            continue
        yield from _security_problems(f"{path}.securityContext", container.get("securityContext"))
        ports = container.get("ports")
        for index, port in enumerate(ports if isinstance(ports, list | tuple) else ()):
            if isinstance(port, Mapping) and port.get("hostPort"):
                yield f"{path}.ports[{index}].hostPort", "pods may not bind the host: remove it"
        if container["name"] == ENGINE_CONTAINER and list_path == "spec.containers":
            for key, way_out in _INSTEAD.items():
                if key in container:
                    yield f"{path}.{key}", f"is no part of the overlay: {way_out}"


def _security_problems(path: str, context: Any) -> Iterator[tuple[str, str]]:
    if context is None:
        return
    if not isinstance(context, Mapping):
        yield path, f"should be an object, got {context!r}"
        return
    if context.get("privileged"):
        yield f"{path}.privileged", "pods may not be privileged: remove it"
    windows = context.get("windowsOptions")
    if isinstance(windows, Mapping) and windows.get("hostProcess"):
        yield f"{path}.windowsOptions.hostProcess", "pods may not run as host processes: remove it"
