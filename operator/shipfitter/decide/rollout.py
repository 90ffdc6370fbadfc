"""Replicas of each variant while one takes over, and how a variant replaces its own pods."""

from collections.abc import Mapping
from dataclasses import dataclass

from shipfitter.decide.world import LivePod, LiveWorkload

# A surge pod that waits this long for a GPU will not get one: the old pod holds it.
SURGE_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """A Deployment's rolling update: surge first, or one by one."""

    max_surge: int
    max_unavailable: int


SURGE_FIRST = Strategy(max_surge=1, max_unavailable=0)
ONE_BY_ONE = Strategy(max_surge=0, max_unavailable=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """What the variants should be scaled to now."""

    replicas: Mapping[str, int]  # by variant name, the new one included
    finished: tuple[LiveWorkload, ...] = ()  # old variants without wish or pods


def spec_replicas(workload: LiveWorkload) -> int:
    """Replicas the workload asks for now."""
    return int(workload.body.get("spec", {}).get("replicas", 0) or 0)


def rolled_out(workload: LiveWorkload) -> bool:
    """Whether all its pods are of its newest template; true where nothing is said of that yet.

    Source: Kubernetes 1.36, kubectl/pkg/polymorphichelpers/rollout_status.go.
    """
    body = workload.body
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


def takeover(
    wanted: str,
    replicas: int,
    workloads: tuple[LiveWorkload, ...],
    pods: tuple[LivePod, ...],
    *,
    may_yield: bool,
) -> Takeover:
    """Move from old variants to the wanted one replica by replica.

    An old replica goes when a new one is Ready. Never more pods are wanted than the replicas and a
    quarter (at least one) on top. With `may_yield` (the new pod needs the GPU an old one holds)
    one old replica goes first.
    """
    old = [workload for workload in workloads if workload.name != wanted]
    old_pods = {w.name: [p for p in pods if p.variant == w.name] for w in old}
    finished = tuple(w for w in old if spec_replicas(w) == 0 and not old_pods[w.name])
    old = [workload for workload in old if workload not in finished]
    live_old = sum(max(spec_replicas(w), len(old_pods[w.name])) for w in old)
    new_pods = [pod for pod in pods if pod.variant == wanted and not pod.terminating]
    ready = sum(pod.ready for pod in new_pods)
    if not old:
        return Takeover(replicas={wanted: replicas}, finished=finished)
    surge = max(1, replicas // 4)
    have = next((spec_replicas(w) for w in workloads if w.name == wanted), 0)
    new = min(replicas, max(have, replicas + surge - live_old))
    keep = max(0, replicas - ready)
    if may_yield and ready < replicas:
        keep = min(keep, max(0, replicas - ready - 1))
        new = max(new, min(replicas, ready + 1))
    targets = {wanted: new}
    for workload in sorted(old, key=lambda w: (-_ready(old_pods[w.name]), w.name)):
        share = min(spec_replicas(workload), keep)
        targets[workload.name] = share
        keep -= share
    return Takeover(replicas=targets, finished=finished)


def _ready(pods: list[LivePod]) -> int:
    return sum(pod.ready for pod in pods)
