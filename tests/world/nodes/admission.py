"""A bound pod is admitted: it gets its devices, or is refused for good."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from world.nodes.addresses import loopback
from world.nodes.containers import Container
from world.nodes.devices import UnexpectedAdmissionError
from world.nodes.launch import Launcher
from world.nodes.node import Node
from world.nodes.programs import Place
from world.nodes.runtime import Runtime
from world.nodes.status import ContainerState, recovered
from world.nodes.storage import Storage, reader
from world.nodes.volumes import Volumes

Object = Mapping[str, Any]
Devices = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A pod that may run."""

    volumes: Volumes
    launcher: Launcher
    init: tuple[Container, ...]
    containers: tuple[Container, ...]


def device_limits(container: Object, resources: Mapping[str, str]) -> dict[str, int]:
    """How many of each of the node's devices a container wants."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return {name: int(limits[name]) for name in limits.keys() & resources.keys()}


def admit(
    runtime: Runtime,
    node: Node,
    body: Object,
    *,
    pod_ip: str,
    folder: Path,
    on_change: Callable[[], None],
) -> Admitted:
    """Take the devices and make the containers, or raise UnexpectedAdmissionError."""
    metadata, spec = body["metadata"], body["spec"]
    for part in spec.get("initContainers") or ():
        if part.get("restartPolicy") == "Always":
            raise UnexpectedAdmissionError(
                f"initContainers {part['name']}: sidecars are not emulated; "
                "make it one of the containers"
            )
    resources = node.devices.counts()
    devices = {
        container["name"]: node.devices.take(metadata["uid"], device_limits(container, resources))
        for container in spec["containers"]
    }
    volumes = Volumes(
        pod=body,
        folder=folder,
        storage=Storage(
            api=runtime.api,
            namespace=metadata["namespace"],
            host=node.folder,
            host_paths=node.spec.host_paths,
            claims=runtime.folder / "claims",
        ),
        tokens=runtime.tokens,
        read=reader(runtime.api, metadata["namespace"]),
        pod_ip=pod_ip,
        allocatable=node.allocatable(),
    )
    place = Place(
        address=loopback(pod_ip),
        pod_ip=pod_ip,
        pod=metadata["name"],
        namespace=metadata["namespace"],
        node=node.name,
    )
    launcher = Launcher(
        runtime=runtime, node=node, pod=body, folder=folder, place=place, volumes=volumes
    )
    policy = spec.get("restartPolicy", "Always")
    before = {s["name"]: s for s in (body.get("status") or {}).get("containerStatuses") or ()}

    def container(part: Object, own_policy: str, own_devices: Devices) -> Container:
        state = ContainerState(name=part["name"], image=part["image"])
        if part["name"] in before and "waiting" not in before[part["name"]].get("state", {}):
            state = recovered(before[part["name"]], restarts=own_policy != "Never")
        return Container(
            launcher,
            part,
            state,
            restart_policy=own_policy,
            devices=own_devices,
            on_change=on_change,
        )

    init_policy = "Never" if policy == "Never" else "OnFailure"
    return Admitted(
        volumes=volumes,
        launcher=launcher,
        init=tuple(
            container(part, init_policy, lent(device_limits(part, resources), devices))
            for part in spec.get("initContainers") or ()
        ),
        containers=tuple(
            container(part, policy, devices[part["name"]]) for part in spec["containers"]
        ),
    )


def lent(limits: Mapping[str, int], devices: Mapping[str, Devices]) -> Devices:
    """An init container uses the devices that the pod's containers get after it."""
    of_pod = {r: [d for own in devices.values() for d in own.get(r, ())] for r in limits}
    return {resource: tuple(of_pod[resource][:count]) for resource, count in limits.items()}
