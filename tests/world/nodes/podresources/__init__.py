"""The kubelet's PodResources socket: a real gRPC server of the kubelet's own proto."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

PROTO = "world/nodes/podresources/api.proto"  # on the search path of modules
NAME = "kubelet.sock"
_WAIT_SECONDS = 1.0

messages, services = grpc.protos_and_services(PROTO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What one container of a pod holds: device names by resource, and devices of claims."""

    name: str = "engine"
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    claimed: tuple[tuple[str, str, str], ...] = ()  # driver, pool, device


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingPod:
    """A pod as the kubelet lists it."""

    name: str
    namespace: str = "default"
    containers: tuple[Container, ...] = ()


class Socket:
    """Serves what the two callables say now, in a folder of its own with a short name."""

    def __init__(
        self,
        held: Callable[[], list[HoldingPod]],
        offered: Callable[[], Mapping[str, tuple[str, ...]]],
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kubelet-"))
        self._held, self._offered = held, offered
        self._server = grpc.server(ThreadPoolExecutor(max_workers=2))
        services.add_PodResourcesListerServicer_to_server(_Lister(held, offered), self._server)
        self._server.add_insecure_port(f"unix:{self.folder / NAME}")
        self._server.start()

    @property
    def path(self) -> Path:
        """Where it listens."""
        return self.folder / NAME

    def stop(self) -> None:
        """End it and remove the folder."""
        self._server.stop(grace=None).wait(_WAIT_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


class _Lister(services.PodResourcesListerServicer):
    def __init__(self, held: Callable[[], Any], offered: Callable[[], Any]) -> None:
        self._held, self._offered = held, offered

    def List(self, request: Any, context: Any) -> Any:  # noqa: N802
        return messages.ListPodResourcesResponse(pod_resources=[_pod(p) for p in self._held()])

    def GetAllocatableResources(self, request: Any, context: Any) -> Any:  # noqa: N802
        return messages.AllocatableResourcesResponse(
            devices=_devices(self._offered()), cpu_ids=range(os.cpu_count() or 1)
        )


def _pod(pod: HoldingPod) -> Any:
    return messages.PodResources(
        name=pod.name,
        namespace=pod.namespace,
        containers=[
            messages.ContainerResources(
                name=each.name,
                devices=_devices(each.devices),
                cpu_ids=[0, 300],
                memory=[messages.ContainerMemory(memory_type="memory", size=2**40)],
                dynamic_resources=[
                    messages.DynamicResource(
                        claim_name=f"{pod.name}-gpu",
                        claim_namespace=pod.namespace,
                        claim_resources=[
                            messages.ClaimResource(
                                cdi_devices=[
                                    messages.CDIDevice(name=f"k8s.{driver}/claim=x-{device}")
                                ],
                                driver_name=driver,
                                pool_name=pool,
                                device_name=device,
                            )
                        ],
                    )
                    for driver, pool, device in each.claimed
                ],
            )
            for each in pod.containers
        ],
    )


def _devices(by_resource: Mapping[str, tuple[str, ...]]) -> list[Any]:
    """One entry for each device, as the kubelet writes them where it knows their NUMA nodes."""
    return [
        messages.ContainerDevices(
            resource_name=resource,
            device_ids=[name],
            topology=messages.TopologyInfo(nodes=[messages.NUMANode(ID=place % 2)]),
        )
        for resource, names in by_resource.items()
        for place, name in enumerate(names)
    ]
