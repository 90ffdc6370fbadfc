"""Which devices pods hold, as the kubelet's PodResources service says; no names of pods are kept.

Source: k8s.io/kubelet pkg/apis/podresources/v1/api.proto; field numbers are its own.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shipfitter.agent.devices import GpuReading
from shipfitter.agent.wire_format import WireFormatError, parts, texts

LIST = "/v1.PodResourcesLister/List"
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"
_POD, _CONTAINER = 1, 3  # ListPodResourcesResponse.pod_resources, PodResources.containers
_ALLOCATABLE_DEVICES = 1  # AllocatableResourcesResponse.devices
_DEVICES, _CLAIMS = 2, 5  # ContainerResources.devices, .dynamic_resources
_RESOURCE, _DEVICE_IDS = 1, 2  # ContainerDevices
_CLAIM_RESOURCES, _DRIVER, _DEVICE_NAME = 4, 2, 4  # DynamicResource, ClaimResource

# Resources whose devices are GPUs or parts of them; and the DRA driver that hands them out.
_RESOURCES = re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.+)")
_DRA_DRIVER = "gpu.nvidia.com"


class PodResourcesError(Exception):
    """The kubelet does not say."""


@dataclass(frozen=True, slots=True)
class PodResources:
    """The kubelet's socket; `path` is None where it is not mounted."""

    path: Path | None = None

    def held(self) -> frozenset[str] | None:
        """Names of the devices that pods hold, as their plugins name them; None if not mounted.

        Raises PodResourcesError.
        """
        if self.path is None:
            return None
        return _names(_held, self.path, LIST)

    def offered(self) -> frozenset[str]:
        """Names of the devices that the kubelet can hand out; none where it does not tell.

        Kubelets before 1.23 do not know the question; devices of DRA drivers are not among them.
        """
        if self.path is None:
            return frozenset()
        try:
            return _names(_offered, self.path, ALLOCATABLE)
        except PodResourcesError:
            return frozenset()


NOT_MOUNTED = PodResources()


def _names(read: Callable[[bytes], Iterable[str]], path: Path, method: str) -> frozenset[str]:
    # Only agents with the socket pay for HTTP/2.
    from shipfitter.agent.grpc_call import CallError, unary_call  # noqa: PLC0415

    try:
        return frozenset(read(unary_call(path, method)))
    except (CallError, WireFormatError) as error:
        raise PodResourcesError(str(error)) from None


def _offered(response: bytes) -> Iterator[str]:
    for devices in parts(response, _ALLOCATABLE_DEVICES):
        yield from _gpus(devices)


def _gpus(devices: bytes) -> Iterator[str]:
    if _RESOURCES.fullmatch(next(texts(devices, _RESOURCE), "")):
        yield from texts(devices, _DEVICE_IDS)


def _held(response: bytes) -> Iterator[str]:
    for pod in parts(response, _POD):
        for container in parts(pod, _CONTAINER):
            for devices in parts(container, _DEVICES):
                yield from _gpus(devices)
            for claim in parts(container, _CLAIMS):
                for result in parts(claim, _CLAIM_RESOURCES):
                    if next(texts(result, _DRIVER), "") == _DRA_DRIVER:
                        yield from texts(result, _DEVICE_NAME)


def uuids_of(names: Iterable[str], gpus: Iterable[GpuReading]) -> tuple[str, ...]:
    """The UUIDs behind devices' names, sorted; names of devices we do not see are left out.

    Source: NVIDIA's device plugin names a GPU by UUID or by index (GPU-1, 0; 0:2 for a MIG device),
    a copy of a shared one with ::N behind; GKE's by minor number (nvidia0, nvidia0/vgpu1,
    nvidia0/gi3), as does the DRA driver (gpu-0).
    """
    by_name: dict[str, str] = {}
    for gpu in gpus:
        minor = gpu.index if gpu.minor_number is None else gpu.minor_number
        whole = (gpu.uuid, str(gpu.index), f"nvidia{minor}", f"gpu-{minor}")
        by_name |= dict.fromkeys(whole, gpu.uuid)
        for place, mig in enumerate(gpu.mig_devices):
            by_name |= dict.fromkeys((mig.uuid, f"{gpu.index}:{place}"), mig.uuid)
            if mig.gpu_instance is not None:
                by_name[f"nvidia{minor}/gi{mig.gpu_instance}"] = mig.uuid
    bare = (re.sub(r"::\d+$|/vgpu\d+$", "", name) for name in names)
    return tuple(sorted({by_name[name] for name in bare if name in by_name}))
