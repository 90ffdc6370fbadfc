"""Replicas of each variant while others take over: one after the other, and none for nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from shipfitter.decide.rollout import spec_replicas
from shipfitter.decide.world import LivePod, LiveWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """What the variants should be scaled to now."""

    replicas: Mapping[str, int]  # by variant name, the wanted ones first and in their order
    finished: tuple[LiveWorkload, ...] = ()  # old variants without wish or pods


def takeover(
    wanted: Mapping[str, int],
    workloads: tuple[LiveWorkload, ...],
    pods: tuple[LivePod, ...],
    *,
    yields: Mapping[str, Collection[str]],
    most: Mapping[str, int],
) -> Takeover:
    """Move replicas to the wanted variants one by one.

    A replica goes when one that is wanted has become Ready in its stead. Never more pods are wanted
    than the replicas and a quarter (at least one) on top. `yields`: variants whose next pod needs
    the GPU that a pod of one of these holds; then one replica goes first. `most`: up to how many
    replicas a variant may grow, where a quota limits it.
    """
    state = _State(wanted, workloads, pods)
    finished = tuple(w for w in workloads if w.name in state.finished)
    replicas = sum(wanted.values())
    served = sum(min(state.ready(name), count) for name, count in wanted.items())
    keep = max(0, replicas - served)
    yielding = next(
        (name for name, count in wanted.items() if state.ready(name) < count and yields.get(name)),
        "",
    )
    if yielding:
        keep = min(keep, max(0, replicas - served - 1))
    leftover = state.kept(keep, last=yields.get(yielding, ()))
    room = replicas + max(1, replicas // 4) - state.committed
    targets = {}
    for name, count in wanted.items():
        live = state.live(name)
        grown = min(count - live, max(0, room)) if live < count else 0
        room -= grown
        target = live + grown if live < count else count + leftover.get(name, 0)
        if name == yielding:
            target = max(target, min(count, state.ready(name) + 1))
        targets[name] = min(target, max(live, most.get(name, target)))
    return Takeover(
        replicas=targets | {name: leftover.get(name, 0) for name in state.old}, finished=finished
    )


class _State:
    """Who has how many replicas now."""

    def __init__(
        self,
        wanted: Mapping[str, int],
        workloads: tuple[LiveWorkload, ...],
        pods: tuple[LivePod, ...],
    ) -> None:
        self._live = {workload.name: spec_replicas(workload) for workload in workloads}
        self._pods = {
            name: [pod for pod in pods if pod.variant == name] for name in {*self._live, *wanted}
        }
        self._wanted = wanted
        self.finished = {
            name
            for name, count in self._live.items()
            if name not in wanted and count == 0 and not self._pods[name]
        }
        self.old = sorted(
            name for name in self._live if name not in wanted and name not in self.finished
        )

    def live(self, name: str) -> int:
        return self._live.get(name, 0)

    def ready(self, name: str) -> int:
        return sum(pod.ready and not pod.terminating for pod in self._pods[name])

    @property
    def committed(self) -> int:
        """Pods that are there or asked for; of old variants also those that only end."""
        old = sum(max(self._live[name], len(self._pods[name])) for name in self.old)
        return old + sum(self.live(name) for name in self._wanted)

    def kept(self, keep: int, *, last: Collection[str]) -> dict[str, int]:
        """Replicas beyond what is wanted that stay until others serve in their stead.

        Of an old variant all may; of a wanted one that shrinks those that serve.
        """
        spare = {name: self._live[name] for name in self.old} | {
            name: max(0, min(self.live(name), self.ready(name)) - count)
            for name, count in self._wanted.items()
        }
        staying = {}
        order = sorted(spare, key=lambda name: (name in last, -self.ready(name), name))
        for name in order:
            staying[name] = min(spare[name], keep)
            keep -= staying[name]
        return staying
