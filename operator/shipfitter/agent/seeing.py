"""What driver and kubelet tell together: a node's status after a full reading."""

from dataclasses import dataclass

from shipfitter.agent.devices import NodeReading
from shipfitter.agent.foreign import ForeignMemory
from shipfitter.agent.host import Host
from shipfitter.agent.pod_resources import PodResources, PodResourcesError, uuids_of
from shipfitter.agent.report import Status, ready_status, with_pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Devices that pods hold, by their plugins' names; why they are not known, if they are not."""

    is_mounted: bool
    names: frozenset[str] | None = None
    offered: frozenset[str] = frozenset()
    trouble: str | None = None

    @classmethod
    def ask(cls, pod_resources: PodResources) -> "Holders":
        """What the kubelet says now."""
        try:
            names = pod_resources.held()
        except PodResourcesError as error:
            return cls(is_mounted=True, trouble=f"the kubelet does not say what pods hold: {error}")
        return cls(is_mounted=names is not None, names=names, offered=pod_resources.offered())


def seen(reading: NodeReading, host: Host, foreign: ForeignMemory, holders: Holders) -> Status:
    """The status to publish."""
    names = holders.names
    allocated = None if names is None else uuids_of(names, reading.gpus)
    offered = uuids_of(holders.offered, reading.gpus)
    status = ready_status(reading, host, foreign, allocated, offered)
    return with_pods(status, holders.trouble) if holders.is_mounted else status
