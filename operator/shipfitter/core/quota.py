"""What a namespace's ResourceQuotas leave of the GPUs that are free."""

from collections.abc import Iterable
from dataclasses import dataclass

EVERY_DEVICE = "/*"  # of a device class, whatever product
# Source: Kubernetes 1.36, pkg/quota/v1/evaluator/core/resource_claims.go.
DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuQuota:
    """One quota's word on one GPU resource; what this deployment itself uses is given back."""

    name: str  # of the ResourceQuota
    resource_name: str  # nvidia.com/gpu, or gpu.nvidia.com/* for all devices of a class
    hard: int
    used_by_others: int = 0

    @property
    def left(self) -> int:
        """GPUs this deployment may have in all, now."""
        return max(0, self.hard - self.used_by_others)

    def counts(self, resource_name: str) -> bool:
        """Whether pods that ask for this resource are counted."""
        if self.resource_name.endswith(EVERY_DEVICE):
            return resource_name.startswith(self.resource_name.removesuffix("*"))
        return resource_name == self.resource_name

    @property
    def resource(self) -> str:
        """The resource as a person calls it."""
        return self.resource_name.removesuffix(EVERY_DEVICE)

    @property
    def key(self) -> str:
        """What the quota's `hard` calls it."""
        if self.resource_name.endswith(EVERY_DEVICE):
            return f"{self.resource}{DEVICES}"
        return f"requests.{self.resource_name}"

    def __str__(self) -> str:
        used = f", of which others use {self.used_by_others}" if self.used_by_others else ""
        return f"ResourceQuota {self.name} allows {self.hard} {self.resource}{used}"


def tightest(quotas: Iterable[GpuQuota], resource_name: str) -> GpuQuota | None:
    """The quota that leaves least of this resource; None where none counts it."""
    return min(
        (each for each in quotas if each.counts(resource_name)),
        key=lambda each: (each.left, each.hard, each.name),
        default=None,
    )


def lowest(quotas: Iterable[GpuQuota], resource_name: str) -> GpuQuota | None:
    """The quota under which nothing larger ever starts, whoever else uses it."""
    return min(
        (each for each in quotas if each.counts(resource_name)),
        key=lambda each: (each.hard, each.name),
        default=None,
    )
