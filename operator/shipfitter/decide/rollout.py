"""How a variant replaces its own pods, and whether it has done so."""

from dataclasses import dataclass

from shipfitter.decide.world import LivePod, LiveWorkload
from shipfitter.render.workload import template_of

# A surge pod that waits this long for a GPU will not get one: the old pod holds it.
SURGE_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """A Deployment's rolling update: surge first, or one by one."""

    max_surge: int
    max_unavailable: int


SURGE_FIRST = Strategy(max_surge=1, max_unavailable=0)
ONE_BY_ONE = Strategy(max_surge=0, max_unavailable=1)


def spec_replicas(workload: LiveWorkload) -> int:
    """Replicas the workload asks for now."""
    return int(workload.body.get("spec", {}).get("replicas", 0) or 0)


def rolled_out(workload: LiveWorkload, pods: tuple[LivePod, ...]) -> bool:
    """Whether all its pods are of its newest template; true where nothing is said of that yet.

    Of groups the pods tell by their marks: a LeaderWorkerSet's status has no generation.
    Source: Kubernetes 1.36, kubectl/pkg/polymorphichelpers/rollout_status.go.
    """
    body = workload.body
    if body.get("kind") == "LeaderWorkerSet":
        mark = template_of(body)
        mine = (pod for pod in pods if pod.variant == workload.name and not pod.terminating)
        return all(pod.template_hash == mark for pod in mine)
    status = body.get("status") or {}
    if "observedGeneration" not in status:
        return True
    updated = int(status.get("updatedReplicas", 0))
    return (
        status["observedGeneration"] >= body["metadata"].get("generation", 0)
        and updated >= spec_replicas(workload)
        and int(status.get("replicas", 0)) <= updated
    )


def strategy(
    mode: str, pods: tuple[LivePod, ...], *, room_to_surge: bool, now_seconds: float
) -> Strategy:
    """Surge first when there is room and something serves; one by one otherwise.

    With no Ready pod there is nothing to protect, and a crash-looping pod may hold the only GPU.
    """
    if mode == "InPlace" or not any(pod.ready and not pod.terminating for pod in pods):
        return ONE_BY_ONE
    if any(_waits_too_long(pod, now_seconds) for pod in pods):
        return ONE_BY_ONE
    return SURGE_FIRST if room_to_surge or mode == "Surge" else ONE_BY_ONE


def _waits_too_long(pod: LivePod, now_seconds: float) -> bool:
    since = pod.waiting_for_gpu_since
    return since is not None and now_seconds - since >= SURGE_PATIENCE_SECONDS
