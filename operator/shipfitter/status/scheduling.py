"""The scheduler's words for a pod it cannot place, without the counts that change by themselves."""

import re

# Source: Kubernetes 1.36, pkg/scheduler/framework/types.go, FitError: "0/3 nodes are available: 1
# Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: ...".
_START = re.compile(r"^0/\d+ nodes are available: ")
_COUNT = re.compile(r"^\d+ (?:node\(s\) )?")
_INSUFFICIENT = "Insufficient "

_ADVICE = {
    "ephemeral-storage": (
        "spec.resources.requests says less than the weights take, or spec.storage.cacheClaim names "
        "a claim that holds them"
    ),
    "memory": "spec.resources.requests says how much a pod asks for",
    "cpu": "spec.resources.requests says how much a pod asks for",
    "pods": "the node runs as many pods as it may",
}


def lacking(message: str) -> tuple[str, ...]:
    """What nodes lack, each once, in the scheduler's order; nothing where it says nothing."""
    if not _START.match(message):
        return ()
    told = _START.sub("", message).split(". ")[0]  # after it: preemption, and claims
    parts = (_COUNT.sub("", part.strip(" .")) for part in told.split(", "))
    found = tuple(dict.fromkeys(part for part in parts if part))
    wants = tuple(part for part in found if part.startswith(_INSUFFICIENT))
    return wants or found


def is_device(lack: str) -> bool:
    """Whether it is the GPU itself, or a claim for one, that is missing."""
    resource = lack.removeprefix(_INSUFFICIENT)
    return "/" in resource or "claim" in lack or "affinity" in lack or "device" in lack


def advised(lack: str) -> str:
    """With what a person can do about it."""
    advice = _ADVICE.get(lack.removeprefix(_INSUFFICIENT))
    return f"{lack} ({advice})" if advice else lack
