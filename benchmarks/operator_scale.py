"""How the operator fares in a large cluster: a real control plane, emulated nodes, no pods run.

    python benchmarks/operator_scale.py --nodes 1000 --deployments 200

Prints one line for each measurement. Needs the control plane's programs (`make bin`).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from world.controlplane import Plane

GROUP = "/apis/shipfitter.dev/v1alpha1"
DEPLOYMENTS = f"{GROUP}/namespaces/default/modeldeployments"
PORT = 18_099
GPUS = 8
L40S_BYTES = 48_305_799_168
CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 32768,
}


def node(name: str) -> dict[str, Any]:
    amounts = {
        "cpu": "128",
        "memory": "1Ti",
        "ephemeral-storage": "4Ti",
        "pods": "110",
        "nvidia.com/gpu": str(GPUS),
    }
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.product": "NVIDIA-L40S",
        "nvidia.com/gpu.count": str(GPUS),
        "nvidia.com/gpu.memory": "46068",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": NODE_INFO,
        },
    }


NODE_INFO = {
    "bootID": "b",
    "architecture": "amd64",
    "operatingSystem": "linux",
    "kernelVersion": "6.8",
    "osImage": "linux",
    "containerRuntimeVersion": "containerd://2",
    "kubeletVersion": "v1.36.0",
    "kubeProxyVersion": "",
    "machineID": "m",
    "systemUUID": "s",
}


def gpu_node(name: str) -> dict[str, Any]:
    memory = {"kind": "dedicated", "totalBytes": L40S_BYTES, "reservedBytes": 650_000_000}
    gpus = [
        {
            "uuid": f"GPU-{name}-{number}",
            "product": "NVIDIA-L40S",
            "computeCapability": "8.9",
            "memory": memory,
            "health": {"state": "Healthy"},
        }
        for number in range(GPUS)
    ]
    observed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"observedAt": observed, "bootId": "b", "driver": {"version": "590.1"}, "gpus": gpus}


def model_deployment(name: str) -> dict[str, Any]:
    model = {
        "uri": "hf://Qwen/Qwen2.5-0.5B-Instruct",
        "facts": {"config": CONFIG, "weightsBytes": 988_097_824},
    }
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"model": model},
    }


class Operator:
    """The operator as a process of its own."""

    def __init__(self, plane: Plane, log: Path) -> None:
        self.log = log
        environment = {
            **os.environ,
            "KUBECONFIG": str(plane.kubeconfig),
            "SHIPFITTER_HEALTH_HOST": "127.0.0.1",
            "SHIPFITTER_HEALTH_PORT": str(PORT),
            "POD_NAME": "benchmark",
        }
        with log.open("ab") as stderr:
            command = [sys.executable, "-m", "shipfitter", "operator"]
            self.process = subprocess.Popen(command, env=environment, stderr=stderr)

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz") as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def memory_mib(self, field: str = "VmRSS") -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) // 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> float:
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(30)
        return time.monotonic() - began


def wait(check: Callable[[], object], *, within_seconds: float) -> float:
    began = time.monotonic()
    while not check():
        if time.monotonic() - began > within_seconds:
            raise SystemExit(f"not in {within_seconds:.0f} s")
        time.sleep(0.1)
    return time.monotonic() - began


def decided(plane: Plane) -> int:
    items = plane.request("GET", DEPLOYMENTS)["items"]
    return sum(
        any(each["type"] == "Planned" for each in (item.get("status") or {}).get("conditions", ()))
        for item in items
    )


def create(plane: Plane, names: Iterable[str]) -> None:
    def one(name: str) -> None:
        plane.request("POST", "/api/v1/nodes", node(name))
        body = {
            "apiVersion": "shipfitter.dev/v1alpha1",
            "kind": "GPUNode",
            "metadata": {"name": name},
        }
        made = plane.request("POST", f"{GROUP}/gpunodes", body)
        made["status"] = gpu_node(name)
        plane.request("PUT", f"{GROUP}/gpunodes/{name}/status", made)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, names))


def measure(plane: Plane, log: Path, nodes: int, deployments: int) -> None:
    for crd in sorted((ROOT / "crds").glob("*.yaml")):
        plane.kubectl("apply", "--server-side", "-f", crd)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    create(plane, (f"gpu-{number:04}" for number in range(nodes)))
    operator = Operator(plane, log)
    try:
        seconds = wait(operator.ready, within_seconds=120)
        print(
            f"{nodes} nodes: ready after {seconds:.1f} s, {operator.memory_mib()} MiB", flush=True
        )
        for number in range(deployments):
            plane.request("POST", DEPLOYMENTS, model_deployment(f"m{number:03}"))
        seconds = wait(lambda: decided(plane) == deployments, within_seconds=600)
        print(f"{deployments} deployments: decided {seconds:.1f} s after the last was created")
        at_rest(operator)
        plane.request("POST", DEPLOYMENTS, model_deployment("one-more"))
        seconds = wait(lambda: decided(plane) == deployments + 1, within_seconds=60)
        print(f"one more: decided after {seconds:.2f} s")
        at_rest(operator)
        before = operator.cpu_seconds()
        create(plane, ["another-node"])
        time.sleep(15)
        at_rest(operator)
        print(f"a new node: {operator.cpu_seconds() - before:.1f} s of CPU to look at every plan")
        print(f"memory: {operator.memory_mib()} MiB, at most {operator.memory_mib('VmHWM')} MiB")
    finally:
        print(f"stopped in {operator.stop():.1f} s")
    again = Operator(plane, log)
    try:
        print(f"started anew: ready after {wait(again.ready, within_seconds=120):.1f} s")
        at_rest(again)
        print(f"{again.cpu_seconds():.1f} s of CPU until at rest, {again.memory_mib()} MiB")
    finally:
        again.stop()


def at_rest(operator: Operator) -> None:
    """Wait until it uses less than 5 % of a processor for 5 s, and say how long that took."""
    began, calm = time.monotonic(), 0
    while calm < 5:
        before = operator.cpu_seconds()
        time.sleep(1.0)
        calm = calm + 1 if operator.cpu_seconds() - before < 0.05 else 0
        if time.monotonic() - began > 300:
            print("  never comes to rest")
            return
    print(f"  at rest {time.monotonic() - began - 5:.0f} s later", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--deployments", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Plane() as plane:
        log = Path(folder) / "operator.log"
        try:
            measure(plane, log, arguments.nodes, arguments.deployments)
        except BaseException:
            print(log.read_text()[-4000:], file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
