"""One GPU product of the catalogue, and what a driver keeps of its memory."""

from dataclasses import dataclass

from shipfitter.core.gpu_rows import Ecc
from shipfitter.units import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProduct:
    """One row of the catalogue; memory as NVML reports it with driver >= R510."""

    product: str  # gpu-feature-discovery's spelling
    nvml_total_bytes: int
    cuda_total_bytes: int
    compute_capability: tuple[int, int]
    nvlink: bool
    aliases: tuple[str, ...]  # provider labels, short names
    source: str
    nominal_bytes: int = 0  # as sold, the largest card of that name
    unified: bool = False  # the memory is the machine's own
    ecc: Ecc = Ecc.NONE

    @property
    def reserved_bytes(self) -> int:
        """What the driver keeps: the part of NVML's total CUDA never sees."""
        return self.nvml_total_bytes - self.cuda_total_bytes

    @property
    def fp8(self) -> bool:
        """Whether it computes in FP8. Source: Ada and later, CUDA's compute capability 8.9."""
        return self.compute_capability >= (8, 9)

    @property
    def fp4(self) -> bool:
        """Whether it computes in FP4. Source: Blackwell and later, compute capability 10.0."""
        return self.compute_capability >= (10, 0)

    def total_bytes(self, *, ecc: bool) -> int:
        """NVML's total with error correction on or off.

        Source: cards that store it inline lose 1/16: 49,140 to 46,068, 24,564 to 23,028 MiB.
        """
        mib = self.nvml_total_bytes // MIB
        if self.ecc is Ecc.INLINE_ON and not ecc:
            return -(-mib * 16 // 15) * MIB
        if self.ecc is Ecc.INLINE_OFF and ecc:
            return mib * 15 // 16 * MIB
        return self.nvml_total_bytes


# The most that drivers before R510 left out of a total, in percent of it.
_OLD_DRIVERS_PERCENT = 3


def default_reserved_bytes(nvml_total_bytes: int) -> int:
    """What a driver keeps on a card nobody measured.

    Source: published pairs of NVML total and CUDA total, from 354 MiB (RTX 4090) to 925 MiB (B300);
    the rule lies at or above most of them, in MiB whole.

    >>> default_reserved_bytes(23_028 * MIB) // MIB, default_reserved_bytes(97_871 * MIB) // MIB
    (400, 880)
    """
    return max(400, nvml_total_bytes * 9 // 1000 // MIB) * MIB


def assumed_reserved_bytes(product: GpuProduct | None, nvml_total_bytes: int) -> int:
    """What the driver keeps of a total that came without that figure.

    Drivers before R510 left the reserved part out of the total, so a total a little below the
    catalogue's has lost some of it already; one far below is another card of that name, or has its
    error correction on. Source: wookayin/gpustat#116; A100-80: 81,251 MiB then, 81,920 now, and
    T4: 15,109 then, 15,360 now.
    """
    if product is None:
        return default_reserved_bytes(nvml_total_bytes)
    short_bytes = product.nvml_total_bytes - nvml_total_bytes
    if short_bytes <= 0 or short_bytes * 100 > _OLD_DRIVERS_PERCENT * product.nvml_total_bytes:
        return product.reserved_bytes
    return max(0, nvml_total_bytes - product.cuda_total_bytes)


def is_implausible(product: GpuProduct, nvml_total_bytes: int) -> bool:
    """Whether a measured total is more than 5 % above what the product is sold with.

    Source: GDDR6 cards report 1/15 more with ECC off, and all of them less than the nominal size;
    a card modified to more memory, or a lying node, is far beyond.
    """
    return nvml_total_bytes * 100 > product.nominal_bytes * 105
