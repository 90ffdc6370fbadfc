"""The devices of one node: each belongs to one container until its process has ended."""

import threading
import uuid
from collections.abc import Mapping, Sequence


class UnexpectedAdmissionError(Exception):
    """A pod was bound to a node that cannot run it: mostly, no device is left for it."""


def device_uuids(node: str, resource: str, count: int) -> tuple[str, ...]:
    """Identifiers as the driver writes them; the same for the same node always.

    >>> device_uuids("n1", "nvidia.com/gpu", 1)[0][:4]
    'GPU-'
    """
    kind = "MIG" if "/mig-" in resource else "GPU"
    seeds = (f"{node}/{resource}/{index}" for index in range(count))
    return tuple(f"{kind}-{uuid.uuid5(uuid.NAMESPACE_URL, seed)}" for seed in seeds)


class DevicePool:
    """Who holds which device; safe to use from many threads."""

    def __init__(
        self, devices: Mapping[str, Sequence[str]], together: Sequence[Sequence[str]] = ()
    ) -> None:
        self._together = [frozenset(each) for each in together]  # better taken from one of these
        self._devices = {resource: tuple(uuids) for resource, uuids in devices.items()}
        self._holders: dict[tuple[str, str], str] = {}  # (resource, device) → pod uid
        self._lock = threading.Lock()

    def counts(self) -> dict[str, str]:
        """The node's capacity in devices."""
        with self._lock:
            return {resource: str(len(uuids)) for resource, uuids in self._devices.items()}

    def replace(self, resource: str, uuids: Sequence[str]) -> None:
        """Change what the node has; a device that is held stays held."""
        with self._lock:
            self._devices[resource] = tuple(uuids)

    def take(self, pod_uid: str, limits: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """Devices of each resource for one container, all or none."""
        with self._lock:
            taken: dict[str, tuple[str, ...]] = {}
            for resource, wanted in limits.items():
                free = [
                    device
                    for device in self._devices.get(resource, ())
                    if (resource, device) not in self._holders
                ]
                if len(free) < wanted:
                    raise UnexpectedAdmissionError(
                        "Allocate failed due to requested number of devices unavailable for "
                        f"{resource}. Requested: {wanted}, Available: {len(free)}, "
                        "which is unexpected"
                    )
                taken[resource] = tuple(self._preferred(free, wanted)[:wanted])
            for resource, uuids in taken.items():
                self._holders.update({(resource, device): pod_uid for device in uuids})
            return taken

    def _preferred(self, free: list[str], wanted: int) -> list[str]:
        """As NVIDIA's plugin advises: from one NVLink island, the fullest that will do."""
        islands = [[device for device in free if device in island] for island in self._together]
        fitting = [island for island in islands if len(island) >= wanted]
        return min(fitting, key=len) if fitting else free

    def all(self) -> dict[str, tuple[str, ...]]:
        """Every device by resource."""
        with self._lock:
            return dict(self._devices)

    def by_holder(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Uid of a pod → what it holds, by resource."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        with self._lock:
            for (resource, device), pod_uid in sorted(self._holders.items()):
                own = found.setdefault(pod_uid, {})
                own[resource] = (*own.get(resource, ()), device)
        return found

    def held(self) -> dict[str, str]:
        """Device → uid of the pod that holds it."""
        with self._lock:
            return {device: pod_uid for (_, device), pod_uid in self._holders.items()}

    def release(self, pod_uid: str) -> None:
        """The pod's processes have ended."""
        with self._lock:
            self._holders = {key: uid for key, uid in self._holders.items() if uid != pod_uid}
