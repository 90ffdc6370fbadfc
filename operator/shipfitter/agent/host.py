"""What the machine itself tells: memory, boot, and where a GPU sits."""

from dataclasses import dataclass
from pathlib import Path

from shipfitter.units import KIB


@dataclass(frozen=True, slots=True)
class Host:
    """The machine's files under `root`; a container sees the host's own values in /proc."""

    root: Path = Path("/")

    def memory_bytes(self) -> int | None:
        """MemTotal of the machine."""
        for line in self._text("proc/meminfo").splitlines():
            name, _, value = line.partition(":")
            if name == "MemTotal":
                return int(value.split()[0]) * KIB
        return None

    def boot_id(self) -> str:
        """The kernel's identifier of this boot."""
        return self._text("proc/sys/kernel/random/boot_id").strip()

    def kernel_driver(self) -> str:
        """The version of the NVIDIA module that the kernel has loaded; empty where it has none.

        A container toolkit may have put a copy of the second file into the container, which stays.
        """
        told = self._text("sys/module/nvidia/version").strip()
        return told or self._text("proc/driver/nvidia/version").partition("\n")[0].strip()

    def numa_node(self, pci_bus_id: str) -> int | None:
        """The NUMA node of a PCI device, for drivers that do not tell.

        NVML writes the domain with eight digits, the kernel with four.
        """
        address = pci_bus_id.lower()[-12:]
        node = self._text(f"sys/bus/pci/devices/{address}/numa_node").strip() if address else ""
        return int(node) if node.isdecimal() else None

    def _text(self, path: str) -> str:
        try:
            return (self.root / path).read_text()
        except OSError:
            return ""
