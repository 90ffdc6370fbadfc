"""Generated sequences of what befalls a cluster, each on nodes and in a namespace of its own."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from e2e.labs import LAB
from e2e.stories import A100, AT_ONCE, L4, L40S, model_deployment
from world.nodes.api import ApiError
from world.stage import Stage

NAME = "m"  # of the deployment; the namespace tells the sequences apart
MODEL = "hf://Qwen/Qwen3-0.6B"
TYPES = (L4, L40S, A100)
MOST_NODES = 3
KINDS = (
    "join", "join", "leave", "drain", "cordon", "dead GPU", "label loss", "refusal", "kill",
    "edit", "edit", "scale", "scale",
)  # fmt: skip
WEIGHTS_GIB = 1.12  # of the model: what a refusal must leave room for


class Sequence:
    """One seed: a deployment, its nodes, and what happens to them next."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.seed = stage, seed
        self.chance = Random(seed)
        self.place = f"seq-{seed}"
        self.nodes: dict[str, int] = {}  # name → GPUs
        self.cordoned: set[str] = set()
        self.unlabelled: dict[str, str] = {}  # node → its lost product label
        self.replicas = 1
        self.made = 0
        self.story: list[str] = []  # one word for each round
        self.kills = False  # the operator, in this round

    def begin(self) -> None:
        """A node or two, and the wish."""
        self.stage.api.post("/api/v1/namespaces", {"metadata": {"name": self.place}})
        for _ in range(self.chance.choice((1, 2))):
            self._add_node()
        spec = {
            "replicas": self.replicas,
            "resize": AT_ONCE,
            "placement": {"nodeSelector": {LAB: self.place}},
        }
        self.stage.apply(model_deployment(NAME, MODEL, **spec), self.place)

    def happen(self) -> None:
        """One event; what was only for a while ends first."""
        self.kills = False
        for node in tuple(self.cordoned):
            self._cordon(node, False)
        for node, product in self.unlabelled.items():
            self._label(node, product)
        self.unlabelled.clear()
        kind = self.chance.choice(KINDS)
        node = self.chance.choice(sorted(self.nodes)) if self.nodes else ""
        if not node and kind not in ("edit", "scale", "kill"):
            kind = "join"
        if kind == "join" and len(self.nodes) >= MOST_NODES:
            kind = "leave"
        self.story.append(kind)
        _EVENTS[kind](self, node)

    def _add_node(self, _: str = "") -> None:
        self.made += 1
        name, gpus = f"{self.place}-{self.made}", self.chance.choice((1, 1, 2))
        self.nodes[name] = gpus
        self._scenario(name).write_text("{}")
        labels = {LAB: self.place, "nvidia.com/gpu.present": "unsaid"}  # without an agent
        self.stage.add_gpu_node(
            name,
            self.chance.choice(TYPES),
            gpus,
            engine=self._scenario(name),
            labels=labels,
            memory_bytes=64 * 2**30,
        )

    def _scenario(self, node: str) -> Path:
        return self.stage.folder / f"{node}.engine"

    def _leave(self, node: str) -> None:
        del self.nodes[node]
        self.cordoned.discard(node)
        self.stage.remove_node(node)

    def _cordon(self, node: str, now: bool = True) -> None:
        (self.cordoned.add if now else self.cordoned.discard)(node)
        self.stage.emulator.cordon(node, now)

    def _drain(self, node: str) -> None:
        """As kubectl does it: cordoned, then evicted; what a budget protects stays for now."""
        self._cordon(node)
        for pod in self.stage.objects("pods", self.place):
            if pod["spec"].get("nodeName") == node:
                path = f"/api/v1/namespaces/{self.place}/pods/{pod['metadata']['name']}/eviction"
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
                with suppress(ApiError):
                    body = {**eviction, "metadata": {"name": pod["metadata"]["name"]}}
                    self.stage.api.post(path, body)

    def _lose_gpu(self, node: str) -> None:
        self.nodes[node] = max(0, self.nodes[node] - 1)
        self.stage.emulator.nodes[node].set_gpus(self.nodes[node])
        if not self.nodes[node]:
            self._leave(node)

    def _lose_label(self, node: str) -> None:
        path = f"/api/v1/nodes/{node}"
        self.unlabelled[node] = self.stage.api.get(path)["metadata"]["labels"][
            "nvidia.com/gpu.product"
        ]
        self._label(node, None)

    def _label(self, node: str, product: str | None) -> None:
        if node in self.nodes:
            labels = {"metadata": {"labels": {"nvidia.com/gpu.product": product}}}
            self.stage.api.patch(f"/api/v1/nodes/{node}", labels)

    def _refuse(self, node: str) -> None:
        """From the next start on there is less memory than counted on; and a start follows."""
        self._scenario(node).write_text(json.dumps({"free_gib": 0.8 * 22.06}))
        self._edit(node)

    def _kill(self, _: str) -> None:
        self.kills = True

    def _edit(self, _: str) -> None:
        preferred = self.chance.choice((8, 16, 24, 32, 48, 64))
        spec = {"workload": {"maxNumSeqs": {"preferred": preferred}}}
        self.stage.change(NAME, spec, self.place)

    def _scale(self, _: str) -> None:
        self.replicas = self.chance.choice((0, 1, 1, 2))
        self.stage.change(NAME, {"replicas": self.replicas}, self.place)


_EVENTS: dict[str, Callable[[Sequence, str], None]] = {
    "join": Sequence._add_node,
    "leave": Sequence._leave,
    "drain": Sequence._drain,
    "cordon": Sequence._cordon,
    "dead GPU": Sequence._lose_gpu,
    "label loss": Sequence._lose_label,
    "refusal": Sequence._refuse,
    "kill": Sequence._kill,
    "edit": Sequence._edit,
    "scale": Sequence._scale,
}


class Witness:
    """What was seen of every sequence: plans in their order, Ready pods that were taken away."""

    def __init__(self) -> None:
        self.round = 0
        self.changed_at: dict[str, float] = {}
        self.plans: dict[str, list[tuple[int, str]]] = {}  # place → (round, figures)
        self.reasons: dict[str, set[int]] = {}  # place → rounds whose plan names a reason
        self.removed: dict[str, list[tuple[int, str]]] = {}  # place → (round, pod)
        self.attempts: dict[str, int] = {}
        self._ready: dict[str, dict[str, bool]] = {}
        self._wanted: dict[str, int] = {}  # replicas, by place

    def on_deployment(self, kind: str, body: dict[str, Any]) -> None:
        """A new plan is another decision; figures tell plans apart."""
        place, status = body["metadata"]["namespace"], body.get("status") or {}
        self.changed_at[place] = monotonic()
        plan = status.get("plan")
        self._wanted[place] = body.get("spec", {}).get("replicas", 1)
        attempts = (status.get("recovery") or {}).get("attempts", 0)
        self.attempts[place] = max(attempts, self.attempts.get(place, 0))
        if kind == "DELETED" or not plan:
            return
        seen = self.plans.setdefault(place, [])
        if not seen or seen[-1][1] != figures(plan):
            seen.append((self.round, figures(plan)))
            if len(seen) > 1 and plan.get("reason"):
                self.reasons.setdefault(place, set()).add(self.round)

    def on_pod(self, kind: str, body: dict[str, Any]) -> None:
        """A pod that was Ready and is told to go, with nobody Ready beside it."""
        metadata = body["metadata"]
        place, name = metadata["namespace"], metadata["name"]
        self.changed_at[place] = monotonic()
        pods = self._ready.setdefault(place, {})
        going = kind == "DELETED" or "deletionTimestamp" in metadata
        last = going and pods.pop(name, False) and not any(pods.values())
        if last and self._wanted.get(place, 1):  # with none wanted the last one goes, too
            self.removed.setdefault(place, []).append((self.round, name))
        if not going:
            conditions = body.get("status", {}).get("conditions") or ()
            pods[name] = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def rests(self, place: str, seconds: float) -> bool:
        """Whether nothing happened for so long."""
        return monotonic() - self.changed_at.get(place, 0.0) > seconds

    def alternations(self, place: str) -> int:
        """How often, within one round, a plan came back that had been left in that round."""
        back, rounds = 0, {}
        for number, plan in self.plans.get(place, []):
            seen = rounds.setdefault(number, [])
            back += plan in seen
            seen.append(plan)
        return back


def figures(plan: dict[str, Any]) -> str:
    """What a plan decides, in short."""
    keys = ("gpuProduct", "gpusPerReplica", "maxModelLen", "maxNumSeqs", "gpuMemoryUtilization")
    return " + ".join(" ".join(str(v[key]) for key in keys) for v in plan["variants"])
