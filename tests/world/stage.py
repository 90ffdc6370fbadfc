"""The whole world in one object: control plane, nodes, hub, and Shipfitter by its chart.

with Stage() as stage:
    stage.add_gpu_node("l40s-1", "NVIDIA-L40S", 2)
    stage.apply(Path("examples/llama-3.1-8b.yaml"))
    stage.eventually(lambda: stage.ready("llama-8b"))
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from shipfitter.core.gpus import resolve_product
from shipfitter.units import GIB, MIB
from world import nvml
from world.controlplane import Plane, PlaneSettings
from world.controlplane.faults import FaultyServer
from world.groups import GroupController, definition
from world.hub.published import published_names, published_repo
from world.hub.server import Hub
from world.nodes.api import Api, ApiError
from world.nodes.emulator import Emulator
from world.nodes.node import NodeSpec
from world.nodes.programs import Image, Program, ProgramMap
from world.nodes.runtime import Timing

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CHART = ROOT / "charts" / "shipfitter"
NAMESPACE = "shipfitter"
CONTROL_NODE = "control"
OUTSIDE_BYTES = GIB // 4  # what the driver holds of an idle card beyond its reserve
NOT_YET = (404, 429)  # a kind that is new answers 429 until its storage is ready
PATIENCE_SECONDS = 90.0
# Success is seen at once; failure only after the kubelet's own time, for a machine may be slow.
QUICK = Timing(grace_factor=0.05, probe_factor=0.05, patience_factor=20.0, heartbeat_seconds=2.0)
PYTHON_PATH = {"PYTHONPATH": f"{TESTS}{os.pathsep}{ROOT / 'operator'}"}

APPLY = "application/apply-patch+yaml"
PLACES = {
    "/api/v1": ("pods", "services", "configmaps", "events", "secrets"),
    "/apis/apps/v1": ("deployments", "replicasets"),
    "/apis/batch/v1": ("jobs",),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/leaderworkerset.x-k8s.io/v1": ("leaderworkersets",),
    "/apis/shipfitter.dev/v1alpha1": ("modeldeployments",),
}
MADE_BY_STORIES = (
    "modeldeployments", "deployments", "replicasets", "jobs", "pods", "services", "configmaps",
    "poddisruptionbudgets", "calibrations",
)  # fmt: skip
NOT_LABELLED = ("modeldeployments", "pods", "calibrations")
CLUSTER_WIDE = {
    "nodes": "/api/v1",
    "gpunodes": "/apis/shipfitter.dev/v1alpha1",
    "calibrations": "/apis/shipfitter.dev/v1alpha1",
}

SHIPFITTER = Program(argv=(sys.executable, "-m", "shipfitter"), environment=PYTHON_PATH)
ENGINE = Program(
    argv=(sys.executable, "-m", "world.engine", "serve"),
    environment={**PYTHON_PATH, "POD_LISTEN_ADDRESS": "{address}"},
)
VLLM = Program(
    argv=(sys.executable, "-m", "world.engine"),
    environment={**PYTHON_PATH, "POD_LISTEN_ADDRESS": "{address}"},
)
# The image's own Python, for programs that call the engine's command line by its name.
ENGINE_PYTHON = Program(
    argv=(sys.executable,),
    environment={
        **PYTHON_PATH,
        "SHIPFITTER_PYTHON": sys.executable,
        "PATH": f"{TESTS / 'world' / 'engine' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
    },
)
IMAGES: Mapping[str, Image] = {
    "shipfitter/shipfitter": Image(entrypoint=SHIPFITTER),
    "vllm/vllm-openai": Image(entrypoint=ENGINE, commands={"vllm": VLLM, "python3": ENGINE_PYTHON}),
}


class Stage:
    """Everything that runs for one story; leaving it ends it all."""

    def __init__(
        self,
        *,
        values: Mapping[str, Any] | None = None,
        plane: PlaneSettings | None = None,
        say: Callable[[str], None] = lambda line: None,
        install: bool = True,
        images: Mapping[str, Image] | None = None,
        timing: Timing = QUICK,
        faulty: bool = False,
    ) -> None:
        self.values = values or {}
        self.say = say
        self._install = install
        self._plane_settings = plane
        self._images = {**IMAGES, **(images or {})}
        self._timing = timing
        self._faulty = faulty  # pods reach the API server through a proxy that misbehaves as told
        self._folder = tempfile.TemporaryDirectory(prefix="shipfitter-stage-")
        self.folder = Path(self._folder.name)
        self.hub = Hub()
        self.groups: GroupController | None = None

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
        if self._faulty:
            self.faulty = FaultyServer(self.plane.url, self.plane.folder / "certs").start()
        self.emulator = Emulator(
            api=self.api,
            programs=ProgramMap(images=self._images),
            folder=self.folder / "nodes",
            timing=self._timing,
            url_for_pods=self.faulty.url if self._faulty else "",
        )
        self.emulator.start()
        self.emulator.add_node(NodeSpec(name=CONTROL_NODE))
        if self._install:
            self.install()

    def stop(self) -> None:
        if self.groups is not None:
            self.groups.stop()
        for part in ("emulator", "faulty", "plane"):
            if hasattr(self, part):
                getattr(self, part).stop()
        self.hub.stop()
        self._folder.cleanup()

    # --- Shipfitter itself

    def install(self) -> None:
        """The chart, with the real helm, as a user would."""
        self._helm("install", "--create-namespace")
        for kind in ("modeldeployments", "gpunodes", "calibrations"):
            self.eventually(lambda kind=kind: [self.objects(kind)], what=f"{kind} are served")

    def _helm(self, verb: str, *extra: str) -> None:
        values = self.folder / "values.yaml"
        values.write_text(yaml.safe_dump(self.chart_values()))
        options = ("--namespace", NAMESPACE, "--values", values, *extra)
        self.plane.helm(verb, "shipfitter", CHART, *options)

    def chart_values(self) -> dict[str, Any]:
        """What a story changes of the defaults: shorter waits, the local hub, a safe place."""
        base: dict[str, Any] = {
            "hub": {"endpoint": self.hub.endpoint},
            "operator": {
                "settleSeconds": 0.5,
                "nodeSelector": {"kubernetes.io/hostname": CONTROL_NODE},  # GPU nodes go away here
            },
            "agent": {
                "extraEnv": [{"name": "SHIPFITTER_AGENT_POLL_SECONDS", "value": "1"}],
            },
        }
        return _merged(base, self.values)

    def operator_pod(self) -> dict[str, Any]:
        """The operator's pod."""
        (pod,) = (p for p in self._operator_pods() if not p["metadata"].get("deletionTimestamp"))
        return pod

    def _operator_pods(self) -> list[dict[str, Any]]:
        selector = "app.kubernetes.io/component=operator"
        return self.objects("pods", NAMESPACE, selector=selector)

    def upgrade(self, values: Mapping[str, Any]) -> None:
        """`helm upgrade` with other values; the new operator acts when this returns."""
        before = self.operator_pod()["metadata"]["uid"]
        self.values = _merged(self.values, values)
        self._helm("upgrade")
        self.eventually(
            lambda: self.operator_ready(not_uid=before), what="the upgraded operator is ready"
        )

    def operator_ready(self, *, not_uid: str = "") -> bool:
        """Whether an operator (another one than that) leads and has seen everything."""
        pods = self._operator_pods()  # one look: the next may find it going
        return len(pods) == 1 and is_ready(pods[0]) and pods[0]["metadata"]["uid"] != not_uid

    def operator_pid(self) -> int:
        """The operator's process."""
        uid = self.operator_pod()["metadata"]["uid"]
        (pod,) = (pod for pod in self.emulator.pods_on(CONTROL_NODE) if pod.uid == uid)
        return pod.containers[0].pid

    def kill_operator(self) -> None:
        """SIGKILL, as by the kernel; the node starts it again."""
        os.kill(self.operator_pid(), signal.SIGKILL)

    @contextlib.contextmanager
    def operator_away(self) -> Iterator[None]:
        """Nobody operates meanwhile; afterwards a new one is ready."""
        scale = ("scale", "deployment/shipfitter-operator", "-n", NAMESPACE)
        self.plane.kubectl(*scale, "--replicas=0")
        self.eventually(lambda: not self._operator_pods(), what="the operator is gone")
        try:
            yield
        finally:
            self.plane.kubectl(*scale, "--replicas=1")
        self.eventually(self.operator_ready, what="the operator is back")

    def install_groups(self) -> None:
        """LeaderWorkerSet: its definition, and a controller for it."""
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(definition()))
        self.eventually(
            lambda: [self.objects("leaderworkersets")], what="leaderworkersets are served"
        )
        self.groups = GroupController(self.api)
        self.groups.start()

    def remove_groups(self) -> None:
        """As before `install_groups`; its objects go with it."""
        if self.groups is not None:
            self.groups.stop()
            self.groups = None
            self.plane.kubectl("delete", "crd", definition()["metadata"]["name"])

    # --- nodes

    def add_gpu_node(
        self,
        name: str,
        product: str,
        gpus: int,
        *,
        engine: Mapping[str, Any] | Path | None = None,
        labels: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> None:
        """A machine with GPUs: its labels, its driver, and the device its engines find.

        `engine` changes what engines find there (fields of the engine stub's scenario, or a file
        of them that is read at every start), so that it may differ from what the agent reports.
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
            told = str(engine) if isinstance(engine, Path) else json.dumps(dict(engine))
            environment["ENGINE_STUB_SCENARIO"] = told
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

    def remove_node(self, name: str) -> None:
        """The machine is gone for good."""
        self.emulator.remove_node(name)

    def clear(self) -> None:
        """As after the installation: no deployments, no GPU nodes, nothing learnt, the hub well."""
        self.hub.switch()
        for name in set(self.emulator.nodes) - {CONTROL_NODE}:
            self.remove_node(name)
            self.delete("gpunodes", name)
        self.eventually(lambda: not self._left(), what="nothing of the last story is left")

    def _left(self) -> list[dict[str, Any]]:
        """What a story made and is still there, on its way out.

        Not left to the garbage collector: of kinds as new as ours it learns only every 30 s.
        """
        left = []
        for kind in (*MADE_BY_STORIES, *(("leaderworkersets",) if self.groups else ())):
            ours = "" if kind in NOT_LABELLED else "shipfitter.dev/modeldeployment"
            for body in self.objects(kind, selector=ours):
                left.append(body)
                self.delete(kind, body["metadata"]["name"], at_once=True)
        return left

    # --- objects

    def apply(self, source: Path | Mapping[str, Any], namespace: str = "default") -> None:
        """`kubectl apply`, of a file or an object."""
        if isinstance(source, Path):
            self.plane.kubectl("apply", "-n", namespace, "-f", source)
        elif source["kind"] == "ModelDeployment":  # the same without starting a program
            collection = self._collection("modeldeployments", namespace)
            path = f"{collection}/{source['metadata']['name']}?fieldManager=story&force=true"
            self.api.patch(path, source, APPLY)
        else:
            self.plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(source))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """One object."""
        return self.api.get(f"{self._collection(kind, namespace)}/{name}")

    def objects(
        self, kind: str, namespace: str = "default", *, selector: str = ""
    ) -> list[dict[str, Any]]:
        """All objects of a kind."""
        query = {"labelSelector": selector} if selector else {}
        items: list[dict[str, Any]] = self.api.get(self._collection(kind, namespace), **query)[
            "items"
        ]
        return items

    def change(self, name: str, spec: Mapping[str, Any], namespace: str = "default") -> None:
        """A merge patch of a ModelDeployment's spec."""
        path = f"{self._collection('modeldeployment', namespace)}/{name}"
        self.api.patch(path, {"spec": spec})

    def delete(
        self, kind: str, name: str, namespace: str = "default", *, at_once: bool = False
    ) -> None:
        """`kubectl delete` that does not wait; what is gone already is fine."""
        options = {"gracePeriodSeconds": 0} if at_once else None
        with contextlib.suppress(ApiError):
            self.api.delete(f"{self._collection(kind, namespace)}/{name}", options)

    def _collection(self, kind: str, namespace: str) -> str:
        """Where the API keeps a kind; REST, since a poll by kubectl costs 0.1 s of CPU."""
        plural = kind.lower() if kind.endswith("s") else f"{kind.lower()}s"
        for root, plurals in PLACES.items():
            if plural in plurals:
                return f"{root}/namespaces/{namespace}/{plural}"
        return f"{CLUSTER_WIDE[plural]}/{plural}"

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
        answer = _answer(check)
        while not answer:
            assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}\n{self.picture()}"
            time.sleep(0.15)
            answer = _answer(check)
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


def _answer(check: Callable[[], Any]) -> Any:
    """What a check says; of what is not there, or not ready to be asked, nothing is known yet."""
    try:
        return check()
    except ApiError as error:
        if error.status not in NOT_YET:
            raise
        return None


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod serves."""
    conditions = pod.get("status", {}).get("conditions") or ()
    going = "deletionTimestamp" in pod["metadata"]
    return not going and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(below, value) if both else value
    return result
