"""The ground operators run on: a control plane, our three kinds, a hub, and nodes made of paper.

Nobody runs pods there: what is measured ends when a workload is written.
"""

import http.client
import json
import os
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from processes import shipfitter

from shipfitter.core.gpus import resolve_product
from shipfitter.units import MIB
from world import nvml
from world.controlplane import Plane, PlaneSettings
from world.hub.published import published_repo
from world.hub.server import Hub

ROOT = Path(__file__).resolve().parents[1]
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
WRITERS = 4
QUIET_SECONDS, QUIET_WRITES = 4.0, 10
# No kubelet renews what paper nodes say of themselves.
PATIENT = PlaneSettings(controller_manager_args=("--node-monitor-grace-period=2h",))
NODES, GPU_NODES = "/api/v1/nodes", "/apis/shipfitter.dev/v1alpha1/gpunodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Everything an operator needs to start."""

    plane: Plane
    hub: Hub
    folder: Path

    def environment(self, health_port: int) -> dict[str, str]:
        return {
            "KUBECONFIG": str(self.plane.kubeconfig),
            "HF_ENDPOINT": self.hub.endpoint,
            "POD_NAMESPACE": "default",
            "SHIPFITTER_HEALTH_HOST": "127.0.0.1",
            "SHIPFITTER_HEALTH_PORT": str(health_port),
            "SHIPFITTER_SETTLE_SECONDS": "1",
        }


@contextmanager
def ground() -> Iterator[Ground]:
    """A fresh one; nothing of it is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="shipfitter-bench-") as name, Plane(PATIENT) as plane:
        plane.kubectl("apply", "--server-side", "-f", ROOT / "crds")
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        hub = Hub(published_repo(MODEL)).start()
        try:
            yield Ground(plane=plane, hub=hub, folder=Path(name))
        finally:
            hub.stop()


class Writer:
    """One kept connection: thousands of objects want no handshake each."""

    def __init__(self, plane: Plane) -> None:
        target = urlsplit(plane.url)
        self._connection = http.client.HTTPSConnection(
            str(target.hostname),
            target.port,
            context=ssl.create_default_context(cafile=str(plane.ca)),
        )
        self._headers = {
            "Authorization": f"Bearer {plane.token}",
            "Content-Type": "application/json",
        }

    def write(self, method: str, path: str, body: Any) -> Any:
        self._connection.request(method, path, json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        content = json.loads(answer.read())
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content.get('message')}")
        return content

    def close(self) -> None:
        self._connection.close()


def add_nodes(ground: Ground, products: Sequence[str], count: int, *, gpus: int = 8) -> None:
    """Nodes of these products in turn, each with what an agent wrote about it."""
    seen = {product: _seen_by_an_agent(ground, product, gpus) for product in set(products)}

    def write(numbers: range) -> None:
        writer = Writer(ground.plane)
        for number in numbers:
            product = products[number % len(products)]
            _write_node(writer, f"gpu-{number:04}", product, gpus, seen[product])
        writer.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, (range(first, count, WRITERS) for first in range(WRITERS))))


def wait_until_quiet(plane: Plane) -> None:
    """Kubernetes' own controllers have written what they write about new nodes."""
    taints = "jsonpath={.items[*].spec.taints}"
    while plane.kubectl("get", "nodes", "-o", taints).strip():
        time.sleep(QUIET_SECONDS)
    before, now = _revision(plane), -1
    while now - before > QUIET_WRITES or now < 0:
        before = max(before, now)
        time.sleep(QUIET_SECONDS)
        now = _revision(plane)


def _revision(plane: Plane) -> int:
    """Counts all writes."""
    return int(plane.request("GET", f"{NODES}?limit=1")["metadata"]["resourceVersion"])


def _write_node(writer: Writer, name: str, product: str, gpus: int, status: dict[str, Any]) -> None:
    node = writer.write("POST", NODES, paper_node(name, product, gpus, status["bootId"]))
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    made = {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "GPUNode",
        "metadata": {"name": name, "ownerReferences": [owner]},
    }
    made = writer.write("POST", GPU_NODES, made)
    own = [{**gpu, "uuid": f"{gpu['uuid']}-{name}"} for gpu in status["gpus"]]
    writer.write("PUT", f"{GPU_NODES}/{name}/status", {**made, "status": {**status, "gpus": own}})


def paper_node(name: str, product: str, gpus: int, boot_id: str) -> dict[str, Any]:
    """A Node as long as real ones are, with labels of gpu-feature-discovery."""
    row = resolve_product(product)
    assert row is not None
    resources = {
        "cpu": "128",
        "memory": "1Ti",
        "ephemeral-storage": "2Ti",
        "pods": "110",
        "nvidia.com/gpu": str(gpus),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": row.product,
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": str(row.nvml_total_bytes // MIB),
                **{f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{n}": "true" for n in range(40)},
            },
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"bootID": boot_id},
            "images": [
                {"names": [f"registry.example.com/{name}/{n}@sha256:{n:064}"], "sizeBytes": 2**30}
                for n in range(50)
            ],
        },
    }


def _seen_by_an_agent(ground: Ground, product: str, gpus: int) -> dict[str, Any]:
    scenario = nvml.scenario(product, gpus, path=ground.folder / f"{product}.scenario")
    done = subprocess.run(
        shipfitter("agent", "--once", "-o", "json"),
        env=agent_environment(scenario),
        check=True,
        capture_output=True,
        text=True,
    )
    status: dict[str, Any] = json.loads(done.stdout)["status"]
    return status


def agent_environment(scenario: Path) -> dict[str, str]:
    """A machine with the driver of the scenario."""
    return {**os.environ, **nvml.environment(scenario), "NODE_NAME": "gpu-0000"}
