"""A cluster in miniature around `decide`: applies, schedules, starts and ends pods, in one process.

Enough of the API server, the Deployment controller, the scheduler and a kubelet to tell a story of
many decisions: what they really do is shown by the stories on the real control plane.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from builders_decide import NOW, mdl, world
from shipfitter.core.calibrate import CalibrationKey, Learning
from shipfitter.core.inventory import NodeCapacity
from shipfitter.core.quota import GpuQuota
from shipfitter.decide import LivePod, LiveWorkload, Outcome, decide
from shipfitter.render.workload import template_of

TEMPLATE_MARK = "shipfitter.dev/template"


@dataclass
class Cluster:
    """Nodes, one ModelDeployment, and what became of it."""

    nodes: list[NodeCapacity]
    spec: dict[str, Any]
    now: float = NOW
    status: Mapping[str, Any] | None = None
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)  # Deployments by name
    pods: list[LivePod] = field(default_factory=list)
    removed: list[LivePod] = field(default_factory=list)  # that were ready and were taken away
    hard_quota: int | None = None
    quota_used_by_others: int = 0
    learnt: dict[CalibrationKey, Learning] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    made: int = 0
    least_ready: int = 0

    # What happens to it.

    def decide(self) -> Outcome:
        """One pass, applied."""
        outcome = decide(mdl(status=self.status, **self.spec), self._world())
        self.status = outcome.status
        self.events += [each.message for each in outcome.notices if each.reason == "Resized"]
        for each in sorted(outcome.applies, key=lambda a: a.manager != "shipfitter"):
            if each.manifest["kind"] == "Deployment":
                self._apply(each.manifest)
        for gone in outcome.deletes:
            self.bodies.pop(gone.name, None)
        return outcome

    def settle(self, *, rounds: int = 40, step_seconds: float = 5.0) -> None:
        """Passes and the work of controllers until nothing changes for a while."""
        still = 0
        for _ in range(rounds):
            before = self.picture()
            self.decide()
            self._control()
            self.least_ready = min(self.least_ready, self.ready)
            self.now += step_seconds
            still = still + 1 if self.picture() == before else 0
            if still == 3:
                return
        raise AssertionError(f"never at rest: {self.picture()}")

    def wait(self, seconds: float) -> None:
        """Time passes, with a look before and after."""
        self.settle()
        self.now += seconds
        self.settle()

    def scale(self, replicas: int) -> None:
        """kubectl scale."""
        self.spec = {**self.spec, "replicas": replicas}

    def remove_node(self, name: str) -> None:
        """The node and its pods are gone."""
        self.nodes = [node for node in self.nodes if node.name != name]
        self.pods = [pod for pod in self.pods if pod.node != name]

    def take(self, name: str, gpus: int) -> None:
        """Others use so many GPUs of a node."""
        self.nodes = [replace(n, used_gpus=gpus) if n.name == name else n for n in self.nodes]

    def lose_status(self) -> None:
        """The object was restored without its status."""
        self.status = None

    # What is seen.

    @property
    def ready(self) -> int:
        return sum(pod.ready for pod in self.pods)

    @property
    def split(self) -> dict[str, int]:
        """Pods that are ready, by GPU type."""
        products = {n.name: n.devices[0].product.removeprefix("NVIDIA-")[:4] for n in self.nodes}
        return dict(Counter(products[pod.node] for pod in self.pods if pod.ready))

    @property
    def planned(self) -> dict[str, int]:
        """Replicas of the recorded variants, by GPU type."""
        return {v["gpuProduct"].removeprefix("NVIDIA-")[:4]: v["replicas"] for v in self.variants}

    @property
    def variants(self) -> list[Mapping[str, Any]]:
        assert self.status is not None
        return list(self.status.get("plan", {}).get("variants", ()))

    def picture(self) -> tuple[Any, ...]:
        """What must not move while the world does not."""
        return (
            sorted((p.name, p.node, p.ready) for p in self.pods),
            {name: body["spec"].get("replicas") for name, body in self.bodies.items()},
            self.status and {k: v for k, v in self.status.items() if k != "conditions"},
        )

    def pod_names(self) -> set[str]:
        return {pod.name for pod in self.pods}

    def condition(self, kind: str) -> Mapping[str, Any]:
        assert self.status is not None
        return next(c for c in self.status["conditions"] if c["type"] == kind)

    # How it works.

    def _world(self) -> Any:
        used: Counter[str] = Counter()
        for pod in self.pods:
            used[pod.node] += pod.gpus
        nodes = tuple(replace(n, used_gpus=n.used_gpus + used[n.name]) for n in self.nodes)
        quotas = ()
        if self.hard_quota is not None:
            quotas = (
                GpuQuota(
                    name="gpus",
                    resource_name="nvidia.com/gpu",
                    hard=self.hard_quota,
                    used_by_others=self.quota_used_by_others,
                ),
            )
        requested = sum(self._gpus(pod.variant) for pod in self.pods)
        return world(
            *nodes,
            now_seconds=self.now,
            workloads=tuple(self._live(name) for name in sorted(self.bodies)),
            pods=tuple(self.pods),
            quotas=quotas,
            learnt=self.learnt,
            own_requests={"nvidia.com/gpu": requested},
        )

    def _live(self, name: str) -> LiveWorkload:
        """The Deployment with what its controller says of it."""
        body = self.bodies[name]
        mine = [pod for pod in self.pods if pod.variant == name]
        fresh = [pod for pod in mine if pod.template_hash == template_of(body)]
        status = {"observedGeneration": 1, "replicas": len(mine), "updatedReplicas": len(fresh)}
        return LiveWorkload(name=name, body={**body, "status": status})

    def _apply(self, manifest: Mapping[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        before = self.bodies.get(name, {"metadata": {}, "spec": {}})
        metadata = {**before["metadata"], **manifest["metadata"], "uid": f"uid-{name}"}
        spec = {**before["spec"], **manifest["spec"]}
        self.bodies[name] = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                             "spec": spec}  # fmt: skip

    def _control(self) -> None:
        """Deployments are scaled and rolled by one pod each, pods scheduled, engines started."""
        self.pods = [replace(p, ready=True, phase="Running") if p.node else p for p in self.pods]
        for name in sorted({pod.variant for pod in self.pods} | set(self.bodies)):
            body = self.bodies.get(name)
            wanted = body["spec"].get("replicas", 1) if body else 0
            mine = [pod for pod in self.pods if pod.variant == name]
            if body is not None:
                self._roll(body, mine)
            for pod in sorted(mine, key=lambda p: (bool(p.node), p.ready, p.name))[
                : max(0, len(mine) - wanted)
            ]:
                self._end(pod)
            for _ in range(wanted - len(mine)):
                self._make(name)
        self.pods = [self._scheduled(pod) for pod in self.pods]

    def _roll(self, body: Mapping[str, Any], mine: list[LivePod]) -> None:
        """One pod of an older template goes, and a new one comes in its place."""
        mark = template_of(body)
        older = [pod for pod in mine if pod.template_hash != mark]
        if older and all(pod.ready for pod in mine if pod.template_hash == mark):
            self._end(older[0])
            mine.remove(older[0])

    def _make(self, variant: str) -> None:
        requested = sum(self._gpus(pod.variant) for pod in self.pods)
        if self.hard_quota is not None:
            left = self.hard_quota - self.quota_used_by_others - requested
            assert left >= self._gpus(variant), "a pod that the quota refuses was asked for"
        self.made += 1
        self.pods.append(
            LivePod(
                name=f"{variant}-{self.made}",
                variant=variant,
                ready=False,
                phase="Pending",
                template_hash=template_of(self.bodies[variant]),
                created_seconds=self.now,
            )
        )

    def _end(self, pod: LivePod) -> None:
        self.pods.remove(pod)
        if pod.ready:
            self.removed.append(pod)

    def _scheduled(self, pod: LivePod) -> LivePod:
        if pod.node:
            return pod
        gpus = self._gpus(pod.variant)
        used: Counter[str] = Counter()
        for other in self.pods:
            used[other.node] += other.gpus
        for node in self.nodes:
            free = node.allocatable_gpus - node.used_gpus - used[node.name]
            if self._may_go(pod.variant, node) and free >= gpus:
                placed = replace(pod, node=node.name, gpus=gpus, waiting_for_gpu_since=None)
                self.pods[self.pods.index(pod)] = placed
                return placed
        since = pod.waiting_for_gpu_since or self.now
        waiting = replace(pod, waiting_for_gpu_since=since)
        self.pods[self.pods.index(pod)] = waiting
        return waiting

    def _gpus(self, variant: str) -> int:
        containers = self.bodies[variant]["spec"]["template"]["spec"]["containers"]
        return int(containers[0]["resources"]["limits"]["nvidia.com/gpu"])

    def _may_go(self, variant: str, node: NodeCapacity) -> bool:
        spec = self.bodies[variant]["spec"]["template"]["spec"]
        (term,) = spec["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]  # fmt: skip
        return all(
            node.labels.get(each["key"]) in each["values"]
            for each in term["matchExpressions"]
            if each["operator"] == "In"
        )
