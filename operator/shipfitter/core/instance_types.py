"""Cloud instance types: which GPU product they carry, and how many.

Source: the providers' public instance documentation (AWS EC2 accelerated computing, Google Cloud
GPU machine types, Azure N-series), as nominal facts; a measurement or a GPU label always wins.
"""

from functools import cache

_ONE_TO_SIXTEEN_XLARGE = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")

# family: (product, {size: GPUs})
_FAMILIES: dict[str, tuple[str, dict[str, int]]] = {
    "g4dn": (
        "Tesla-T4",
        dict.fromkeys(_ONE_TO_SIXTEEN_XLARGE, 1) | {"12xlarge": 4, "metal": 8},
    ),
    "g5": (
        "NVIDIA-A10G",
        dict.fromkeys(_ONE_TO_SIXTEEN_XLARGE, 1) | {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8},
    ),
    "g6": (
        "NVIDIA-L4",
        dict.fromkeys(_ONE_TO_SIXTEEN_XLARGE, 1) | {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8},
    ),
    "gr6": ("NVIDIA-L4", {"4xlarge": 1, "8xlarge": 1}),
    "g6e": (
        "NVIDIA-L40S",
        dict.fromkeys(_ONE_TO_SIXTEEN_XLARGE, 1) | {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8},
    ),
    "g7e": (
        "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
    ),
    "p3": ("Tesla-V100-SXM2-16GB", {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}),
    "p3dn": ("Tesla-V100-SXM2-32GB", {"24xlarge": 8}),
    "p4d": ("NVIDIA-A100-SXM4-40GB", {"24xlarge": 8}),
    "p4de": ("NVIDIA-A100-SXM4-80GB", {"24xlarge": 8}),
    "p5": ("NVIDIA-H100-80GB-HBM3", {"4xlarge": 1, "48xlarge": 8}),
    "p5e": ("NVIDIA-H200", {"48xlarge": 8}),
    "p5en": ("NVIDIA-H200", {"48xlarge": 8}),
    "p6-b200": ("NVIDIA-B200", {"48xlarge": 8}),
    "p6-b300": ("NVIDIA-B300", {"48xlarge": 8}),
    "p6e-gb200": ("NVIDIA-GB200", {"36xlarge": 4}),
}

_GOOGLE_G2_GPUS = {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}
_GOOGLE_G4_GPUS = {48: 1, 96: 2, 192: 4, 384: 8}

_NAMED: dict[str, tuple[str, int]] = {
    **{f"g2-standard-{cpus}": ("NVIDIA-L4", gpus) for cpus, gpus in _GOOGLE_G2_GPUS.items()},
    **{
        f"g4-standard-{cpus}": ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", gpus)
        for cpus, gpus in _GOOGLE_G4_GPUS.items()
    },
    **{f"a2-highgpu-{gpus}g": ("NVIDIA-A100-SXM4-40GB", gpus) for gpus in (1, 2, 4, 8)},
    "a2-megagpu-16g": ("NVIDIA-A100-SXM4-40GB", 16),
    **{f"a2-ultragpu-{gpus}g": ("NVIDIA-A100-SXM4-80GB", gpus) for gpus in (1, 2, 4, 8)},
    **{f"a3-highgpu-{gpus}g": ("NVIDIA-H100-80GB-HBM3", gpus) for gpus in (1, 2, 4, 8)},
    "a3-megagpu-8g": ("NVIDIA-H100-80GB-HBM3", 8),
    "a3-edgegpu-8g": ("NVIDIA-H100-80GB-HBM3", 8),
    "a3-ultragpu-8g": ("NVIDIA-H200", 8),
    "a4-highgpu-8g": ("NVIDIA-B200", 8),
    "a4x-highgpu-4g": ("NVIDIA-GB200", 4),
    "standard_nc4as_t4_v3": ("Tesla-T4", 1),
    "standard_nc8as_t4_v3": ("Tesla-T4", 1),
    "standard_nc16as_t4_v3": ("Tesla-T4", 1),
    "standard_nc64as_t4_v3": ("Tesla-T4", 4),
    "standard_nc24ads_a100_v4": ("NVIDIA-A100-80GB-PCIe", 1),
    "standard_nc48ads_a100_v4": ("NVIDIA-A100-80GB-PCIe", 2),
    "standard_nc96ads_a100_v4": ("NVIDIA-A100-80GB-PCIe", 4),
    "standard_nc40ads_h100_v5": ("NVIDIA-H100-NVL", 1),
    "standard_nc80adis_h100_v5": ("NVIDIA-H100-NVL", 2),
    "standard_nv36ads_a10_v5": ("NVIDIA-A10", 1),
    "standard_nv72ads_a10_v5": ("NVIDIA-A10", 2),
    "standard_nd96asr_v4": ("NVIDIA-A100-SXM4-40GB", 8),
    "standard_nd96amsr_a100_v4": ("NVIDIA-A100-SXM4-80GB", 8),
    "standard_nd96isr_h100_v5": ("NVIDIA-H100-80GB-HBM3", 8),
    "standard_nd96isr_h200_v5": ("NVIDIA-H200", 8),
    "standard_nd128isr_ndr_gb200_v6": ("NVIDIA-GB200", 4),
    "standard_nd128isr_gb300_v6": ("NVIDIA-GB300", 4),
}


def instance_gpus(instance_type: str) -> tuple[str, int] | None:
    """Product and number of GPUs of an instance type; None for one without GPUs or not known.

    >>> instance_gpus("g6e.12xlarge"), instance_gpus("Standard_ND96isr_H100_v5")
    (('NVIDIA-L40S', 4), ('NVIDIA-H100-80GB-HBM3', 8))
    >>> instance_gpus("m7i.large") is None
    True
    """
    return _by_name().get(instance_type.lower())


@cache
def _by_name() -> dict[str, tuple[str, int]]:
    return _NAMED | {
        f"{family}.{size}": (product, gpus)
        for family, (product, sizes) in _FAMILIES.items()
        for size, gpus in sizes.items()
    }
