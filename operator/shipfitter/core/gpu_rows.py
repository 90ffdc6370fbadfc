"""The catalogue's rows for servers: one line of fact per GPU product, with where it was seen.

Columns: NVML's name · nominal GB as sold (the largest of that name) · MiB NVML reports as total
with driver R510 or newer · MiB CUDA reports as total, 0 where nobody published it · compute
capability · NVLink · other spellings · where the MiB were seen.

"rule" as a source means arithmetic from a neighbouring row: GDDR6 cards with ECC lose 1/16, HBM
cards lose nothing. "nominal" means the vendor's figure, not checked on a card. A bridge that must
be bought extra does not count as NVLink.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One product as it is written down here."""

    nvml_name: str
    nominal_gib: int
    nvml_total_mib: int
    cuda_total_mib: int
    compute_capability: tuple[int, int]
    nvlink: bool
    spellings: str  # separated by spaces; the NVML name and its label form need no mention
    source: str
    unified: bool = False


MODAL = "modal-labs/modal-client#2797"
CONFIGURATOR = "ai-dynamo/aiconfigurator system files"
SMI = "nvidia-smi output in public repositories"

DATACENTRE = (
    Row(
        *("NVIDIA H100 80GB HBM3", 80, 81559, 81090, (9, 0), True),
        "h100 h100-sxm h100-sxm5 h100-80gb h100-80gb-sxm nvidia-h100-80gb nvidia-h100-mega-80gb",
        MODAL + "; CUDA from vLLM start-up logs",
    ),
    Row(
        *("NVIDIA H100 PCIe", 80, 81559, 81008, (9, 0), False),
        "h100-pcie h100-80gb-pcie",
        MODAL + "; CUDA from PyTorch, 79.1 GiB",
    ),
    Row("NVIDIA H100 NVL", 94, 95830, 0, (9, 0), False, "h100-nvl h100-94gb", SMI),
    Row("NVIDIA H800", 80, 81559, 0, (9, 0), True, "h800 h800-80gb", SMI),
    Row("NVIDIA H20", 96, 97871, 0, (9, 0), True, "h20 h20-96gb", SMI),
    Row(
        *("NVIDIA H20-3e", 141, 143771, 143073, (9, 0), True),
        "h20-3e h20-141gb",
        "vllm-project/vllm#31273",
    ),
    Row(
        *("NVIDIA H200", 141, 143771, 143165, (9, 0), True),
        "h200 h200-sxm h200-141gb nvidia-h200-141gb",
        SMI + "; CUDA from vLLM start-up logs",
    ),
    Row("NVIDIA H200 NVL", 141, 143771, 143165, (9, 0), False, "h200-nvl", SMI),
    Row("NVIDIA GH200 480GB", 96, 97871, 0, (9, 0), False, "gh200 gh200-96gb", SMI),
    Row(
        *("NVIDIA GH200 144G HBM3e", 144, 147242, 145920, (9, 0), False),
        "gh200-144gb gh200-144g",
        "vllm-project/vllm#35356 for CUDA; the total by rule",
    ),
    Row(
        *("NVIDIA B200", 192, 183359, 182633, (10, 0), True),
        "b200 b200-180gb nvidia-b200",
        "NVIDIA/TensorRT-LLM#10278, unslothai/unsloth#9362",
    ),
    Row("NVIDIA GB200", 192, 189471, 0, (10, 0), True, "gb200 nvidia-gb200", CONFIGURATOR),
    Row(
        *("NVIDIA B300", 288, 275040, 274115, (10, 3), True),
        "b300 nvidia-b300 nvidia-b300-sxm6-ac",
        CONFIGURATOR + "; CUDA from vLLM start-up logs",
    ),
    Row("NVIDIA GB300", 288, 284208, 0, (10, 3), True, "gb300 nvidia-gb300", CONFIGURATOR),
    Row(
        *("NVIDIA A100-SXM4-80GB", 80, 81920, 81152, (8, 0), True),
        "a100-80gb a100-80 a100-sxm-80gb a100-80gb-sxm nvidia-a100-80gb",
        MODAL + ", NVIDIA/mig-parted#31",
    ),
    Row(
        *("NVIDIA A100 80GB PCIe", 80, 81920, 81152, (8, 0), False),
        "a100-80gb-pcie a100-pcie-80gb",
        MODAL,
    ),
    Row(
        *("NVIDIA A100-SXM4-40GB", 40, 40960, 40438, (8, 0), True),
        "a100-40gb a100-40 a100-sxm-40gb a100-40gb-sxm nvidia-tesla-a100",
        MODAL,
    ),
    Row(
        *("NVIDIA A100-PCIE-40GB", 40, 40960, 40438, (8, 0), False),
        "a100-40gb-pcie a100-pcie",
        SMI,
    ),
    Row(
        *("NVIDIA A800-SXM4-80GB", 80, 81920, 81152, (8, 0), True),
        "a800 a800-80gb",
        "pytorch/pytorch#37250",
    ),
    Row("NVIDIA A30", 24, 24576, 0, (8, 0), False, "a30 a30-24gb", "rule: HBM"),
    Row("NVIDIA A40", 48, 46068, 45363, (8, 6), False, "a40 a40-48gb", SMI),
    Row("NVIDIA A10", 24, 23028, 0, (8, 6), False, "a10 a10-24gb", MODAL),
    Row("NVIDIA A10G", 24, 23028, 0, (8, 6), False, "a10g a10g-24gb nvidia-a10g", SMI),
    Row("NVIDIA A16", 16, 15356, 0, (8, 6), False, "a16", SMI),
    Row("NVIDIA A2", 16, 15356, 0, (8, 6), False, "a2", SMI),
    Row(
        *("NVIDIA L4", 24, 23034, 22589, (8, 9), False),
        "l4 l4-24gb nvidia-l4",
        MODAL + "; CUDA from vLLM start-up logs",
    ),
    Row(
        *("NVIDIA L40S", 48, 46068, 45455, (8, 9), False),
        "l40s l40s-48gb nvidia-l40s",
        MODAL + "; CUDA from vLLM start-up logs",
    ),
    Row("NVIDIA L40", 48, 46068, 45455, (8, 9), False, "l40 l40-48gb", "rule: as L40S"),
    Row("NVIDIA L20", 48, 46068, 45455, (8, 9), False, "l20 l20-48gb", "rule: as L40S"),
    Row(
        *("Tesla T4", 16, 15360, 14910, (7, 5), False),
        "t4 t4-16gb nvidia-tesla-t4 nvidia-t4",
        MODAL + "; CUDA from vLLM start-up logs",
    ),
    Row(
        *("Tesla V100-SXM2-32GB", 32, 32768, 0, (7, 0), True),
        "v100-32gb v100-32",
        "NVIDIA/dcgm-exporter#385",
    ),
    Row(
        *("Tesla V100-SXM2-16GB", 16, 16384, 0, (7, 0), True),
        "v100-16gb v100-16 nvidia-tesla-v100",
        "rule: HBM",
    ),
    Row(
        *("Tesla P100-PCIE-16GB", 16, 16384, 0, (6, 0), False),
        "p100 p100-16gb nvidia-tesla-p100",
        "rule: HBM",
    ),
    Row("Tesla P40", 24, 23040, 0, (6, 1), False, "p40", "rule: GDDR5 with ECC"),
    Row(
        *("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 97887, 97249, (12, 0), False),
        "rtx-pro-6000 rtx-pro-6000-blackwell rtx-pro-server-6000 nvidia-rtx-pro-6000",
        CONFIGURATOR + "; CUDA from vLLM start-up logs",
    ),
)
