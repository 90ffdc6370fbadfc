"""The catalogue's rows for servers, Hopper to Blackwell Ultra; columns as in `gpu_rows`."""

from shipfitter.core.gpu_rows import CONFIGURATOR, LOGS, MODAL, RULE, SMI, Row

HOPPER = (
    Row(
        *("NVIDIA H100 80GB HBM3", 80, 81559, 81090, (9, 0), True),
        "h100 h100-sxm h100-sxm5 h100-80gb h100-80gb-sxm h100-80gb-sxm5 h100-sxm5-80gb "
        "h100-sxm-80gb nvidia-h100-80gb nvidia-h100-mega-80gb h100-nvlink-80gb h100-nvlink",
        f"{MODAL}; {LOGS}",
    ),
    Row(
        *("NVIDIA H100 PCIe", 80, 81559, 81008, (9, 0), False),
        "h100-pcie h100-80gb-pcie h100-pcie-80gb h100-80gb-hbm2e",
        f"{MODAL}; CUDA from PyTorch, 79.1 GiB",
    ),
    Row(
        *("NVIDIA H100 NVL", 94, 95830, 95252, (9, 0), False),
        "h100-nvl h100-94gb h100-nvl-94gb",
        f"{SMI}; {LOGS}, 93.02 GiB",
    ),
    Row(*("NVIDIA H800", 80, 81559, 81090, (9, 0), True), "h800 h800-80gb h800-sxm", SMI),
    Row(*("NVIDIA H800 PCIe", 80, 81559, 81008, (9, 0), False), "h800-pcie", f"{RULE}: as H100"),
    Row(
        *("NVIDIA H800 NVL", 94, 95830, 95252, (9, 0), False),
        "h800-nvl",
        f"{RULE}: as H100 NVL",
    ),
    Row(*("NVIDIA H20", 96, 97871, 0, (9, 0), True), "h20 h20-96gb h20-sxm", SMI),
    Row(
        *("NVIDIA H20-3e", 141, 143771, 143073, (9, 0), True),
        "h20-3e h20-141gb h20-141gb-sxm",
        "vllm-project/vllm#31273",
    ),
    Row(
        *("NVIDIA H200", 141, 143771, 143165, (9, 0), True),
        "h200 h200-sxm h200-sxm5 h200-141gb h200-141gb-sxm nvidia-h200-141gb h200-nvlink-141gb",
        f"{SMI}; {LOGS}",
    ),
    Row(
        *("NVIDIA H200 NVL", 141, 143771, 143165, (9, 0), False),
        "h200-nvl h200-nvl-141gb",
        SMI,
    ),
    Row(
        *("NVIDIA GH200 480GB", 96, 97871, 0, (9, 0), False),
        "gh200 gh200-96gb nvidia-gh200-96gb gh200-sxm",
        SMI,
    ),
    Row(
        *("NVIDIA GH200 120GB", 96, 97871, 0, (9, 0), False),
        "gh200-120gb",
        f"{RULE}: as GH200 480GB, with less host memory",
    ),
    Row(
        *("NVIDIA GH200 144G HBM3e", 144, 147242, 145920, (9, 0), False),
        "gh200-144gb gh200-144g",
        "vllm-project/vllm#35356 for CUDA; the total by rule",
    ),
)

BLACKWELL = (
    Row(*("NVIDIA B100", 192, 183359, 182633, (10, 0), True), "b100 b100-sxm", f"{RULE}: as B200"),
    Row(
        *("NVIDIA B200", 192, 183359, 182633, (10, 0), True),
        "b200 b200-180gb b200-sxm b200-sxm6 b200-192gb nvidia-b200",
        "NVIDIA/TensorRT-LLM#10278, unslothai/unsloth#9362",
    ),
    Row(
        *("NVIDIA GB200", 192, 189471, 0, (10, 0), True),
        "gb200 gb200-nvl72 nvidia-gb200",
        CONFIGURATOR,
    ),
    Row(
        *("NVIDIA B300", 288, 275040, 274115, (10, 3), True),
        "b300 b300-sxm b300-sxm6 nvidia-b300-sxm6-ac",
        f"{CONFIGURATOR}; {LOGS}",
    ),
    Row(
        *("NVIDIA GB300", 288, 284208, 0, (10, 3), True),
        "gb300 gb300-nvl72 nvidia-gb300",
        CONFIGURATOR,
    ),
    Row(
        *("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 97887, 97249, (12, 0), False),
        "rtx-pro-6000 rtx-pro-6000-blackwell rtx-pro-server-6000 rtx-pro-6000-bse rtxpro6000bse "
        "rtx-pro-6000-server nvidia-rtx-pro-6000 nvidia-rtx-pro-6000-blackwell-server "
        "rtx-6000-pro rtx-6000-blackwell rtx-6000-pro-blackwell rtx-pro6000-se rtx-pro-6000-s "
        "rtx-pro-6000-se rtxp6000 pro-6000",
        f"{CONFIGURATOR}; {LOGS}",
    ),
    Row(
        *("NVIDIA RTX PRO 4500 Blackwell Server Edition", 32, 32623, 32133, (12, 0), False),
        "rtx-pro-4500-server rtx-pro-server-4500",
        f"{RULE}: as RTX PRO 4500 Blackwell",
    ),
    Row(
        *("NVIDIA RTX 6000D", 84, 85632, 0, (12, 0), False),
        "rtx-pro-6000d rtx-6000d",
        f"{RULE}: GDDR7",
    ),
)
