"""What a namespace's ResourceQuotas leave of the GPUs that are free."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuQuota:
    """One quota's word on one GPU resource; what this deployment itself uses is given back."""

    name: str  # of the ResourceQuota
    resource_name: str  # nvidia.com/gpu
    hard: int
    used_by_others: int = 0

    @property
    def left(self) -> int:
        """GPUs this deployment may have in all, now."""
        return max(0, self.hard - self.used_by_others)


def tightest(quotas: Iterable[GpuQuota], resource_name: str) -> GpuQuota | None:
    """The quota that leaves least of this resource; None where none counts it."""
    return min(
        (each for each in quotas if each.resource_name == resource_name),
        key=lambda each: (each.left, each.hard, each.name),
        default=None,
    )


def lowest(quotas: Iterable[GpuQuota], resource_name: str) -> GpuQuota | None:
    """The quota under which nothing larger ever starts, whoever else uses it."""
    return min(
        (each for each in quotas if each.resource_name == resource_name),
        key=lambda each: (each.hard, each.name),
        default=None,
    )
