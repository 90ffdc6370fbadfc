"""spec.template laid over the pod template: maps merge, lists of named items merge by name."""

from collections.abc import Mapping
from typing import Any

# Which key names the items of a list. Source: patchMergeKey in Kubernetes' core/v1 types.
_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "resourceClaims": "name",
    "topologySpreadConstraints": "topologyKey",
}
# Items of which only one source may be set: an overlay replaces them whole.
_REPLACED_WHOLE = ("volumes", "env")
_APPENDED = ("tolerations",)
# Of these a probe or hook has exactly one: the overlay's replaces ours.
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def overlaid(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the overlay on top; None removes what stands there.

    >>> overlaid({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": None}})
    {'a': {'b': 3}}
    """
    result = dict(base)
    if any(handler in overlay for handler in _HANDLERS):
        result = {key: value for key, value in result.items() if key not in _HANDLERS}
    for key, value in overlay.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _laid(key, result.get(key), value)
    return result


def _laid(key: str, below: Any, above: Any) -> Any:
    if isinstance(above, Mapping):
        return overlaid(below if isinstance(below, Mapping) else {}, above)
    if isinstance(above, list | tuple) and isinstance(below, list):
        if key in _APPENDED:
            return below + [item for item in above if item not in below]
        if key in _MERGE_KEYS:
            return _merged(key, below, list(above))
    return list(above) if isinstance(above, tuple) else above


def _merged(key: str, below: list[Any], above: list[Any]) -> list[Any]:
    name = _MERGE_KEYS[key]
    result = list(below)
    for item in above:
        index = next((i for i, old in enumerate(result) if old.get(name) == item.get(name)), None)
        if index is None:
            result.append(item)
        elif key in _REPLACED_WHOLE:
            result[index] = item
        else:
            result[index] = overlaid(result[index], item)
    return result
