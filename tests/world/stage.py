"""The whole world in one object: control plane, nodes, hub, and Shipfitter installed with its chart.

with Stage() as stage:
    stage.add_gpu_node("l40s-1", "NVIDIA-L40S", 2)
    stage.apply(Path("examples/llama-3.1-8b.yaml"))
    stage.eventually(lambda: stage.ready("llama-8b"))
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from world import nvml
from world.controlplane import Plane, PlaneSettings
from world.hub.published import published_names, published_repo
from world.hub.server import Hub
from world.nodes.api import Api
from world.nodes.emulator import Emulator
from world.nodes.node import NodeSpec
from world.nodes.programs import Image, Program, ProgramMap
from world.nodes.runtime import Timing

from shipfitter.core.gpus import resolve_product
from shipfitter.units import GIB, MIB

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CHART = ROOT / "charts" / "shipfitter"
NAMESPACE = "shipfitter"
CONTROL_NODE = "control"
OUTSIDE_BYTES = GIB // 4  # what the driver holds of an idle card beyond its reserve
PATIENCE_SECONDS = 90.0
PYTHON_PATH = {"PYTHONPATH": f"{TESTS}{os.pathsep}{ROOT / 'operator'}"}

SHIPFITTER = Program(argv=(sys.executable, "-m", "shipfitter"), environment=PYTHON_PATH)
ENGINE = Program(
    argv=(sys.executable, "-m", "world.engine", "serve"),
    environment={**PYTHON_PATH, "POD_LISTEN_ADDRESS": "{address}"},
)
VLLM = Program(
    argv=(sys.executable, "-m", "world.engine"),
    environment={**PYTHON_PATH, "POD_LISTEN_ADDRESS": "{address}"},
)


class Stage:
    """Everything that runs for one story; leaving it ends it all."""

    def __init__(
        self,
        *,
        values: Mapping[str, Any] | None = None,
        plane: PlaneSettings | None = None,
        say: Callable[[str], None] = lambda line: None,
        install: bool = True,
    ) -> None:
        self.values = values or {}
        self.say = say
        self._install = install
        self._plane_settings = plane
        self._folder = tempfile.TemporaryDirectory(prefix="shipfitter-stage-")
        self.folder = Path(self._folder.name)
        self.hub = Hub()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        for name in published_names():
            self.hub.add(published_repo(name))
        self.hub.start()
        self.plane = Plane(self._plane_settings).start()
        self.say(f"control plane ready at {self.plane.url}")
        self.api = Api(self.plane.url, self.plane.ca, self.plane.token)
        images = {
            "shipfitter/shipfitter": Image(entrypoint=SHIPFITTER),
            "vllm/vllm-openai": Image(entrypoint=ENGINE, commands={"vllm": VLLM}),
        }
        self.emulator = Emulator(
            api=self.api,
            programs=ProgramMap(images=images),
            folder=self.folder / "nodes",
            timing=Timing(grace_factor=0.05, probe_factor=0.1),
        )
        self.emulator.start()
        self.emulator.add_node(NodeSpec(name=CONTROL_NODE))
        if self._install:
            self.install()

    def stop(self) -> None:
        for part in ("emulator", "plane"):
            if hasattr(self, part):
                getattr(self, part).stop()
        self.hub.stop()
        self._folder.cleanup()

    # --- Shipfitter itself

    def install(self) -> None:
        """The chart, with the real helm, as a user would."""
        values = self.folder / "values.yaml"
        values.write_text(yaml.safe_dump(self.chart_values()))
        self.plane.helm(
            "install", "shipfitter", CHART, "--namespace", NAMESPACE, "--create-namespace",
            "--values", values,
        )  # fmt: skip

    def chart_values(self) -> dict[str, Any]:
        """What a story changes of the chart's defaults: shorter waits, the local hub."""
        base: dict[str, Any] = {
            "hub": {"endpoint": self.hub.endpoint},
            "operator": {"settleSeconds": 1},
            "agent": {
                "extraEnv": [{"name": "SHIPFITTER_AGENT_POLL_SECONDS", "value": "1"}],
            },
        }
        return _merged(base, self.values)

    def operator_pod(self) -> dict[str, Any]:
        """The operator's pod."""
        (pod,) = [
            pod
            for pod in self.objects("pods", NAMESPACE, selector="app.kubernetes.io/component=operator")
            if not pod["metadata"].get("deletionTimestamp")
        ]
        return pod

    # --- nodes

    def add_gpu_node(
        self,
        name: str,
        product: str,
        gpus: int,
        *,
        engine: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> None:
        """A machine with GPUs: its labels, its driver, and the device its engines find.

        `engine` changes what engines find there (fields of the engine stub's scenario), so that it
        may differ from what the agent reports.
        """
        row = resolve_product(product)
        assert row is not None, product
        scenario = nvml.scenario(
            row.product, gpus, path=self.folder / f"{name}.scenario", node=name
        )
        device = {
            "name": row.product,
            "total_bytes": row.cuda_total_bytes,
            "free_bytes": row.cuda_total_bytes - OUTSIDE_BYTES,
            "nominal_bytes": row.nvml_total_bytes,
            "compute_capability": ".".join(map(str, row.compute_capability)),
            "count": gpus,
        }
        environment = {**nvml.environment(scenario), "ENGINE_STUB_DEVICE": json.dumps(device)}
        if engine:
            environment["ENGINE_STUB_SCENARIO"] = json.dumps(dict(engine))
        spec = NodeSpec(
            name=name,
            labels={
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": row.product,
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": str(row.nvml_total_bytes // MIB),
                **(labels or {}),
            },
            gpus=gpus,
            gpu_uuids=nvml.gpu_uuids(scenario),
            environment=environment,
            **changes,
        )
        self.emulator.add_node(spec)

    # --- objects

    def apply(self, source: Path | Mapping[str, Any], namespace: str = "default") -> None:
        """`kubectl apply`, of a file or an object."""
        if isinstance(source, Path):
            self.plane.kubectl("apply", "-n", namespace, "-f", source)
        else:
            self.plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(source))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """One object."""
        found: dict[str, Any] = json.loads(
            self.plane.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        )
        return found

    def objects(
        self, kind: str, namespace: str = "default", *, selector: str = ""
    ) -> list[dict[str, Any]]:
        """All objects of a kind."""
        args = ["get", kind, "-n", namespace, "-o", "json"]
        text = self.plane.kubectl(*args, *(["-l", selector] if selector else []))
        items: list[dict[str, Any]] = json.loads(text)["items"]
        return items

    def status(self, name: str) -> dict[str, Any]:
        """The status of a ModelDeployment; empty before the first one is written."""
        status: dict[str, Any] = self.get("modeldeployment", name).get("status") or {}
        return status

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """One condition of a ModelDeployment; empty before it is written."""
        conditions = self.status(name).get("conditions") or []
        return next((c for c in conditions if c["type"] == kind), {})

    def ready(self, name: str) -> bool:
        """Whether all replicas serve."""
        return self.condition(name, "Ready").get("status") == "True"

    def pods(self, name: str) -> list[dict[str, Any]]:
        """The engine pods of a ModelDeployment."""
        return self.objects("pods", selector=f"shipfitter.dev/modeldeployment={name}")

    def eventually(
        self, check: Callable[[], Any], *, what: str = "", seconds: float = PATIENCE_SECONDS
    ) -> Any:
        """The first true answer of a check; AssertionError with the state of things after that."""
        end = time.monotonic() + seconds
        answer = check()
        while not answer:
            assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}\n{self.picture()}"
            time.sleep(0.2)
            answer = check()
        return answer

    def picture(self) -> str:
        """What a person would look at first."""
        kubectl = self.plane.kubectl
        parts = [
            kubectl("get", "mdl,deployments,pods", "-A", "-o", "wide"),
            kubectl("get", "gpunodes"),
            kubectl("get", "mdl", "-A", "-o", "jsonpath={.items[*].status.conditions}"),
            self.operator_log(),
        ]
        return "\n".join(parts)

    def operator_log(self, lines: int = 40) -> str:
        """The end of what the operator said."""
        try:
            return self.plane.kubectl(
                "logs", "-n", NAMESPACE, "deployment/shipfitter-operator", f"--tail={lines}"
            )
        except Exception as error:
            return str(error)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(below, value) if both else value
    return result
