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
    return _by_name().get(name) or _by_pattern(name)


def known_instance_types() -> tuple[str, ...]:
    """Every instance type that is listed by name."""
    return tuple(_by_name())


def _by_pattern(name: str) -> tuple[str, int] | None:
    for pattern, cards in PATTERNS:
        found = pattern.fullmatch(name)
        product = found and cards.get(found["card"])
        if found and product:
            return product, int(found.groupdict().get("gpus") or 0)
    return None


@cache
def _by_name() -> dict[str, tuple[str, int]]:
    aws = {
        f"{family}.{size}": (product, gpus)
        for family, (product, sizes) in AWS_FAMILIES.items()
        for size, gpus in sizes.items()
    }
    return aws | GOOGLE | AZURE | ORACLE
