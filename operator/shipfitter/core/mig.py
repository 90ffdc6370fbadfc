"""MIG profiles of each card: what one partition offers an engine when nobody measured it.

A partition holds a whole number of the GPU's eight memory slices, less what the driver keeps of
each. Names are no stable identifiers (drivers write 3g.39gb and 3g.40gb for one profile), so they
are matched by slices and gigabytes.
"""

import re

from shipfitter.core.gpus import GpuProduct
from shipfitter.units import MIB

# Profile to MiB as a partition's own memory query tells.
_A100_40 = {"1g.5gb": 4864, "1g.10gb": 9856, "2g.10gb": 9856}
_A100_40 |= {"3g.20gb": 19968, "4g.20gb": 19968, "7g.40gb": 40192}
_A100_80 = {"1g.10gb": 9856, "1g.20gb": 19968, "2g.20gb": 19968}
_A100_80 |= {"3g.40gb": 40192, "4g.40gb": 40192, "7g.80gb": 80384}
_A30 = {"1g.6gb": 5949, "2g.12gb": 11970, "4g.24gb": 24002}
_H100_NVL = {"1g.12gb": 11008, "1g.24gb": 22139, "2g.24gb": 22139}
_H100_NVL |= {"3g.47gb": 47493, "4g.47gb": 47493, "7g.94gb": 94986}

# Source: Syllo/nvitop#8 (A100 40 GB), go-nvml's mock of a DGX A100 (80 GB; drivers give an H100 of
# 80 GB the same), NVIDIA/mig-parted#101 and gpu-operator#900 (H100 NVL), `nvidia-smi mig -lgip`
# on A30.
_MEASURED: dict[str, dict[str, int]] = {
    "NVIDIA-A100-SXM4-40GB": _A100_40,
    "NVIDIA-A100-PCIE-40GB": _A100_40,
    "NVIDIA-A800-40GB-Active": _A100_40,
    "NVIDIA-A800-SXM4-40GB": _A100_40,
    "NVIDIA-A100-SXM4-80GB": _A100_80,
    "NVIDIA-A100-80GB-PCIe": _A100_80,
    "NVIDIA-A100X": _A100_80,
    "NVIDIA-A800-SXM4-80GB": _A100_80,
    "NVIDIA-A800-80GB-PCIe": _A100_80,
    "NVIDIA-H100-80GB-HBM3": _A100_80,
    "NVIDIA-H100-PCIe": _A100_80,
    "NVIDIA-H800": _A100_80,
    "NVIDIA-H800-PCIe": _A100_80,
    "NVIDIA-H100-NVL": _H100_NVL,
    "NVIDIA-H800-NVL": _H100_NVL,
    "NVIDIA-A30": _A30,
    "NVIDIA-A30X": _A30,
}

_96_GB = "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"
_141_GB = "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"
_144_GB = "1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb"

# Source: NVIDIA's MIG user guide, supported profiles; their bytes are by rule.
_NAMED: dict[str, str] = {
    "NVIDIA-A100-SXM-64GB": "1g.8gb 1g.16gb 2g.16gb 3g.32gb 4g.32gb 7g.64gb",
    "NVIDIA-H20": _96_GB,
    "NVIDIA-GH200-480GB": _96_GB,
    "NVIDIA-GH200-120GB": _96_GB,
    "NVIDIA-H200": _141_GB,
    "NVIDIA-H200-NVL": _141_GB,
    "NVIDIA-H20-3e": _141_GB,
    "NVIDIA-GH200-144G-HBM3e": _144_GB,
    "NVIDIA-B100": "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    "NVIDIA-B200": "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    "NVIDIA-GB200": "1g.24gb 1g.47gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb",
    "NVIDIA-B300": "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "NVIDIA-GB300": "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": "1g.24gb 2g.48gb 4g.96gb",
    "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition": "1g.24gb 2g.48gb 4g.96gb",
    "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition": "1g.24gb 2g.48gb 4g.96gb",
    "NVIDIA-RTX-PRO-5000-Blackwell": "1g.12gb 2g.24gb 4g.48gb",
    "NVIDIA-RTX-PRO-5000-72GB-Blackwell": "1g.18gb 2g.36gb 4g.72gb",
}

# The least that partitions of an eighth, a quarter, half and all of a GPU were seen to have of
# their share of CUDA's total, in percent. Source: the measured profiles above.
_LEAST_PERCENT = {1: 92, 2: 92, 4: 98, 8: 98}


def mig_profiles(product: GpuProduct) -> dict[str, int]:
    """The profiles of a card and the bytes of a partition of each; none where it has no MIG.

    >>> from shipfitter.core.gpus import resolve_product
    >>> a100 = resolve_product("a100-40gb")
    >>> {name: found // MIB for name, found in mig_profiles(a100).items()}["3g.20gb"]
    19968
    """
    measured = _MEASURED.get(product.product)
    if measured:
        return {profile: mib * MIB for profile, mib in measured.items()}
    names = _NAMED.get(product.product, "").split()
    return {name: _by_rule(product, name) for name in names}


def mig_memory_bytes(product: GpuProduct, profile: str) -> int | None:
    """The bytes of one partition by its profile's name as any driver writes it.

    Suffixes name engines (+me, .me, +gfx), not memory. A compute instance (1c.3g.20gb) shares the
    memory of its GPU instance.
    """
    shape = _shape(profile)
    if shape is None:
        return None
    slices, gigabytes = shape
    known = ((name, found, _shape(name)) for name, found in mig_profiles(product).items())
    return next(
        (
            found
            for _, found, other in known
            if other and other[0] == slices and _as_good_as(other[1], gigabytes)
        ),
        None,
    )


def same_profile(one: str, other: str) -> bool:
    """Whether two names mean one profile: drivers name the same slice 3g.39gb and 3g.40gb.

    Source: NVIDIA/mig-parted#31; the resource writes "+me" as ".me".

    >>> same_profile("3g.39gb", "3g.40gb"), same_profile("1g.10gb", "1g.20gb")
    (True, False)
    """
    shape, other_shape = _shape(one), _shape(other)
    if shape is None or other_shape is None or "c." in one + other:
        return one == other
    return shape[0] == other_shape[0] and _as_good_as(shape[1], other_shape[1])


def _as_good_as(one: int, other: int) -> bool:
    """Whether two names' gigabytes are one size: small ones are exact, 39 is 40 and 186 is 189."""
    larger = max(one, other)
    return abs(one - other) <= max(larger >= 10, larger * 3 // 100)


def _shape(profile: str) -> tuple[int, int] | None:
    """Compute slices and gigabytes."""
    found = re.match(r"(?:\d+c\.)?(\d+)g\.(\d+)gb", profile)
    return (int(found[1]), int(found[2])) if found else None


def _by_rule(product: GpuProduct, profile: str) -> int:
    """The least such a partition was seen to have of the card, in whole MiB."""
    shape = _shape(profile)
    assert shape is not None
    gigabytes = product.nvml_total_bytes / 10**9
    eighths = min((1, 2, 4, 8), key=lambda part: abs(shape[1] - gigabytes * part / 8))
    share = product.cuda_total_bytes * eighths // 8
    return share * _LEAST_PERCENT[eighths] // 100 // MIB * MIB
