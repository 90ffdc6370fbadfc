"""ResourceQuotas as far as they count GPUs, and which of them count a deployment's pods."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shipfitter.cluster.queue import Key
from shipfitter.cluster.trim import OwnPod
from shipfitter.core.quota import DEVICES, EVERY_DEVICE, GpuQuota

REQUESTS = "requests."


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceQuota:
    """A quota that counts devices; one without any is as good as none."""

    namespace: str
    name: str
    hard: Mapping[str, int] = field(default_factory=dict)  # by resource name
    used: Mapping[str, int] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    selectors: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # scope, operator, values


def namespace_quota(raw: Mapping[str, Any]) -> NamespaceQuota:
    """The little of a ResourceQuota that is kept: a change of the rest wakes nobody."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    hard = _devices(spec.get("hard") or {})
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return NamespaceQuota(
        namespace=metadata["namespace"],
        name=metadata["name"],
        hard=hard,
        used={n: c for n, c in _devices(status.get("used") or {}).items() if n in hard},
        scopes=tuple(spec.get("scopes") or ()) if hard else (),
        selectors=tuple(
            (str(each["scopeName"]), str(each["operator"]), tuple(each.get("values") or ()))
            for each in expressions
            if hard
        ),
    )


def _devices(quantities: Mapping[str, Any]) -> dict[str, int]:
    """Counts of extended resources, known to quotas only as requests, and of claimed devices."""
    found = {}
    for name, value in quantities.items():
        if not str(value).isdecimal():
            continue
        if name.startswith(REQUESTS) and "/" in name:
            found[name.removeprefix(REQUESTS)] = int(value)
        elif name.endswith(DEVICES):
            found[name.removesuffix(DEVICES) + EVERY_DEVICE] = int(value)
    return found


def gpu_quotas(
    quotas: Iterable[NamespaceQuota], key: Key, priority_class: str, own: Mapping[str, int]
) -> tuple[GpuQuota, ...]:
    """What the namespace's quotas say to one deployment's pods; `own`: the devices of these."""
    said = (
        (quota, GpuQuota(name=quota.name, resource_name=name, hard=quota.hard[name]))
        for quota in sorted(quotas, key=lambda each: each.name)
        if quota.namespace == key.namespace and counts_engines(quota, priority_class)
        for name in sorted(quota.hard)
    )
    return tuple(
        replace(
            each,
            used_by_others=max(0, quota.used.get(each.resource_name, 0) - counted(each, own)),
        )
        for quota, each in said
    )


def counted(quota: GpuQuota, devices: Mapping[str, int]) -> int:
    """How many of these devices a quota counts."""
    return sum(count for name, count in devices.items() if quota.counts(name))


def requested(pods: Iterable[OwnPod], key: Key) -> Counter[str]:
    """Devices that a deployment's pods ask for; a quota counts them before they are placed."""
    total: Counter[str] = Counter()
    for pod in pods:
        if (pod.namespace, pod.owner) == key and not pod.ended:
            total.update(pod.gpus)
    return total


def counts_engines(quota: NamespaceQuota, priority_class: str) -> bool:
    """Whether its scopes take in pods that run without end, with requests and this priority class.

    Source: Kubernetes 1.36, pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc.
    """
    selected = [*((scope, "Exists", ()) for scope in quota.scopes), *quota.selectors]
    return all(
        _matches(scope, operator, values, priority_class) for scope, operator, values in selected
    )


def _matches(scope: str, operator: str, values: Iterable[str], priority_class: str) -> bool:
    if scope == "PriorityClass":
        return {
            "Exists": bool(priority_class),
            "DoesNotExist": not priority_class,
            "In": priority_class in values,
            "NotIn": priority_class not in values,
        }.get(operator, False)
    return scope in ("NotTerminating", "NotBestEffort")
