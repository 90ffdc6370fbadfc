"""Pods that the API server refuses to make: the words of admission as a reason and an advice."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Source: Kubernetes 1.36, plugin/pkg/admission/resourcequota/controller.go, and the name that a
# ReplicaSet makes up anew for each attempt.
_NAMED = re.compile(r'^(?:Internal error occurred: )?pods "[^"]*" is forbidden: ')
_MUST_SPECIFY = re.compile(r"failed quota: (?P<quota>[^:]+): must specify (?P<what>.+)")
_LONGEST_WORDS = 600


def refused_pods(workloads: Iterable[Mapping[str, Any]]) -> tuple[str, str] | None:
    """(reason, words) where a workload's pods cannot be made; None where all can."""
    for body in workloads:
        for each in (body.get("status") or {}).get("conditions") or ():
            if each.get("type") == "ReplicaFailure" and each.get("status") == "True":
                return _told(str(each.get("message") or each.get("reason") or ""))
    return None


def _told(message: str) -> tuple[str, str]:
    words = _NAMED.sub("", message).strip()[:_LONGEST_WORDS]
    missing = _MUST_SPECIFY.search(words)
    if missing is not None:
        names = ", ".join(
            dict.fromkeys(part.split(" for:")[0].strip() for part in missing["what"].split(";"))
        )
        return "LimitsRequired", (
            f"ResourceQuota {missing['quota']} takes no pod without {names}: set them in "
            "spec.resources, or let a LimitRange give a default"
        )
    if "exceeded quota" in words:
        return "QuotaExceeded", f"no further pod is allowed: {words}"
    return "PodsRefused", f"the API server refuses the pods: {words}"
