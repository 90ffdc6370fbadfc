"""What a cluster's labels say about a node's GPUs, for nodes nobody measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shipfitter.core.capacity import CapacitySource, Device
from shipfitter.core.gpus import assumed_reserved_bytes, bare_product, resolve_product
from shipfitter.core.instance_types import instance_gpus
from shipfitter.core.measured import MIG_RESOURCE_PREFIX
from shipfitter.core.mig import mig_memory_bytes
from shipfitter.core.quantities import whole
from shipfitter.units import MIB

_SHARING_STRATEGIES = {"time-slicing": "time-slicing", "time-sharing": "time-slicing", "mps": "mps"}


# Labels that name a card and nothing else.
_NAMING_LABELS = (
    "karpenter.azure.com/sku-gpu-name",
    "doks.digitalocean.com/gpu-model",
    "machine.cluster.vke.volcengine.com/gpu-name",
    "skypilot.co/accelerator",
    "gpu.nvidia.com/class",
    "accelerator",
)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How many pods one GPU serves, and by which means; NVML sees nothing of it."""

    strategy: str = "none"
    replicas_per_gpu: int = 1


@dataclass(frozen=True, slots=True)
class Published:
    """A node's devices as labels tell them."""

    devices: tuple[Device, ...]
    source: CapacitySource


def sharing(labels: Mapping[str, str], resource_name: str) -> Sharing:
    """How the node's GPUs are shared.

    Source: gpu-feature-discovery's sharing-strategy and replicas labels, the "-SHARED" suffix of
    nodes that have only that, and GKE's labels.
    """
    strategy = _SHARING_STRATEGIES.get(
        labels.get("nvidia.com/gpu.sharing-strategy")
        or labels.get("cloud.google.com/gke-gpu-sharing-strategy")
        or "",
        "none",
    )
    _, _, suffixed = bare_product(labels.get("nvidia.com/gpu.product", ""))
    stated = "nvidia.com/gpu.sharing-strategy" in labels
    if not stated and strategy == "none" and (suffixed or resource_name.endswith(".shared")):
        strategy = "time-slicing"
    if strategy == "none":
        return Sharing()
    replicas = whole(
        labels.get("nvidia.com/gpu.replicas")
        or labels.get("cloud.google.com/gke-max-shared-clients-per-gpu")
    )
    return Sharing(strategy, max(1, replicas))


def evidently_shared(
    shared: Sharing, devices: tuple[Device, ...], allocatable_gpus: int
) -> Sharing:
    """How counted GPUs are shared, also where no label says so: more are handed out than are there.

    NVIDIA's device plugin replicates GPUs whether or not gpu-feature-discovery runs beside it.
    """
    copies, rest = divmod(allocatable_gpus, len(devices) or 1)
    partitioned = any(device.mig_profile for device in devices)
    if shared.strategy != "none" or not devices or partitioned or copies < 2 or rest:
        return shared
    return Sharing("time-slicing", copies)


def published_devices(
    labels: Mapping[str, str], resource_name: str, *, host_memory_bytes: int, at_least: int
) -> Published | None:
    """The devices behind a resource name; None where no label names them.

    `at_least` devices are there even when no label counts them: the node hands them out.
    """
    if resource_name.startswith(MIG_RESOURCE_PREFIX):
        return _labelled_mig(labels, resource_name, at_least)
    return _labelled(labels, host_memory_bytes, at_least) or _catalogued(
        labels, host_memory_bytes, at_least
    )


def labelled_total_bytes(labels: Mapping[str, str]) -> int:
    """NVML's first total as gpu-feature-discovery read it; 0 where it could not."""
    return whole(labels.get("nvidia.com/gpu.memory")) * MIB


def _labelled(labels: Mapping[str, str], host_memory_bytes: int, at_least: int) -> Published | None:
    product, mig_profile, _ = bare_product(labels.get("nvidia.com/gpu.product", ""))
    if not product:
        return None
    nominal_bytes = labelled_total_bytes(labels)
    if not nominal_bytes:  # the driver has no figure for GPUs that use the host's memory
        device = _catalogue_device(product, 0, host_memory_bytes)
        source = CapacitySource.CATALOGUE
    else:
        row = resolve_product(product)
        reserved_bytes = assumed_reserved_bytes(row, nominal_bytes)
        device = Device(
            product=product,
            total_bytes=nominal_bytes - (0 if mig_profile else reserved_bytes),
            nominal_bytes=nominal_bytes,
            compute_capability=_labelled_capability(labels)
            or (row.compute_capability if row else None),
            mig_profile=mig_profile,
        )
        source = CapacitySource.LABEL
    count = whole(labels.get("nvidia.com/gpu.count")) or at_least
    return Published((device,) * count, source) if device else None


def _labelled_mig(labels: Mapping[str, str], resource_name: str, at_least: int) -> Published | None:
    """A profile's own labels under the mixed strategy: mig-<profile>.memory, .count, .product."""
    memory_bytes = whole(labels.get(f"{resource_name}.memory")) * MIB
    product, _, _ = bare_product(
        labels.get(f"{resource_name}.product") or labels.get("nvidia.com/gpu.product", "")
    )
    row = resolve_product(product)
    profile = resource_name.removeprefix(MIG_RESOURCE_PREFIX)
    source = CapacitySource.LABEL if memory_bytes else CapacitySource.CATALOGUE
    memory_bytes = memory_bytes or (mig_memory_bytes(row, profile) if row else None) or 0
    if not memory_bytes or not product:
        return None
    device = Device(
        product=product,
        total_bytes=memory_bytes,
        nominal_bytes=memory_bytes,
        compute_capability=_labelled_capability(labels)
        or (row.compute_capability if row else None),
        mig_profile=profile,
    )
    count = whole(labels.get(f"{resource_name}.count")) or at_least
    return Published((device,) * count, source)


def _catalogued(
    labels: Mapping[str, str], host_memory_bytes: int, at_least: int
) -> Published | None:
    """Devices by a provider's accelerator name or the instance type, with the catalogue's bytes.

    Source: GKE's gke-accelerator (with gke-gpu-partition-size for MIG slices, which it hands out as
    plain GPUs), Karpenter's and EKS Auto Mode's instance-gpu-* (memory in MiB as sold, per GPU),
    cluster-autoscaler's accelerator label on AWS, the own labels of CoreWeave, Alibaba Cloud,
    DigitalOcean and Volcengine, SkyPilot's, and the accelerator label that clusters had first.
    """
    instance = instance_gpus(
        labels.get("node.kubernetes.io/instance-type")
        or labels.get("beta.kubernetes.io/instance-type", "")
    )
    named: list[tuple[str, int, int]] = [
        (
            labels.get("cloud.google.com/gke-accelerator", ""),
            whole(labels.get("cloud.google.com/gke-accelerator-count")),
            0,
        ),
        *(
            (
                labels.get(f"{provider}/instance-gpu-name", ""),
                whole(labels.get(f"{provider}/instance-gpu-count")),
                whole(labels.get(f"{provider}/instance-gpu-memory")) * MIB,
            )
            for provider in ("karpenter.k8s.aws", "eks.amazonaws.com")
        ),
        (labels.get("k8s.amazonaws.com/accelerator", ""), 0, 0),
        (labels.get("gpu.nvidia.com/model", ""), whole(labels.get("gpu.nvidia.com/count")), 0),
        (
            labels.get("aliyun.accelerator/nvidia_name", ""),
            whole(labels.get("aliyun.accelerator/nvidia_count")),
            0,
        ),
        *((labels.get(key, ""), 0, 0) for key in _NAMING_LABELS),
    ]
    if instance:  # knows the exact card where a provider's name stands for several
        named.insert(0, (*instance, 0))
    profile = labels.get("cloud.google.com/gke-gpu-partition-size", "")
    for spelling, count, sold_bytes in named:
        device = _catalogue_device(spelling, sold_bytes, host_memory_bytes)
        if device and profile:
            part = _part(device, profile)
            return Published((part,) * at_least, CapacitySource.CATALOGUE) if part else None
        if device:
            return Published((device,) * (count or at_least), CapacitySource.CATALOGUE)
    return None


def _part(device: Device, profile: str) -> Device | None:
    """One MIG slice of the device, with the catalogue's bytes."""
    row = resolve_product(device.product)
    slice_bytes = mig_memory_bytes(row, profile) if row else None
    if not slice_bytes:
        return None
    return replace(device, total_bytes=slice_bytes, nominal_bytes=slice_bytes, mig_profile=profile)


def _catalogue_device(spelling: str, sold_bytes: int, host_memory_bytes: int) -> Device | None:
    row = resolve_product(spelling) or resolve_product(f"{spelling}-{sold_bytes // MIB // 1024}gb")
    if not spelling or not row:
        return None
    if row.unified and host_memory_bytes:
        nominal_bytes = total_bytes = host_memory_bytes
    else:
        nominal_bytes, total_bytes = row.nvml_total_bytes, row.cuda_total_bytes
    return Device(
        product=row.product,
        total_bytes=total_bytes,
        nominal_bytes=nominal_bytes,
        compute_capability=row.compute_capability,
        unified=row.unified,
    )


def _labelled_capability(labels: Mapping[str, str]) -> tuple[int, int] | None:
    major = labels.get("nvidia.com/gpu.compute.major", "")
    minor = labels.get("nvidia.com/gpu.compute.minor", "")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None
