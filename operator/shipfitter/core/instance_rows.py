"""Instance types of AWS, Google, Azure and Oracle: which GPU product they carry, and how many.

Only types with whole GPUs: a fraction of one (g6f, NV6ads, g4-standard-6) is no card. Source: the
providers' public instance documentation, as nominal facts; a measurement or a GPU label wins.
"""

PRO_6000 = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"

_ONE = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")
_ONE_TO_EIGHT = dict.fromkeys(_ONE, 1) | {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8}

# AWS: family: (product, {size: GPUs})
AWS_FAMILIES: dict[str, tuple[str, dict[str, int]]] = {
    "g4dn": ("Tesla-T4", dict.fromkeys(_ONE, 1) | {"12xlarge": 4, "metal": 8}),
    "g5": ("NVIDIA-A10G", _ONE_TO_EIGHT),
    "g5g": (
        "NVIDIA-T4G",
        dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge"), 1) | {"16xlarge": 2, "metal": 2},
    ),
    "g6": ("NVIDIA-L4", _ONE_TO_EIGHT),
    "gr6": ("NVIDIA-L4", {"4xlarge": 1, "8xlarge": 1}),
    "g6e": ("NVIDIA-L40S", _ONE_TO_EIGHT),
    "g7e": (
        PRO_6000,
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
    "p6e-gb300": ("NVIDIA-GB300", {"36xlarge": 4}),
}

_GOOGLE_G2 = {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}
_GOOGLE_G4 = {48: 1, 96: 2, 192: 4, 384: 8}

GOOGLE: dict[str, tuple[str, int]] = {
    **{f"g2-standard-{cpus}": ("NVIDIA-L4", gpus) for cpus, gpus in _GOOGLE_G2.items()},
    **{f"g4-standard-{cpus}": (PRO_6000, gpus) for cpus, gpus in _GOOGLE_G4.items()},
    **{f"a2-highgpu-{gpus}g": ("NVIDIA-A100-SXM4-40GB", gpus) for gpus in (1, 2, 4, 8)},
    "a2-megagpu-16g": ("NVIDIA-A100-SXM4-40GB", 16),
    **{f"a2-ultragpu-{gpus}g": ("NVIDIA-A100-SXM4-80GB", gpus) for gpus in (1, 2, 4, 8)},
    **{f"a3-highgpu-{gpus}g": ("NVIDIA-H100-80GB-HBM3", gpus) for gpus in (1, 2, 4, 8)},
    "a3-megagpu-8g": ("NVIDIA-H100-80GB-HBM3", 8),
    "a3-edgegpu-8g": ("NVIDIA-H100-80GB-HBM3", 8),
    "a3-ultragpu-8g": ("NVIDIA-H200", 8),
    "a4-highgpu-8g": ("NVIDIA-B200", 8),
    "a4x-highgpu-4g": ("NVIDIA-GB200", 4),
    "a4x-maxgpu-4g-metal": ("NVIDIA-GB300", 4),
}

_AZURE_PRO_6000 = {"128ds": 1, "128lds": 1, "256ds": 2, "256lds": 2, "320ds": 2, "320lds": 2}

AZURE: dict[str, tuple[str, int]] = {
    "standard_nc6s_v2": ("Tesla-P100-PCIE-16GB", 1),
    "standard_nc12s_v2": ("Tesla-P100-PCIE-16GB", 2),
    "standard_nc24s_v2": ("Tesla-P100-PCIE-16GB", 4),
    "standard_nc24rs_v2": ("Tesla-P100-PCIE-16GB", 4),
    "standard_nd6s": ("Tesla-P40", 1),
    "standard_nd12s": ("Tesla-P40", 2),
    "standard_nd24s": ("Tesla-P40", 4),
    "standard_nd24rs": ("Tesla-P40", 4),
    **{
        f"standard_nc{size}_xl_rtxpro6000bse_v6": (PRO_6000, gpus)
        for size, gpus in _AZURE_PRO_6000.items()
    },
    "standard_nc6s_v3": ("Tesla-V100-PCIE-16GB", 1),
    "standard_nc12s_v3": ("Tesla-V100-PCIE-16GB", 2),
    "standard_nc24s_v3": ("Tesla-V100-PCIE-16GB", 4),
    "standard_nc24rs_v3": ("Tesla-V100-PCIE-16GB", 4),
    "standard_nd40rs_v2": ("Tesla-V100-SXM2-32GB", 8),
    "standard_nc4as_t4_v3": ("Tesla-T4", 1),
    "standard_nc8as_t4_v3": ("Tesla-T4", 1),
    "standard_nc16as_t4_v3": ("Tesla-T4", 1),
    "standard_nc64as_t4_v3": ("Tesla-T4", 4),
    "standard_nc24ads_a100_v4": ("NVIDIA-A100-80GB-PCIe", 1),
    "standard_nc48ads_a100_v4": ("NVIDIA-A100-80GB-PCIe", 2),
    "standard_nc96ads_a100_v4": ("NVIDIA-A100-80GB-PCIe", 4),
    "standard_nc40ads_h100_v5": ("NVIDIA-H100-NVL", 1),
    "standard_nc80adis_h100_v5": ("NVIDIA-H100-NVL", 2),
    "standard_ncc40ads_h100_v5": ("NVIDIA-H100-NVL", 1),
    "standard_nv36ads_a10_v5": ("NVIDIA-A10", 1),
    "standard_nv36adms_a10_v5": ("NVIDIA-A10", 1),
    "standard_nv72ads_a10_v5": ("NVIDIA-A10", 2),
    "standard_nd96asr_v4": ("NVIDIA-A100-SXM4-40GB", 8),
    "standard_nd96asr_a100_v4": ("NVIDIA-A100-SXM4-40GB", 8),
    "standard_nd96amsr_a100_v4": ("NVIDIA-A100-SXM4-80GB", 8),
    "standard_nd96isr_h100_v5": ("NVIDIA-H100-80GB-HBM3", 8),
    "standard_nd96is_h100_v5": ("NVIDIA-H100-80GB-HBM3", 8),
    "standard_nd96isr_h200_v5": ("NVIDIA-H200", 8),
    "standard_nd96is_h200_v5": ("NVIDIA-H200", 8),
    "standard_nd96is_flex_h100_v5": ("NVIDIA-H100-80GB-HBM3", 8),
    "standard_nd96is_flex_h200_v5": ("NVIDIA-H200", 8),
    "standard_nd128isr_ndr_gb300_v6": ("NVIDIA-GB300", 4),
    "standard_nd128isr_ndr_gb200_v6": ("NVIDIA-GB200", 4),
    "standard_nd128isr_gb300_v6": ("NVIDIA-GB300", 4),
}

ORACLE: dict[str, tuple[str, int]] = {
    "vm.gpu2.1": ("Tesla-P100-SXM2-16GB", 1),
    "bm.gpu2.2": ("Tesla-P100-SXM2-16GB", 2),
    **{f"vm.gpu3.{gpus}": ("Tesla-V100-SXM2-16GB", gpus) for gpus in (1, 2, 4)},
    "bm.gpu3.8": ("Tesla-V100-SXM2-16GB", 8),
    "bm.gpu4.8": ("NVIDIA-A100-SXM4-40GB", 8),
    "bm.gpu.b4.8": ("NVIDIA-A100-SXM4-40GB", 8),
    "bm.gpu.gm4.8": ("NVIDIA-A100-SXM4-80GB", 8),
    "bm.gpu.a100-v2.8": ("NVIDIA-A100-SXM4-80GB", 8),
}
