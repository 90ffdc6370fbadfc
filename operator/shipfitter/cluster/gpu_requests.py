"""What a pod asks of a node's devices, as the scheduler adds it up."""

from collections.abc import Iterable, Mapping
from typing import Any

Requests = Mapping[str, int]


def gpu_requests(pod_spec: Mapping[str, Any]) -> dict[str, int]:
    """Devices a pod takes on its node, by resource name (nvidia.com/gpu, nvidia.com/mig-1g.10gb).

    Init containers run one after another, so the largest counts; those that restart always
    (sidecars) stay and add up with the containers.
    Source: Kubernetes 1.36, pkg/api/v1/resource, PodRequests.

    >>> gpu_requests({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]})
    {'nvidia.com/gpu': 2}
    """
    staying: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod_spec.get("initContainers") or ():
        wanted = _devices(container)
        if container.get("restartPolicy") == "Always":
            staying = _sum(staying, wanted)
            wanted = staying
        else:
            wanted = _sum(staying, wanted)
        peak = _most(peak, wanted)
    running = staying
    for container in pod_spec.get("containers") or ():
        running = _sum(running, _devices(container))
    return _most(peak, running)


def _devices(container: Mapping[str, Any]) -> dict[str, int]:
    """Extended resources of one container: they carry a domain and are whole numbers."""
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: int(value) for name, value in wanted.items() if _is_device(name, value)}


def _is_device(name: str, value: Any) -> bool:
    domain, slash, _ = name.partition("/")
    ours = bool(slash) and not domain.endswith("kubernetes.io")
    return ours and str(value).isdigit() and int(value) > 0


def _sum(one: Requests, other: Requests) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in _names(one, other)}


def _most(one: Requests, other: Requests) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in _names(one, other)}


def _names(*mappings: Requests) -> Iterable[str]:
    return sorted({name for mapping in mappings for name in mapping})
