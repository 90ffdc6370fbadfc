"""Instance types of GPU clouds whose names say what is in them: a pattern for each cloud.

Source: the providers' public lists of instances and the node labels of their Kubernetes services.
A pattern captures the card's spelling and, where the name tells, how many; the card must then be
one the table names, for the same letters mean other cards elsewhere.
"""

import re

from shipfitter.core.instance_rows import PRO_6000

_H100, _H200, _B200 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-B200"
_A100_40, _A100_80 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"
_A100_PCIE = "NVIDIA-A100-80GB-PCIe"
_V100, _V100_32 = "Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB"
_T4, _A10, _L4, _L40S, _L40 = "Tesla-T4", "NVIDIA-A10", "NVIDIA-L4", "NVIDIA-L40S", "NVIDIA-L40"

_LAMBDA = {
    "a10": _A10,
    "a6000": "NVIDIA-RTX-A6000",
    "rtx6000": "Quadro-RTX-6000",
    "a100": "NVIDIA-A100-PCIE-40GB",
    "a100_sxm4": _A100_40,
    "a100_80gb_sxm4": _A100_80,
    "v100": _V100,
    "v100_n": _V100,
    "h100_pcie": "NVIDIA-H100-PCIe",
    "h100_sxm5": _H100,
    "gh200": "NVIDIA-GH200-480GB",
    "b200_sxm6": _B200,
}
_COREWEAVE = {
    "a40": "NVIDIA-A40",
    "a100": _A100_80,
    "l40": _L40,
    "l40s": _L40S,
    "h100": _H100,
    "h100ib": _H100,
    "h200": _H200,
    "h200ib": _H200,
    "gh200": "NVIDIA-GH200-480GB",
}
_COREWEAVE_SHORT = {
    "b200": _B200,
    "b300": "NVIDIA-B300",
    "gb200": "NVIDIA-GB200",
    "gb300": "NVIDIA-GB300",
    "rtxp6000": PRO_6000,
}
_DIGITALOCEAN = {
    "h100": _H100,
    "h200": _H200,
    "l40s": _L40S,
    "4000ada": "NVIDIA-RTX-4000-Ada-Generation",
    "6000ada": "NVIDIA-RTX-6000-Ada-Generation",
}
_NEBIUS = {"h100-sxm": _H100, "h200-sxm": _H200, "b200-sxm": _B200, "b300-sxm": "NVIDIA-B300"}
_NEBIUS |= {"l40s-a": _L40S, "l40s-d": _L40S}
_IBM = {"v100": "Tesla-V100-PCIE-16GB", "l4": _L4, "l40s": _L40S, "h100": _H100, "h200": _H200}
_IBM |= {"a100": "NVIDIA-A100-PCIE-40GB"}
_SCALEWAY = {"l4": _L4, "l40s": _L40S, "h100": "NVIDIA-H100-PCIe", "h100-sxm": _H100}
_ALIBABA = {"gn6i": _T4, "gn6v": _V100, "gn7i": _A10, "gn7": _A100_40, "gn7e": _A100_80}
_ALIBABA |= {"gn8is": "NVIDIA-L20"}
_OVH = {"t1": _V100, "t2": "Tesla-V100S-PCIE-32GB", "a10": _A10, "a100": _A100_PCIE}
_OVH |= {"h100": "NVIDIA-H100-PCIe", "l4": _L4, "l40s": _L40S}
_LINODE = {"g1-gpu-rtx6000": "Quadro-RTX-6000", "g2-gpu-rtx4000a": "NVIDIA-RTX-4000-Ada-Generation"}
_TENCENT = {"gn7": _T4, "gn10x": _V100_32, "gn10xp": _V100_32, "gt4": _A100_40, "pnv4": _A10}

# (pattern of the whole name, cards by the spelling in it); groups: card, and gpus where told
PATTERNS: tuple[tuple[re.Pattern[str], dict[str, str]], ...] = tuple(
    (re.compile(pattern), cards)
    for pattern, cards in (
        (r"gpu_(?P<gpus>\d+)x_(?P<card>\w+)", _LAMBDA),
        (r"gd-(?P<gpus>\d+)x(?P<card>\w+)-i\d+", _COREWEAVE),
        (r"gd-(?P<gpus>\d+)x(?P<card>gh200)", _COREWEAVE),
        (r"(?P<card>[a-z]+\d+)-(?P<gpus>\d)x", _COREWEAVE_SHORT),
        (r"gpu-(?P<card>\w+?)x(?P<gpus>\d+)-\d+gb", _DIGITALOCEAN),
        (r"gpu-(?P<card>[a-z]+\d+s?-\w+)", _NEBIUS),
        (r"gx[23]d?-\d+x\d+x(?P<gpus>\d+)(?P<card>[a-z]\d+s?)", _IBM),
        (r"(?P<card>[a-z]\d+s?(?:-sxm)?)-(?P<gpus>\d+)-\d+g", _SCALEWAY),
        (r"ecs\.(?P<card>gn\d\w*)-[\w.-]+", _ALIBABA),
        (r"(?P<card>[a-z]\d+s?)-(?:45|90|180|360|380|760|1520)", _OVH),
        (r"(?P<card>g1-gpu-rtx6000)-(?P<gpus>\d)", _LINODE),
        (r"(?P<card>g2-gpu-rtx4000a)(?P<gpus>\d)-\w+", _LINODE),
        (r"(?P<card>gn7|gn10xp?|gt4|pnv4)\.\d*(?:large|xlarge)\d+", _TENCENT),
    )
)
