"""Any spelling of a GPU to what it offers: product strings, label values, instance types."""

import re
from dataclasses import dataclass
from itertools import islice

from shipfitter.core.gpus import (
    GpuProduct,
    bare_product,
    nearest_products,
    products,
    resolve_product,
)
from shipfitter.core.instance_types import instance_gpus
from shipfitter.core.mig import mig_memory_bytes, mig_profiles

MOST_GPUS = 16  # of one machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a spelling stands for."""

    row: GpuProduct
    usable_bytes: int  # what CUDA calls total on one such device
    gpus_per_node: int | None = None  # told only by an instance type
    mig_profile: str = ""
    source: str = ""


def resolve_spelling(spelling: str) -> Resolved | None:
    """The product, and how many, that a spelling names; None when it names none we know.

    >>> found = resolve_spelling("g6e.12xlarge")
    >>> found.row.product, found.gpus_per_node
    ('NVIDIA-L40S', 4)
    >>> resolve_spelling("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb").mig_profile
    '3g.20gb'
    """
    text = _value(spelling)
    row = resolve_product(text)
    if row is not None:
        _, profile, _ = bare_product(text)
        if not profile:
            return Resolved(row=row, usable_bytes=row.cuda_total_bytes, source=row.source)
        slice_bytes = mig_memory_bytes(row, profile)
        if slice_bytes is None:
            return None
        source = f"MIG profile {profile} of {row.product}"
        return Resolved(row=row, usable_bytes=slice_bytes, mig_profile=profile, source=source)
    instance = instance_gpus(text) or _several(text)
    row = resolve_product(instance[0]) if instance else None
    if instance is None or row is None:
        return None
    return Resolved(
        row=row,
        usable_bytes=row.cuda_total_bytes,
        gpus_per_node=instance[1] or None,
        source=f"{text}; {row.source}",
    )


# Virtual GPUs are named by card, gigabytes and series. Source: NVIDIA's vGPU user guide.
_VGPU = re.compile(r"(?:NVIDIA|GRID)[- ].*[- ]\d+[ABCQV]", re.IGNORECASE)

# As people write several: 8x H100, h100x8.
_SEVERAL = (
    r"(?P<gpus>\d{1,2}) ?[x×] ?(?P<card>.*[a-z].*)",
    r"(?P<card>.+?)[-_ ]?[x×] ?(?P<gpus>\d{1,2})",
)


def _several(text: str) -> tuple[str, int] | None:
    for form in _SEVERAL:
        found = re.fullmatch(form, text, re.IGNORECASE)
        row = resolve_product(found["card"]) if found else None
        if found and row and 0 < int(found["gpus"]) <= MOST_GPUS:
            return row.product, int(found["gpus"])
    return None


def _value(spelling: str) -> str:
    """The spelling itself, also of a whole label: nvidia.com/gpu.product=NVIDIA-L4."""
    return spelling.strip().rpartition("=")[2].strip("\"' ")


def nearest_spellings(spelling: str) -> tuple[str, ...]:
    """What may have been meant: the closest products, or the cards with a MIG profile.

    >>> nearest_spellings("nvidia.com/mig-1g.5gb")[0]
    'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb'
    """
    profile = re.fullmatch(r"(?:nvidia\.com/)?(?:mig-)?(\d+g\.\d+gb)\S*", _value(spelling).lower())
    if profile is None:
        return nearest_products(spelling)
    with_it = (
        f"{row.product}-MIG-{profile[1]}" for row in products() if profile[1] in mig_profiles(row)
    )
    return tuple(islice(with_it, 3))


def unknown_spelling(spelling: str) -> str:
    """What to say of a spelling that names nothing: the nearest names, or how one looks.

    >>> unknown_spelling("a100")
    'not in the catalogue; did you mean NVIDIA-A100-SXM4-80GB, NVIDIA-A100-80GB-PCIe, \
NVIDIA-A100-SXM4-40GB?'
    """
    if _VGPU.fullmatch(_value(spelling)):
        return (
            "not in the catalogue; it is a vGPU profile, a part of a card: the agent measures what "
            "it offers"
        )
    near = nearest_spellings(spelling)
    hint = f"did you mean {', '.join(near)}?" if near else "write it as in NVIDIA-L40S:8"
    return f"not in the catalogue; {hint}"
