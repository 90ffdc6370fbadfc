"""Worlds for `decide`: name only what a test is about."""

from collections.abc import Mapping
from typing import Any

from builders_plan import LLAMA_8B, facts
from shipfitter.core.inventory import NodeCapacity
from shipfitter.decide import LivePod, LiveWorkload, Outcome, Settings, World, decide
from shipfitter.status.conditions import find

NOW = 1_800_000_000.0


def mdl(
    name: str = "llama", *, status: Mapping[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A ModelDeployment's body."""
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": "default", "uid": "u-1", "generation": 1},
        "spec": {"model": {"uri": f"hf://{LLAMA_8B}"}, **spec},
        **({"status": status} if status else {}),
    }


def world(*nodes: NodeCapacity, models: Mapping[str, Any] | None = None, **changes: Any) -> World:
    """What one decision sees."""
    known = {f"hf://{LLAMA_8B}": facts(LLAMA_8B)} if models is None else models
    values: dict[str, Any] = {"now_seconds": NOW, "settings": Settings(settle_seconds=10)}
    return World(nodes=nodes, models=known, **{**values, **changes})


def condition(outcome: Outcome, kind: str) -> Mapping[str, Any]:
    """A condition of the wanted status."""
    assert outcome.status is not None
    return find(outcome.status["conditions"], kind) or {}


def manifests(outcome: Outcome, kind: str, manager: str = "shipfitter") -> list[Mapping[str, Any]]:
    """What is applied of a kind."""
    return [
        a.manifest for a in outcome.applies if a.manifest["kind"] == kind and a.manager == manager
    ]


def as_live(manifest: Mapping[str, Any], *, replicas: int = 1) -> LiveWorkload:
    """An applied Deployment as the API server has it."""
    spec = {"replicas": replicas, **manifest["spec"]}
    body = {**manifest, "spec": spec}
    body["metadata"] = {**manifest["metadata"], "uid": f"uid-{manifest['metadata']['name']}"}
    return LiveWorkload(name=manifest["metadata"]["name"], body=body)


def serving(variant: str, node: str, *, gpus: int = 1, number: int = 0, **changes: Any) -> LivePod:
    """A Ready pod."""
    values: dict[str, Any] = {"ready": True, "phase": "Running", "node": node, "gpus": gpus}
    return LivePod(name=f"{variant}-{number}", variant=variant, **{**values, **changes})


class Settled:
    """A deployment that was applied and serves."""

    def __init__(self, *nodes: NodeCapacity, **spec: Any) -> None:
        self.first = decide(mdl(**spec), world(*nodes))
        (deployment,) = manifests(self.first, "Deployment")
        replicas = int(spec.get("replicas", 1))
        self.variant = str(deployment["metadata"]["name"])
        self.workload = as_live(deployment, replicas=replicas)
        self.pods = tuple(
            serving(self.variant, nodes[0].name, number=n, gpus=self.gpus) for n in range(replicas)
        )
        again = decide(mdl(status=self.first.status, **spec), self.world(*nodes))
        self.status = again.status
        self.spec = spec

    @property
    def gpus(self) -> int:
        assert self.first.status is not None
        return int(self.first.status["plan"]["variants"][0]["gpusPerReplica"])

    def world(self, *nodes: NodeCapacity, **changes: Any) -> World:
        values: dict[str, Any] = {"workloads": (self.workload,), "pods": self.pods}
        return world(*nodes, **{**values, **changes})

    def decide(
        self, *nodes: NodeCapacity, spec: Mapping[str, Any] | None = None, **changes: Any
    ) -> Outcome:
        body = mdl(status=self.status, **{**self.spec, **(spec or {})})
        return decide(body, self.world(*nodes, **changes))

    def after(self, seconds: float, *nodes: NodeCapacity, **changes: Any) -> Outcome:
        """The decision once what is seen now has lasted."""
        self.status = self.decide(*nodes, **changes).status
        return self.decide(*nodes, now_seconds=NOW + seconds, **changes)
