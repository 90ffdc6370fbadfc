"""What the pods say: Available, Ready and the words for a person when something is in the way."""

from collections import Counter
from collections.abc import Mapping, Sequence

from shipfitter.core.engine_log import read_last_words
from shipfitter.status.conditions import Condition
from shipfitter.status.engine_words import advice_for, spoken
from shipfitter.status.pods import LivePod


def available(
    pods: Sequence[LivePod], replicas: int, *, gpus: Mapping[str, str], startup: str
) -> Condition:
    """Whether all replicas serve; `gpus` (of a pod, by variant) and `startup` are waited for."""
    live = [pod for pod in pods if not pod.terminating]
    ready = sum(pod.ready for pod in live)
    if replicas == 0:
        return Condition("Available", False, "ScaledToZero", "spec.replicas is 0")
    if ready >= replicas:
        return Condition("Available", True, "Available", f"{ready} of {replicas} replicas serve")
    so_far = f"{ready} of {replicas} replicas serve"
    found = trouble(live, gpus)
    if found:
        return Condition("Available", False, found[0], f"{so_far}; {found[1]}")
    if live:
        return Condition("Available", False, "Starting", f"{so_far}; {startup}")
    return Condition("Available", False, "RollingOut", f"{so_far}; pods are being created")


def trouble(pods: Sequence[LivePod], gpus: Mapping[str, str]) -> tuple[str, str] | None:
    """(reason, words) of what keeps pods from serving; None where they only need time."""
    found = (look(pods, gpus) for look in (_failed, _image, _waiting))
    return next(filter(None, found), None)


def _failed(pods: Sequence[LivePod], _: Mapping[str, str]) -> tuple[str, str] | None:
    for pod in pods:
        if not pod.broken and pod.waiting_reason != "CrashLoopBackOff":
            continue
        refusal = read_last_words(pod.termination_message, pod.exit_code, pod.ended_reason)
        if refusal is None:
            return "EngineFailed", f"{pod.name} ended without a word"
        advice = advice_for(refusal)
        return advice.reason, f"{pod.name} ended: {spoken(refusal)}; {advice.advice}"
    return None


def _image(pods: Sequence[LivePod], _: Mapping[str, str]) -> tuple[str, str] | None:
    for pod in pods:
        if pod.waiting_reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
            return "ImagePullFailed", f"{pod.name} cannot pull its image: {pod.waiting_reason}"
    return None


def _waiting(pods: Sequence[LivePod], gpus: Mapping[str, str]) -> tuple[str, str] | None:
    waiting = Counter(pod.variant for pod in pods if pod.waiting_for_gpu_since is not None)
    if not waiting:
        return None
    told = [
        f"{count} {'pod waits' if count == 1 else 'pods wait'} for "
        f"{gpus.get(variant, 'GPUs of an earlier plan')}"
        for variant, count in sorted(waiting.items())
    ]
    return "WaitingForGpu", f"{' and '.join(told)}: none is free"


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
