"""Cloud instance types: which GPU product they carry, and how many where the name tells."""

from functools import cache

from shipfitter.core.instance_patterns import PATTERNS
from shipfitter.core.instance_rows import AWS_FAMILIES, AZURE, GOOGLE, ORACLE


def instance_gpus(instance_type: str) -> tuple[str, int] | None:
    """Product and number of GPUs (0: not told) of an instance type; None for one not known.

    >>> instance_gpus("g6e.12xlarge"), instance_gpus("Standard_ND96isr_H100_v5")
    (('NVIDIA-L40S', 4), ('NVIDIA-H100-80GB-HBM3', 8))
    >>> instance_gpus("gpu_8x_h100_sxm5"), instance_gpus("m7i.large")
    (('NVIDIA-H100-80GB-HBM3', 8), None)
    """
    name = instance_type.strip().lower()
    return _listed(name) or _by_pattern(name)


def known_instance_types() -> tuple[str, ...]:
    """Every instance type that is listed by name."""
    return tuple(_by_name())


# What names carry and what says nothing about the GPUs: SageMaker's prefix, Azure's where people
# leave it out, Google's local disks. Source: the providers' names for the same machines.
_PREFIXES = ("", "standard_")
_IGNORED_PREFIX, _IGNORED_SUFFIXES = "ml.", ("-nolssd", "-lssd")


def _listed(name: str) -> tuple[str, int] | None:
    for suffix in _IGNORED_SUFFIXES:
        name = name.removesuffix(suffix)
    name = name.removeprefix(_IGNORED_PREFIX)
    found = (_by_name().get(prefix + name) for prefix in _PREFIXES)
    return next((each for each in found if each), None)


def _by_pattern(name: str) -> tuple[str, int] | None:
    for form, cards, count in PATTERNS:
        found = form.fullmatch(name)
        product = found and cards.get(found["card"])
        if found and product:
            gpus = count(found)
            return None if gpus is None else (product, gpus)
    return None


@cache
def _by_name() -> dict[str, tuple[str, int]]:
    aws = {
        f"{family}.{size}": (product, gpus)
        for family, (product, sizes) in AWS_FAMILIES.items()
        for size, gpus in sizes.items()
    }
    return aws | GOOGLE | AZURE | ORACLE
