"""What the pods say: Available, Ready and the words for a person when something is in the way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shipfitter.core.engine_log import read_last_words
from shipfitter.status.conditions import Condition
from shipfitter.status.engine_words import advice_for, spoken
from shipfitter.status.pods import LivePod
from shipfitter.status.scheduling import advised, is_device


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What keeps replicas from serving that no pod can tell of."""

    refused: tuple[str, str] | None = None  # pods the API server does not make: reason, words
    quota: str = ""  # one that allows fewer replicas than are wanted
    allowed: int = 0  # replicas, by quotas
    elsewhere: str = ""  # free GPUs that waiting replicas cannot have, and why


NOTHING_BESIDE = Beside()


def available(
    pods: Sequence[LivePod],
    replicas: int,
    *,
    gpus: Mapping[str, str],
    startup: str,
    beside: Beside = NOTHING_BESIDE,
) -> Condition:
    """Whether all replicas serve; `gpus` (of a pod, by variant) and `startup` are waited for."""
    live = [pod for pod in pods if not pod.terminating]
    ready = sum(pod.ready for pod in live)
    if replicas == 0:
        return Condition("Available", False, "ScaledToZero", "spec.replicas is 0")
    if ready >= replicas:
        return Condition("Available", True, "Available", f"{ready} of {replicas} replicas serve")
    so_far = f"{ready} of {replicas} replicas serve"
    found = trouble(live, gpus, beside)
    if found:
        return Condition("Available", False, found[0], f"{so_far}; {found[1]}")
    limit = f"; {beside.quota}" if beside.quota else ""
    if any(not pod.ready for pod in live):
        return Condition("Available", False, "Starting", f"{so_far}; {startup}{limit}")
    if beside.quota and ready >= beside.allowed:
        return Condition("Available", False, "QuotaExceeded", so_far + limit)
    return Condition("Available", False, "RollingOut", f"{so_far}; pods are being created{limit}")


def trouble(
    pods: Sequence[LivePod], gpus: Mapping[str, str], beside: Beside = NOTHING_BESIDE
) -> tuple[str, str] | None:
    """(reason, words) of what keeps pods from serving; None where they only need time."""
    found = _failed(pods) or _image(pods) or beside.refused
    return found or _unschedulable(pods) or _waiting(pods, gpus, beside.elsewhere)


def _failed(pods: Sequence[LivePod]) -> tuple[str, str] | None:
    for pod in pods:
        if not pod.broken and pod.waiting_reason != "CrashLoopBackOff":
            continue
        refusal = read_last_words(pod.termination_message, pod.exit_code, pod.ended_reason)
        if refusal is None:
            return "EngineFailed", f"{pod.name} ended without a word"
        advice = advice_for(refusal)
        return advice.reason, f"{pod.name} ended: {spoken(refusal)}; {advice.advice}"
    return None


def _image(pods: Sequence[LivePod]) -> tuple[str, str] | None:
    for pod in pods:
        if pod.waiting_reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
            return "ImagePullFailed", f"{pod.name} cannot pull its image: {pod.waiting_reason}"
    return None


def _unschedulable(pods: Sequence[LivePod]) -> tuple[str, str] | None:
    """A pod that has its GPUs within reach and lacks something else."""
    for pod in pods:
        lacks = pod.unschedulable
        if lacks and not any(map(is_device, lacks)):
            return "Unschedulable", f"no node takes {pod.name}: {'; '.join(map(advised, lacks))}"
    return None


def _waiting(
    pods: Sequence[LivePod], gpus: Mapping[str, str], elsewhere: str
) -> tuple[str, str] | None:
    waiting = Counter(pod.variant for pod in pods if pod.waiting_for_gpu_since is not None)
    if not waiting:
        return None
    told = [
        f"{count} {'pod waits' if count == 1 else 'pods wait'} for "
        f"{gpus.get(variant, 'GPUs of an earlier plan')}"
        for variant, count in sorted(waiting.items())
    ]
    hint = f"; {elsewhere}" if elsewhere else ""
    return "WaitingForGpu", f"{' and '.join(told)}: none is free{hint}"


def ready(conditions: Sequence[Condition]) -> Condition:
    """The summary: the first thing in the way, or that all replicas serve."""
    by_type = {condition.type: condition for condition in conditions}
    serving = by_type.get("Available")
    for kind in ("SpecValid", "ModelResolved", "Planned"):
        blocked = by_type.get(kind)
        if blocked is not None and not blocked.status and not (serving and serving.status):
            return Condition("Ready", False, blocked.reason, blocked.message)
    if serving is None:
        return Condition("Ready", False, "RollingOut", "pods are being created")
    return Condition("Ready", serving.status, serving.reason, serving.message)
