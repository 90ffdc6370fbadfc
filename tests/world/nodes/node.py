"""A Node as the API shows it: registered, reported Ready, and renewed by its Lease."""

import contextlib
import datetime
import logging
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from world.nodes.api import STRATEGIC, WEATHER, Api, ApiError
from world.nodes.devices import DevicePool, device_uuids
from world.nodes.status import stamp

LOG = logging.getLogger("world.nodes")
GIB = 1024**3
ADDRESS = "127.0.0.1"  # for nodes, unlike endpoints, the API server accepts a loopback address
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_SECONDS = 40  # Source: the kubelet's default nodeLeaseDurationSeconds
POD_RESOURCES_FOLDER = "/var/lib/kubelet/pod-resources"
KUBELET_VERSION = "v1.36.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A machine to pretend."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    gpu_resource: str = "nvidia.com/gpu"
    gpu_uuids: tuple[
        str, ...
    ] = ()  # as the NVML scenario names them; absent: made up, always the same
    devices: Mapping[str, int] = field(
        default_factory=dict
    )  # further resources: MIG profiles and the like
    cpu: str = "64"
    memory_bytes: int = 512 * GIB
    ephemeral_storage_bytes: int = 2048 * GIB
    architecture: str = "amd64"
    taints: tuple[Mapping[str, str], ...] = ()  # {key, value, effect}
    environment: Mapping[str, str] = field(default_factory=dict)  # for every pod on it
    host_paths: Mapping[str, str] = field(default_factory=dict)  # hostPath → local folder or file
    pod_resources: bool = False  # the kubelet's socket that tells which devices pods hold
    gpu_islands: tuple[
        tuple[int, ...], ...
    ] = ()  # indices that NVLink joins: a pod gets its GPUs of one where that is free


class Node:
    """One registered node; `silent` is a machine that no longer reaches the API server."""

    def __init__(self, api: Api, spec: NodeSpec, *, kubelet_port: int, folder: Path) -> None:
        self.api, self.spec, self.folder = api, spec, folder
        self.name = spec.name
        self.silent = threading.Event()
        self.uid = ""
        self._ready: tuple[str, str, str] = (
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        )
        self._ready_since_seconds = time.time()
        self._port = kubelet_port
        self._boot_id = str(uuid.uuid4())
        gpus = spec.gpu_uuids or device_uuids(spec.name, spec.gpu_resource, spec.gpus)
        others = {r: device_uuids(spec.name, r, count) for r, count in spec.devices.items()}
        self.devices = DevicePool(
            {**({spec.gpu_resource: gpus} if gpus else {}), **others},
            together=[tuple(gpus[place] for place in island) for island in spec.gpu_islands],
        )
        self._socket = self._pod_resources() if spec.pod_resources else None

    @property
    def path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    def allocatable(self) -> dict[str, str]:
        """What the scheduler may give away; `pods` absent would mean none."""
        return {
            "cpu": self.spec.cpu,
            "memory": str(self.spec.memory_bytes),
            "ephemeral-storage": str(self.spec.ephemeral_storage_bytes),
            "pods": "110",
            **self.devices.counts(),
        }

    def register(self) -> None:
        """Create or adopt the Node, report its status, take its Lease."""
        self.folder.mkdir(parents=True, exist_ok=True)
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": self.spec.architecture,
            **self.spec.labels,
        }
        metadata = {"name": self.name, "labels": labels, "annotations": dict(self.spec.annotations)}
        taints = [dict(taint) for taint in self.spec.taints]
        body = {"metadata": metadata, "spec": {"taints": taints} if taints else {}}
        try:
            self.uid = self.api.post("/api/v1/nodes", body)["metadata"]["uid"]
        except ApiError as error:
            if error.status != 409:
                raise
            self.uid = self.api.patch(self.path, body, STRATEGIC)["metadata"]["uid"]
        self.report()
        self.renew()

    def report(self) -> None:
        """Write the node's status: sizes, conditions, addresses."""
        if self.silent.is_set():
            return
        sizes = self.allocatable()
        status = {
            "capacity": sizes,
            "allocatable": sizes,
            "conditions": self._conditions(),
            # No Hostname beside it: the API server would prefer that, and it does not resolve.
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "nodeInfo": {
                "bootID": self._boot_id,
                "machineID": uuid.uuid5(uuid.NAMESPACE_DNS, self.name).hex,
                "systemUUID": str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name)),
                "kernelVersion": "6.12.0",
                "osImage": "local processes",
                "containerRuntimeVersion": "process://1.0.0",
                "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": self.spec.architecture,
            },
        }
        self.api.patch(f"{self.path}/status", {"status": status}, STRATEGIC)

    def renew(self) -> None:
        """Renew the Lease by which the node life-cycle controller knows that the node lives."""
        if self.silent.is_set():
            return
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        }
        try:
            self.api.patch(f"{LEASES}/{self.name}", {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            owner = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self.uid}
            metadata = {
                "name": self.name,
                "namespace": "kube-node-lease",
                "ownerReferences": [owner],
            }
            self.api.post(LEASES, {"metadata": metadata, "spec": spec})

    def beat(self, *, report: bool) -> None:
        """One heartbeat; an API server that is away does not end the next one."""
        try:
            self.renew()
            if report:
                self.report()
        except (ApiError, *WEATHER) as error:
            LOG.warning("node %s: no heartbeat: %s", self.name, error)

    def set_ready(self, ready: bool) -> None:
        """Report the machine itself as in or out of order; it goes on reporting."""
        self._ready = (
            ("True", "KubeletReady", "kubelet is posting ready status")
            if ready
            else ("False", "KubeletNotReady", "container runtime is down")
        )
        self._ready_since_seconds = time.time()
        self.report()

    def set_gpus(self, count: int, uuids: tuple[str, ...] = ()) -> None:
        """Change the number of GPUs; those in use stay with their pods."""
        resource = self.spec.gpu_resource
        self.devices.replace(resource, uuids or device_uuids(self.name, resource, count))
        self.report()

    def reboot(self) -> None:
        """A new boot id, as after a restart of the machine."""
        self._boot_id = str(uuid.uuid4())
        self.report()

    def close(self) -> None:
        """The kubelet ends."""
        if self._socket:
            self._socket.stop()

    def _pod_resources(self) -> Any:
        from world.nodes.podresources import Container, HoldingPod, Socket

        def held() -> list[HoldingPod]:
            return [
                HoldingPod(name=pod, containers=(Container(devices=devices),))
                for pod, devices in self.devices.by_holder().items()
            ]

        socket = Socket(held, self.devices.all)
        mounts = {**self.spec.host_paths, POD_RESOURCES_FOLDER: str(socket.folder)}
        self.spec = replace(self.spec, host_paths=mounts)
        return socket

    def delete(self) -> None:
        """Delete the Node and its Lease."""
        for path in (self.path, f"{LEASES}/{self.name}"):
            with contextlib.suppress(ApiError):
                self.api.delete(path)

    def _conditions(self) -> list[dict[str, Any]]:
        now, since = stamp(time.time()), stamp(self._ready_since_seconds)
        times = {"lastHeartbeatTime": now, "lastTransitionTime": since}
        status, reason, message = self._ready
        fine = [
            {"type": kind, "status": "False", "reason": "Kubelet" + word, "message": "", **times}
            for kind, word in (
                ("MemoryPressure", "HasSufficientMemory"),
                ("DiskPressure", "HasNoDiskPressure"),
                ("PIDPressure", "HasSufficientPID"),
            )
        ]
        return [
            *fine,
            {"type": "Ready", "status": status, "reason": reason, "message": message, **times},
        ]
