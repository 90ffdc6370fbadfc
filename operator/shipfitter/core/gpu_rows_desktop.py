"""The catalogue's rows for workstations, desktops and boards; columns as in `gpu_rows`."""

from shipfitter.core.gpu_rows import SMI, Row

WORKSTATION = (
    Row(
        *("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 97887, 97249, (12, 0), False),
        "rtx-pro-6000-workstation nvidia-rtx-pro-6000-blackwell-workstation",
        SMI,
    ),
    Row(
        *("NVIDIA RTX PRO 4500 Blackwell", 32, 32623, 32133, (12, 0), False),
        "rtx-pro-4500",
        "CUDA from vLLM start-up logs; the total by rule",
    ),
    Row(
        *("NVIDIA RTX 6000 Ada Generation", 48, 49140, 0, (8, 9), False),
        "rtx-6000-ada rtx6000-ada 6000-ada",
        SMI,
    ),
    Row("NVIDIA RTX 5880 Ada Generation", 48, 46068, 0, (8, 9), False, "rtx-5880-ada", SMI),
    Row("NVIDIA RTX 5000 Ada Generation", 32, 32760, 0, (8, 9), False, "rtx-5000-ada", "nominal"),
    Row(
        *("NVIDIA RTX 4500 Ada Generation", 24, 23034, 0, (8, 9), False),
        "rtx-4500-ada",
        "lium-io#1200",
    ),
    Row("NVIDIA RTX 4000 SFF Ada Generation", 20, 20475, 0, (8, 9), False, "rtx-4000-sff-ada", SMI),
    Row(
        *("NVIDIA RTX A6000", 48, 49140, 48571, (8, 6), False),
        "a6000 rtx-a6000",
        SMI + ", 569 MiB reserved",
    ),
    Row("NVIDIA RTX A5000", 24, 24564, 0, (8, 6), False, "a5000 rtx-a5000", "nominal"),
    Row(
        *("NVIDIA RTX A4000", 16, 16376, 0, (8, 6), False),
        "a4000 rtx-a4000",
        "geerlingguy/raspberry-pi-pcie-devices#791",
    ),
    Row(
        *("NVIDIA GeForce RTX 5090", 32, 32607, 32113, (12, 0), False),
        "5090 rtx-5090",
        "noonghunna/club-3090#1107; CUDA from vLLM start-up logs",
    ),
    Row("NVIDIA GeForce RTX 5080", 16, 16303, 0, (12, 0), False, "5080 rtx-5080", SMI),
    Row("NVIDIA GeForce RTX 5070 Ti", 16, 16303, 15842, (12, 0), False, "5070-ti rtx-5070-ti", SMI),
    Row(
        *("NVIDIA GeForce RTX 5070", 12, 12227, 0, (12, 0), False),
        "5070 rtx-5070",
        "libc6-shim#14",
    ),
    Row(
        *("NVIDIA GeForce RTX 5060 Ti", 16, 16311, 15882, (12, 0), False),
        "5060-ti rtx-5060-ti 5060-ti-16gb",
        "CUDA from vLLM start-up logs; the total by rule. An 8 GB card has the same name",
    ),
    Row(
        *("NVIDIA GeForce RTX 4090", 24, 24564, 24210, (8, 9), False),
        "4090 rtx-4090",
        "vllm-project/vllm#7553",
    ),
    Row("NVIDIA GeForce RTX 4080", 16, 16376, 0, (8, 9), False, "4080 rtx-4080", SMI),
    Row(
        *("NVIDIA GeForce RTX 4080 SUPER", 16, 16376, 0, (8, 9), False),
        "4080-super rtx-4080-super",
        SMI,
    ),
    Row(
        *("NVIDIA GeForce RTX 4070 Ti SUPER", 16, 16376, 0, (8, 9), False),
        "4070-ti-super rtx-4070-ti-super",
        SMI,
    ),
    Row(
        *("NVIDIA GeForce RTX 3090", 24, 24576, 24123, (8, 6), False),
        "3090 rtx-3090",
        "noonghunna/club-3090#747",
    ),
    Row(
        *("NVIDIA GeForce RTX 3090 Ti", 24, 24564, 24142, (8, 6), False),
        "3090-ti rtx-3090-ti",
        SMI + " for CUDA; the total by rule",
    ),
    Row("NVIDIA GeForce RTX 3080", 10, 10240, 0, (8, 6), False, "3080 rtx-3080", "nominal"),
    Row(
        *("NVIDIA GeForce RTX 3060", 12, 12288, 0, (8, 6), False),
        "3060 rtx-3060",
        "geerlingguy/raspberry-pi-pcie-devices#790. An 8 GB card has the same name",
    ),
    Row(
        *("NVIDIA GeForce RTX 2080 Ti", 11, 11264, 0, (7, 5), False),
        "2080-ti rtx-2080-ti",
        "nominal; modified cards with 22 GB carry the same name",
    ),
    Row(
        *("NVIDIA TITAN RTX", 24, 24576, 0, (7, 5), False),
        "titan-rtx",
        "weicj/2080Ti-LLM-Toolbox#2",
    ),
)

# The GPU's memory is the machine's: the figures are MemTotal as Linux shows it.
UNIFIED = (
    Row(
        *("NVIDIA GB10", 128, 124610, 124610, (12, 1), False),
        "gb10 dgx-spark gb10-dgx-spark",
        "NVIDIA/k8s-dra-driver-gpu#1073, Syllo/nvtop#411",
        unified=True,
    ),
    Row(
        *("Orin (nvgpu)", 64, 62840, 62840, (8, 7), False),
        "orin jetson-orin jetson-agx-orin nvidia-jetson-agx-orin",
        "nominal less what firmware keeps; a 32 GB module has the same name",
        unified=True,
    ),
    Row(
        *("NVIDIA Thor", 128, 125770, 125770, (11, 0), False),
        "thor jetson-thor nvidia-jetson-thor jetson-agx-thor",
        "nominal less what firmware keeps",
        unified=True,
    ),
)
