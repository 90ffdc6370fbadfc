"""The variables of a container: its own in the kubelet's order, and those a local process needs."""

import base64
import os
from collections.abc import Callable, Mapping
from typing import Any

from world.nodes.downward import field_value
from world.nodes.expansion import expand
from world.nodes.quantities import resource_field

Object = Mapping[str, Any]
# (kind, name) → the object, or None where there is none; kinds are `configmaps` and `secrets`
Read = Callable[[str, str], Object | None]
SEARCH_PATHS = ("LD_LIBRARY_PATH", "PYTHONPATH")  # joined, not replaced


class MissingConfigError(Exception):
    """A container or volume names an object or key that is not there (yet)."""


def decoded(kind: str, body: Object) -> dict[str, bytes]:
    """The entries of a ConfigMap or Secret as bytes."""
    plain = {} if kind == "secrets" else body.get("data") or {}
    packed = (body.get("data") if kind == "secrets" else body.get("binaryData")) or {}
    return {
        **{key: text.encode() for key, text in plain.items()},
        **{key: base64.b64decode(text) for key, text in packed.items()},
    }


def entries(
    kind: str, reference: Object, read: Read, name_key: str = "name"
) -> dict[str, bytes] | None:
    """All entries of the object a reference names; None where it is optional and missing."""
    name = reference.get(name_key, "")
    body = read(kind, name)
    if body is None:
        if reference.get("optional"):
            return None
        raise MissingConfigError(f'{kind[:-1].replace("map", "Map")} "{name}" not found')
    return decoded(kind, body)


def _one(kind: str, reference: Object, read: Read) -> str | None:
    found = entries(kind, reference, read)
    if found is None:
        return None
    key = reference["key"]
    if key not in found:
        if reference.get("optional"):
            return None
        raise MissingConfigError(f"couldn't find key {key} in {kind[:-1]} {reference['name']}")
    return found[key].decode()


def declared(
    container: Object,
    pod: Object,
    *,
    pod_ip: str,
    allocatable: Mapping[str, str],
    read: Read,
    inherited: Mapping[str, str],
) -> dict[str, str]:
    """`envFrom`, then `env` in order, each seeing those before it and the inherited ones."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for kind, key in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            if key in source:
                found = entries(kind, source[key], read) or {}
                prefix = source.get("prefix", "")
                variables.update({prefix + name: value.decode() for name, value in found.items()})
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        value: str | None
        match source:
            case {"fieldRef": reference}:
                value = field_value(reference["fieldPath"], pod, pod_ip)
            case {"resourceFieldRef": reference}:
                value = resource_field(reference, container, allocatable)
            case {"configMapKeyRef": reference}:
                value = _one("configmaps", reference, read)
            case {"secretKeyRef": reference}:
                value = _one("secrets", reference, read)
            case _:
                value = expand(entry.get("value", ""), {**inherited, **variables})
        if value is not None:
            variables[entry["name"]] = value
    return variables


def service_links(services: list[Object]) -> dict[str, str]:
    """The variables each Service of the namespace adds unless `enableServiceLinks` is false.

    Source: Kubernetes 1.36, pkg/kubelet/envvars/envvars.go.
    """
    variables: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP")
        ports = service["spec"].get("ports") or []
        if not ports or address in (None, "", "None"):
            continue
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        variables[f"{prefix}_SERVICE_HOST"] = address
        variables[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
        variables[f"{prefix}_PORT"] = f"tcp://{address}:{ports[0]['port']}"
        for port in ports:
            if port.get("name"):
                name = port["name"].upper().replace("-", "_")
                variables[f"{prefix}_SERVICE_PORT_{name}"] = str(port["port"])
            number, protocol = port["port"], port.get("protocol", "TCP")
            link = f"{prefix}_PORT_{number}_{protocol}"
            variables[link] = f"{protocol.lower()}://{address}:{number}"
            variables[f"{link}_PROTO"] = protocol.lower()
            variables[f"{link}_PORT"] = str(number)
            variables[f"{link}_ADDR"] = address
    return variables


def of_this_machine(root: str, pod_name: str) -> dict[str, str]:
    """What every process needs here and every image would bring; nothing of ours leaks in."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": root,
        "TMPDIR": root,
        "HOSTNAME": pod_name,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # lines appear in the log when they are written
    }


def joined(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """Both, the second wins; search paths are put in front instead.

    >>> joined({"A": "1", "PYTHONPATH": "/b"}, {"A": "2", "PYTHONPATH": "/a"})
    {'A': '2', 'PYTHONPATH': '/a:/b'}
    """
    result = {**below, **above}
    for name in SEARCH_PATHS:
        if name in below and name in above:
            result[name] = f"{above[name]}:{below[name]}"
    return result
