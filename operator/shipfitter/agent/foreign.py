"""Memory strangers hold on a GPU, coarse and calm: what breathes must not be news."""

from shipfitter.agent.devices import GpuReading
from shipfitter.units import MIB, round_up

STEP_BYTES = 256 * MIB
# Below this a GPU is empty: the driver's own bookkeeping. Assumed; idle cards show 0 to 4 MiB.
IDLE_BYTES = 16 * MIB


class ForeignMemory:
    """What each GPU showed as used while nothing we know of was at work there."""

    def __init__(self, published_bytes: dict[str, int] | None = None) -> None:
        self._published_bytes = dict(published_bytes or {})
        self._seen_bytes: dict[str, int] = {}
        self.is_unsettled = False  # a rise waits for a second look

    def settle(self, gpu: GpuReading, *, held: bool | None = None) -> int:
        """The bytes to publish for a GPU now, a multiple of 256 MiB.

        A GPU at work keeps what was last published, since an engine's memory is not a stranger's.
        Whether it is, the kubelet knows (`held` by a pod); where it cannot be asked, a process is
        listed, or more than half of it is used: containers may not see the host's processes. A
        rise counts when two looks agree; a fall only beyond half a step.
        """
        uuid, used_bytes = gpu.uuid, gpu.memory.used_bytes or 0
        published_bytes = self._published_bytes.get(uuid)
        busy = gpu.has_processes or 2 * used_bytes > (gpu.memory.total_bytes or 0)
        at_work = busy if held is None else held
        before_bytes, self._seen_bytes[uuid] = self._seen_bytes.get(uuid), used_bytes
        rounded_bytes = round_up(used_bytes, STEP_BYTES) if used_bytes > IDLE_BYTES else 0
        if at_work or gpu.is_lost:
            settled_bytes = published_bytes or 0
        elif published_bytes is None:
            settled_bytes = rounded_bytes
        elif rounded_bytes > published_bytes:
            steady = before_bytes is not None and abs(used_bytes - before_bytes) < STEP_BYTES
            settled_bytes = rounded_bytes if steady else published_bytes
            self.is_unsettled = self.is_unsettled or not steady
        elif (
            used_bytes + STEP_BYTES + STEP_BYTES // 2 > published_bytes and used_bytes > IDLE_BYTES
        ):
            settled_bytes = published_bytes
        else:
            settled_bytes = rounded_bytes
        self._published_bytes[uuid] = settled_bytes
        return settled_bytes
