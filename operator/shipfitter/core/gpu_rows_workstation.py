"""The catalogue's rows for workstations and for boards; columns as in `gpu_rows`."""

from shipfitter.core.gpu_rows import LOGS, NOMINAL, RULE, SMI, Ecc, Row

_GDDR7 = f"{RULE}: GDDR7"

WORKSTATION = (
    Row(
        *("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 97887, 97249, (12, 0), False),
        "rtx-pro-6000-workstation nvidia-rtx-pro-6000-blackwell-workstation rtx-pro-6000-ws "
        "rtx-pro-6000-we",
        SMI,
    ),
    Row(
        *("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96, 97887, 97249),
        *((12, 0), False),
        "rtx-pro-6000-max-q rtx-pro-6000-blackwell-max-q rtx-pro-6000-max-q-workstation "
        "rtx-pro-6000-wk-max-q",
        f"{RULE}: as the Workstation Edition",
    ),
    Row(
        *("NVIDIA RTX PRO 5000 72GB Blackwell", 72, 73415, 0, (12, 0), False),
        "rtx-pro-5000-72gb",
        _GDDR7,
    ),
    Row(
        *("NVIDIA RTX PRO 5000 Blackwell", 48, 48935, 0, (12, 0), False),
        "rtx-pro-5000 rtx-pro-5000-48gb",
        _GDDR7,
    ),
    Row(
        *("NVIDIA RTX PRO 4500 Blackwell", 32, 32623, 32133, (12, 0), False),
        "rtx-pro-4500",
        f"{LOGS}; the total by rule",
    ),
    Row(
        *("NVIDIA RTX PRO 4000 Blackwell", 24, 24467, 0, (12, 0), False),
        "rtx-pro-4000",
        "vLLM start-up logs, 23.89 GiB as NVML's total",
    ),
    Row(
        *("NVIDIA RTX PRO 4000 Blackwell SFF Edition", 24, 24467, 0, (12, 0), False),
        "rtx-pro-4000-sff",
        _GDDR7,
    ),
    Row(*("NVIDIA RTX PRO 2000 Blackwell", 16, 16311, 0, (12, 0), False), "rtx-pro-2000", _GDDR7),
    Row(
        *("NVIDIA RTX 6000 Ada Generation", 48, 49140, 0, (8, 9), False),
        "rtx-6000-ada rtx6000-ada 6000-ada 6000ada",
        SMI,
    ),
    Row(
        *("NVIDIA RTX 5880 Ada Generation", 48, 46068, 0, (8, 9), False),
        "rtx-5880-ada 5880-ada rtx-5880",
        SMI,
        ecc=Ecc.INLINE_ON,
    ),
    Row(
        *("NVIDIA RTX 5000 Ada Generation", 32, 32760, 0, (8, 9), False),
        "rtx-5000-ada 5000-ada",
        NOMINAL,
    ),
    Row(
        *("NVIDIA RTX 4500 Ada Generation", 24, 23034, 0, (8, 9), False),
        "rtx-4500-ada 4500-ada",
        "lium-io#1200",
        ecc=Ecc.INLINE_ON,
    ),
    Row(
        *("NVIDIA RTX 4000 Ada Generation", 20, 20475, 0, (8, 9), False),
        "rtx-4000-ada 4000-ada 4000ada",
        f"{RULE}: as the SFF card",
    ),
    Row(
        *("NVIDIA RTX 4000 SFF Ada Generation", 20, 20475, 0, (8, 9), False),
        "rtx-4000-sff-ada 4000-sff-ada",
        SMI,
    ),
    Row(
        *("NVIDIA RTX 2000 Ada Generation", 16, 16380, 0, (8, 9), False),
        "rtx-2000-ada 2000-ada",
        NOMINAL,
    ),
    Row(
        *("NVIDIA RTX 2000E Ada Generation", 16, 16380, 0, (8, 9), False),
        "rtx-2000e-ada",
        NOMINAL,
    ),
    Row(
        *("NVIDIA RTX A6000", 48, 49140, 48571, (8, 6), False),
        "a6000 rtx-a6000 a6000-48gb",
        f"{SMI}, 569 MiB reserved",
    ),
    Row(*("NVIDIA RTX A5500", 24, 24564, 0, (8, 6), False), "a5500 rtx-a5500", NOMINAL),
    Row(*("NVIDIA RTX A5000", 24, 24564, 0, (8, 6), False), "a5000 rtx-a5000", NOMINAL),
    Row(*("NVIDIA RTX A4500", 20, 20470, 0, (8, 6), False), "a4500 rtx-a4500", NOMINAL),
    Row(
        *("NVIDIA RTX A4000", 16, 16376, 0, (8, 6), False),
        "a4000 rtx-a4000 rtx-a4000h",
        "geerlingguy/raspberry-pi-pcie-devices#791",
    ),
    Row(*("NVIDIA RTX A2000 12GB", 12, 12282, 0, (8, 6), False), "rtx-a2000-12gb", NOMINAL),
    Row(*("NVIDIA RTX A2000", 6, 6138, 0, (8, 6), False), "a2000 rtx-a2000", NOMINAL),
    Row(*("NVIDIA RTX A1000", 8, 8188, 0, (8, 6), False), "a1000 rtx-a1000", NOMINAL),
    Row(*("NVIDIA RTX A400", 4, 4094, 0, (8, 6), False), "a400 rtx-a400", NOMINAL),
)

# The GPU's memory is the machine's: the figures are MemTotal as Linux shows it.
UNIFIED = (
    Row(
        *("NVIDIA GB10", 128, 124610, 124610, (12, 1), False),
        "gb10 dgx-spark gb10-dgx-spark dgx-spark-gb10",
        "NVIDIA/k8s-dra-driver-gpu#1073, Syllo/nvtop#411",
        unified=True,
    ),
    Row(
        *("Orin (nvgpu)", 64, 62840, 62840, (8, 7), False),
        "orin jetson-orin jetson-agx-orin nvidia-jetson-agx-orin agx-orin",
        "nominal less what firmware keeps; a 32 GB module has the same name",
        unified=True,
    ),
    Row(
        *("NVIDIA Thor", 128, 125770, 125770, (11, 0), False),
        "thor jetson-thor nvidia-jetson-thor jetson-agx-thor jetson-thor-t5000 jetson-t5000",
        "nominal less what firmware keeps",
        unified=True,
    ),
)
