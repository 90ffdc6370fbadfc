"""Which card each cloud means by the letters in its instance types' names.

Source: what the providers publish of their instances, as known to the authors and not looked up
again for these rows; unsure are STACKIT's, Volcengine's and Huawei's letters. The same letters mean
other cards elsewhere, so every cloud has a table of its own.
"""

from shipfitter.core.instance_rows import PRO_6000

_H100, _H200, _B200 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-B200"
_B300, _GB200, _GB300, _GH200 = "NVIDIA-B300", "NVIDIA-GB200", "NVIDIA-GB300", "NVIDIA-GH200-480GB"
_H100_PCIE, _H20 = "NVIDIA-H100-PCIe", "NVIDIA-H20"
_A100_40, _A100_80 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"
_A100_PCIE, _A100_PCIE_40 = "NVIDIA-A100-80GB-PCIe", "NVIDIA-A100-PCIE-40GB"
_V100, _V100_32, _V100_PCIE = "Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB", "Tesla-V100-PCIE-16GB"
_T4, _A10, _L4, _L40S, _L40 = "Tesla-T4", "NVIDIA-A10", "NVIDIA-L4", "NVIDIA-L40S", "NVIDIA-L40"
_L20, _A30, _A40, _A16, _P100 = "NVIDIA-L20", "NVIDIA-A30", "NVIDIA-A40", "NVIDIA-A16", "Tesla-P100"
_A6000, _A5000, _A4000 = "NVIDIA-RTX-A6000", "NVIDIA-RTX-A5000", "NVIDIA-RTX-A4000"
_P100_PCIE = f"{_P100}-PCIE-16GB"
_ADA = {"4000ada": "NVIDIA-RTX-4000-Ada-Generation", "6000ada": "NVIDIA-RTX-6000-Ada-Generation"}

LAMBDA = {
    "a10": _A10,
    "a6000": _A6000,
    "rtx6000": "Quadro-RTX-6000",
    "a100": _A100_PCIE_40,
    "a100_sxm4": _A100_40,
    "a100_80gb_sxm4": _A100_80,
    "v100": _V100,
    "v100_n": _V100,
    "h100_pcie": _H100_PCIE,
    "h100_sxm5": _H100,
    "h100_sxm5gdr": _H100,
    "gh200": _GH200,
    "b200_sxm6": _B200,
}
LAMBDA_8_GPUS = {"a100": _A100_40}  # eight of them are on a board
COREWEAVE = {"a40": _A40, "a100": _A100_80, "l40": _L40, "l40s": _L40S, "gh200": _GH200}
COREWEAVE |= {"h100": _H100, "h100ib": _H100, "h200": _H200, "h200ib": _H200}
COREWEAVE_SHORT = {"b200": _B200, "b300": _B300, "gb200": _GB200, "gb300": _GB300}
COREWEAVE_SHORT |= {"rtxp6000": PRO_6000}
CRUSOE = {
    "a40": _A40,
    "a100": _A100_PCIE_40,
    "a100-80gb": _A100_PCIE,
    "a100-80gb-sxm": _A100_80,
    "l40s-48gb": _L40S,
    "h100-80gb-sxm": _H100,
    "h200-141gb-sxm": _H200,
    "b200-180gb-sxm": _B200,
    "gb200-186gb-nvl": _GB200,
}
DIGITALOCEAN = {"h100": _H100, "h200": _H200, "b300": _B300, "l40s": _L40S, **_ADA}
NEBIUS = {"h100": _H100, "h100-b": _H100, "h100-c": _H100, "h100-sxm": _H100, "h200-sxm": _H200}
NEBIUS |= {"b200-sxm": _B200, "b200-sxm-a": _B200, "b300-sxm": _B300, "rtx6000": PRO_6000}
NEBIUS |= {"l40s-a": _L40S, "l40s-d": _L40S, "gb200": _GB200, "gb300": _GB300}
VULTR = {"a100": _A100_PCIE, "a40": _A40, "l40s": _L40S, "l40": _L40, "a16": _A16, "gh200": _GH200}
VULTR |= {"h100": _H100, "h200": _H200, "b200": _B200, "b300": _B300}
IBM = {"v100": _V100_PCIE, "l4": _L4, "l40s": _L40S, "h100": _H100, "h200": _H200}
IBM |= {"a100": _A100_PCIE, "p100": _P100_PCIE}
SCALEWAY = {"l4": _L4, "l40s": _L40S, "h100": _H100_PCIE, "h100-sxm": _H100, "b300-sxm": _B300}
SCALEWAY_OLDER = {"render-s": _P100_PCIE, "gpu-3070-s": "NVIDIA-GeForce-RTX-3070"}
ALIBABA = {"gn5": _P100_PCIE, "gn5i": "Tesla-P4", "gn6i": _T4, "gn6v": _V100, "gn6e": _V100_32}
ALIBABA |= {"gn7i": _A10, "gn7": _A100_40, "gn7e": _A100_80, "gn7s": _A30, "gn7r": _A16}
ALIBABA |= {"gn8is": _L20, "gn8v": _H20}
ALIBABA_WHOLE = {  # bare metal: all of a machine
    "ebmgn6i": _T4,
    "ebmgn6v": _V100,
    "ebmgn6e": _V100_32,
    "ebmgn7": _A100_40,
    "ebmgn7e": _A100_80,
    "ebmgn7ex": _A100_80,
    "ebmgn7i": _A10,
    "ebmgn7ix": _A10,
    "ebmgn8is": _L20,
    "ebmgn8v": _H20,
}
OVH = {"t1": _V100, "t1-le": _V100, "t2": "Tesla-V100S-PCIE-32GB", "a10": _A10, "a100": _A100_PCIE}
OVH |= {"t2-le": "Tesla-V100S-PCIE-32GB", "h100": _H100_PCIE, "h200": _H200, "l4": _L4}
OVH |= {"l40s": _L40S, "rtx5000": "Quadro-RTX-5000"}
LINODE = {"g1-gpu-rtx6000-": "Quadro-RTX-6000", "g2-gpu-rtx4000a": _ADA["4000ada"]}
LINODE |= {"g3-gpu-rtxpro6000-blackwell-": PRO_6000}
TENCENT = {"gn7": _T4, "gn8": "Tesla-P40", "gn10x": _V100_32, "gn10xp": _V100_32}
TENCENT |= {"gt4": _A100_40, "pnv4": _A10}
HUAWEI = {"p2s": "Tesla-V100-PCIE-32GB", "p2v": _V100, "p2vs": _V100_32, "pi2": _T4}
VOLCENGINE = {"g1tl": _T4, "gni2": _A10, "gni3cl": _L20, "pni2": _A100_80}
HYPERSTACK = {
    "a100": _A100_PCIE,
    "a100-nvlink": _A100_PCIE,
    "a4000": _A4000,
    "h100": _H100_PCIE,
    "h100-nvlink": _H100_PCIE,
    "h100-sxm5": _H100,
    "h200-sxm5": _H200,
    "l40": _L40,
    "l40s": _L40S,
    "rtx-a4000": _A4000,
    "rtx-a5000": _A5000,
    "rtx-a6000": _A6000,
    "rtx-a6000-ada": _ADA["6000ada"],
    "rtx-pro6000-se": PRO_6000,
}
VERDA = {
    "a100": _A100_80,
    "a100.80s": _A100_80,
    "a100.40s": _A100_40,
    "h100": _H100,
    "h100.80s": _H100,
    "h200": _H200,
    "h200.141s": _H200,
    "b200": _B200,
    "b200.180s": _B200,
    "b300": _B300,
    "gb300": _GB300,
    "l40s": _L40S,
    "v100": _V100,
    "a6000": _A6000,
    "rtx6000ada": _ADA["6000ada"],
    "rtxpro6000": PRO_6000,
}
STACKIT = {"n1": _A100_PCIE, "n2": _L40S, "n3": _H100}
CIVO = {"a40": _A40, "a100": _A100_PCIE, "l40s": _L40S, "h100": _H100, "h200": _H200, "b200": _B200}
UPCLOUD = {"l40s": _L40S, "l4": _L4, "h100": _H100, "rtxpro6000": PRO_6000}
EXOSCALE = {"2": _V100_PCIE, "3": _A40, "a5000": _A5000, "3080ti": "NVIDIA-GeForce-RTX-3080-Ti"}
EXOSCALE |= {"rtx6000pro": PRO_6000}
GCORE = {"a100-80": _A100_80, "h100-80": _H100, "h200-141": _H200, "l40s-48": _L40S}
YANDEX = {"gpu-standard-v2": _V100_32, "gpu-standard-v3": _A100_80, "standard-v3-t4": _T4}
HETZNER = {"gex44": "NVIDIA-RTX-4000-SFF-Ada-Generation", "gex130": _ADA["6000ada"]}
HETZNER |= {"gex131": "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"}
ORACLE = {
    "a10": _A10,
    "gu1": _A10,
    "a100.40g": _A100_40,
    "a100.b40g": _A100_40,
    "a100.80g": _A100_80,
    "a100": _A100_80,
    "l40s": _L40S,
    "h100": _H100,
    "h100t": _H100,
    "h200": _H200,
    "b200": _B200,
    "b300": _B300,
    "gb200": _GB200,
    "gb300": _GB300,
    "rtxpro6000": PRO_6000,
}
