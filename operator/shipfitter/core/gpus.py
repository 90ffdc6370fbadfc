"""GPU products: what a card offers when nobody measured it, and the spellings that name it."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from shipfitter.core.gpu_rows import Ecc, Row
from shipfitter.core.gpu_rows_earlier import ADA, AMPERE, OLDER
from shipfitter.core.gpu_rows_geforce import GEFORCE
from shipfitter.core.gpu_rows_server import BLACKWELL, HOPPER
from shipfitter.core.gpu_rows_workstation import UNIFIED, WORKSTATION
from shipfitter.units import GIB, MIB


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


def normalise_product(nvml_name: str) -> str:
    """NVML's name in gpu-feature-discovery's spelling: "NVIDIA L40S" -> "NVIDIA-L40S".

    Source: NVIDIA/k8s-device-plugin internal/lm/resource.go: whatever is no letter, digit, dash,
    underscore, dot or space is dropped, and the words are joined by dashes.

    >>> normalise_product("NVIDIA L40S"), normalise_product("Orin (nvgpu)")
    ('NVIDIA-L40S', 'Orin-nvgpu')
    """
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", nvml_name).split())


def bare_product(label: str) -> tuple[str, str, bool]:
    """A product label without what the device plugin appended: product, MIG profile, shared.

    Source: NVIDIA/k8s-device-plugin internal/lm: "-MIG-<profile>" under the single strategy,
    "-SHARED" for replicated GPUs that kept their resource name.

    >>> bare_product("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED")
    ('NVIDIA-A100-SXM4-40GB', '3g.20gb', True)
    """
    product = label.removesuffix("-SHARED")
    bare, _, profile = product.partition("-MIG-")
    return bare, profile, product != label


def products() -> tuple[GpuProduct, ...]:
    """Every row of the catalogue, in its order."""
    return tuple(_catalogue())


def resolve_product(spelling: str) -> GpuProduct | None:
    """The catalogue's row for any spelling of a product; None when it is not known.

    Case, vendor words and separators do not matter. A name that stands for cards of different
    memory ("a100", "v100") names none of them.

    >>> resolve_product("nvidia-tesla-t4").product, resolve_product("NVIDIA L40S-SHARED").product
    ('Tesla-T4', 'NVIDIA-L40S')
    >>> resolve_product("a100") is None
    True
    """
    product, _, _ = bare_product(spelling.strip())
    return _by_exact_name().get(product.lower()) or _by_key().get(_key(product))


def nearest_products(spelling: str, limit: int = 3) -> tuple[str, ...]:
    """The products whose names come closest to a spelling, best first; none when none is close.

    >>> nearest_products("L40-S")
    ('NVIDIA-L40S', 'NVIDIA-L40', 'NVIDIA-L40G')
    >>> nearest_products("banana")
    ()
    """
    wanted = _key(spelling)
    if not wanted:
        return ()
    closeness: dict[str, float] = {}
    for key, row in _by_key().items():
        begins = key.startswith(wanted)
        score = 1.5 if begins else SequenceMatcher(None, wanted, key).ratio()
        closeness[row.product] = max(score, closeness.get(row.product, 0))
    close = [product for product, score in closeness.items() if score >= 0.65]
    # sorted() is stable: equals stay in the catalogue's order
    return tuple(sorted(close, key=lambda product: -closeness[product])[:limit])


def is_implausible(product: GpuProduct, nvml_total_bytes: int) -> bool:
    """Whether a measured total is more than 5 % above what the product is sold with.

    Source: GDDR6 cards report 1/15 more with ECC off, and all of them less than the nominal size;
    a card modified to more memory, or a lying node, is far beyond.
    """
    return nvml_total_bytes * 100 > product.nominal_bytes * 105


# What error correction is on the cards of each table, where the row does not say.
_TABLES = (
    (HOPPER, Ecc.FREE),
    (BLACKWELL, Ecc.FREE),
    (ADA, Ecc.INLINE_ON),
    (AMPERE, Ecc.INLINE_ON),
    (OLDER, Ecc.INLINE_ON),
    (WORKSTATION, Ecc.INLINE_OFF),
    (GEFORCE, Ecc.NONE),
    (UNIFIED, Ecc.NONE),
)
# HBM and GDDR7, by the architectures that have them. Source: the vendor's product briefs.
_FREE_ECC = ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (10, 3), (12, 0))


@cache
def _catalogue() -> tuple[GpuProduct, ...]:
    return tuple(_product(row, ecc) for rows, ecc in _TABLES for row in rows)


def _product(row: Row, usual: Ecc) -> GpuProduct:
    nvml_total_bytes = row.nvml_total_mib * MIB
    cuda_total_bytes = row.cuda_total_mib * MIB
    return GpuProduct(
        product=normalise_product(row.nvml_name),
        nvml_total_bytes=nvml_total_bytes,
        cuda_total_bytes=cuda_total_bytes
        or nvml_total_bytes - default_reserved_bytes(nvml_total_bytes),
        compute_capability=row.compute_capability,
        nvlink=row.nvlink,
        aliases=(row.nvml_name, *row.spellings.split()),
        source=row.source,
        nominal_bytes=row.nominal_gib * GIB,
        unified=row.unified,
        ecc=row.ecc or (Ecc.FREE if _has_free_ecc(row, usual) else usual),
    )


def _has_free_ecc(row: Row, usual: Ecc) -> bool:
    return usual is not Ecc.NONE and row.compute_capability in _FREE_ECC


# Several memory sizes share these names, so only a provider's own spelling, where it is one product
# (GKE's nvidia-tesla-a100), names a row.
_AMBIGUOUS_KEYS = frozenset({"a100", "v100"})


@cache
def _by_exact_name() -> dict[str, GpuProduct]:
    return {name.lower(): row for row in _catalogue() for name in (row.product, *row.aliases)}


@cache
def _by_key() -> dict[str, GpuProduct]:
    """Rows by every spelling's key."""
    rows: dict[str, GpuProduct] = {}
    for row in _catalogue():
        for spelling in (row.product, *row.aliases):
            key = _key(spelling)
            if key not in _AMBIGUOUS_KEYS:
                rows.setdefault(key, row)
    return rows


def _key(spelling: str) -> str:
    """A spelling without case, separators and the words that say nothing about the product."""
    words = re.split(r"[^a-z0-9]+", spelling.lower())
    return "".join(word for word in words if word not in {"nvidia", "tesla", "geforce"})
