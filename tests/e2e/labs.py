"""Stories that need no world of their own: each deployment has its nodes, and all run at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from e2e.stories import L40S, LLAMA_8B, model_deployment
from world.stage import Stage

LAB = "lab"  # the node label by which nodes are told apart


@dataclass(frozen=True, kw_only=True, eq=False)
class Lab:
    """One deployment on one node of its own."""

    name: str
    engine: Mapping[str, Any] = field(default_factory=dict)  # how its engines fare
    product: str = L40S
    gpus: int = 1
    uri: str = LLAMA_8B
    spec: Mapping[str, Any] = field(default_factory=dict)

    @property
    def node(self) -> str:
        return f"{self.name}-node"

    def add_node(self, stage: Stage) -> None:
        """Without an agent: what its labels say is enough here, and quicker."""
        labels = {LAB: self.name, "nvidia.com/gpu.present": "unsaid"}
        stage.add_gpu_node(self.node, self.product, self.gpus, engine=self.engine, labels=labels)

    def wish(self) -> dict[str, Any]:
        """The deployment; its arguments are its own, so that no other's engines teach it."""
        spec = {"engine": {"args": [f"--seed={len(self.name)}", f"--chat-template={self.name}"]}}
        placement = {"placement": {"nodeSelector": {LAB: self.name}}}
        return model_deployment(self.name, self.uri, **{**spec, **placement, **self.spec})


def open_all(stage: Stage, labs: Iterable[Lab]) -> None:
    """Everything begins at once."""
    labs = tuple(labs)
    for lab in labs:
        lab.add_node(stage)
    for lab in labs:
        stage.apply(lab.wish())
