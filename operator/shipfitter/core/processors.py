"""Streaming multiprocessors of a card: kernels that keep a row for each of them."""

from shipfitter.core.engines import Gpu

# Source: NVIDIA's data sheets (CUDA cores / 128, or / 64 before Ampere and on A100 and A30).
_COUNTS = {
    148: ("B200", "GB200", "B100"),
    132: ("H100-80GB", "H100-NVL", "H200", "GH200", "H800"),
    114: ("H100-PCIe", "H800-PCIe", "RTX-4090-D"),
    78: ("H20",),
    142: ("L40", "L40S", "RTX-6000-Ada"),
    92: ("L20",),
    58: ("L4",),
    108: ("A100", "A800"),
    56: ("A30",),
    84: ("A40", "RTX-A6000", "RTX-3090-Ti", "RTX-5080"),
    80: ("A10G", "V100", "RTX-4080-SUPER"),
    72: ("A10", "Quadro-RTX-8000", "Quadro-RTX-6000", "TITAN-RTX"),
    40: ("Tesla-T4",),
    188: ("RTX-PRO-6000",),
    170: ("RTX-5090",),
    70: ("RTX-5070-Ti", "CMP-170HX"),
    48: ("RTX-5070", "RTX-A4000", "GB10"),
    36: ("RTX-5060-Ti",),
    30: ("RTX-5060",),
    128: ("RTX-4090",),
    76: ("RTX-4080",),
    66: ("RTX-4070-Ti-SUPER",),
    60: ("RTX-4070-Ti",),
    46: ("RTX-4070", "RTX-3070"),
    34: ("RTX-4060-Ti",),
    24: ("RTX-4060",),
    82: ("RTX-3090",),
    68: ("RTX-3080", "RTX-2080-Ti"),
    64: ("RTX-A5000",),
    28: ("RTX-3060",),
}
_PREFIXES = sorted(
    ((prefix, count) for count, prefixes in _COUNTS.items() for prefix in prefixes),
    key=lambda row: -len(row[0]),
)
ASSUMED_COUNT = 132  # Hopper's: of what has no row here, few have more


def processors_of(gpu: Gpu) -> int:
    """The card's count, by its product's name; a laptop's card has fewer than its namesake."""
    name = gpu.product.removeprefix("NVIDIA-").removeprefix("GeForce-")
    counts = (count for prefix, count in _PREFIXES if name.startswith(prefix))
    return next(counts, ASSUMED_COUNT)
