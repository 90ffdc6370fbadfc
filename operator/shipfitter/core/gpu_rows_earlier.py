"""The catalogue's rows for servers, Pascal to Ada; columns as in `gpu_rows`."""

from shipfitter.core.gpu_rows import LOGS, MODAL, NOMINAL, RULE, SMI, Ecc, Row

ADA = (
    Row(
        *("NVIDIA L4", 24, 23034, 22589, (8, 9), False),
        "l4 l4-24gb nvidia-l4 nvidia-l4-24gb",
        f"{MODAL}; {LOGS}",
    ),
    Row(
        *("NVIDIA L40S", 48, 46068, 45455, (8, 9), False),
        "l40s l40s-48gb nvidia-l40s nvidia-l40s-48gb",
        f"{MODAL}; {LOGS}",
    ),
    Row(*("NVIDIA L40", 48, 46068, 45455, (8, 9), False), "l40 l40-48gb", f"{RULE}: as L40S"),
    Row(*("NVIDIA L40G", 24, 23034, 22589, (8, 9), False), "l40g l40g-24gb", f"{RULE}: as L4"),
    Row(*("NVIDIA L20", 48, 46068, 45455, (8, 9), False), "l20 l20-48gb", f"{RULE}: as L40S"),
    Row(*("NVIDIA L2", 24, 23034, 22589, (8, 9), False), "l2 l2-24gb", f"{RULE}: as L4"),
)

AMPERE = (
    Row(
        *("NVIDIA A100-SXM4-80GB", 80, 81920, 81152, (8, 0), True),
        "a100-80gb a100-80 a100-sxm-80gb a100-80gb-sxm a100-80gb-sxm4 nvidia-a100-80gb "
        "a100-nvlink-80gb",
        f"{MODAL}, NVIDIA/mig-parted#31; {LOGS}",
    ),
    Row(
        *("NVIDIA A100 80GB PCIe", 80, 81920, 81152, (8, 0), False),
        "a100-80gb-pcie a100-pcie-80gb",
        MODAL,
    ),
    Row(
        *("NVIDIA A100-SXM4-40GB", 40, 40960, 40438, (8, 0), True),
        "a100-40gb a100-40 a100-sxm-40gb a100-40gb-sxm a100-40gb-sxm4 nvidia-tesla-a100 "
        "nvidia-a100-40gb a100-nvlink a100-nvlink-40gb",
        f"{MODAL}; {LOGS}",
    ),
    Row(
        *("NVIDIA A100-PCIE-40GB", 40, 40960, 40438, (8, 0), False),
        "a100-40gb-pcie a100-pcie",
        SMI,
    ),
    Row(*("NVIDIA A100-SXM-64GB", 64, 65536, 0, (8, 0), True), "a100-64gb", f"{RULE}: HBM"),
    Row(*("NVIDIA A100X", 80, 81920, 81152, (8, 0), False), "a100x a100x-80gb", f"{RULE}: HBM"),
    Row(
        *("NVIDIA A800-SXM4-80GB", 80, 81920, 81152, (8, 0), True),
        "a800 a800-80gb a800-sxm4",
        f"pytorch/pytorch#37250; {LOGS}, 79.33 GiB",
    ),
    Row(*("NVIDIA A800 80GB PCIe", 80, 81920, 81152, (8, 0), False), "a800-pcie", f"{RULE}: HBM"),
    Row(
        *("NVIDIA A800 40GB Active", 40, 40960, 40438, (8, 0), False),
        "a800-40gb-active a800-40gb a800-40gb-pcie",
        f"{RULE}: HBM",
    ),
    Row(
        *("NVIDIA A800-SXM4-40GB", 40, 40960, 40438, (8, 0), True),
        "a800-sxm-40gb",
        f"{RULE}: HBM",
    ),
    Row(*("NVIDIA A30", 24, 24576, 0, (8, 0), False), "a30 a30-24gb nvidia-a30", f"{RULE}: HBM"),
    Row(*("NVIDIA A30X", 24, 24576, 0, (8, 0), False), "a30x", f"{RULE}: HBM"),
    Row(
        *("NVIDIA A40", 48, 46068, 45363, (8, 6), False),
        "a40 a40-48gb nvidia-a40",
        SMI,
    ),
    Row(
        *("NVIDIA A10", 24, 23028, 22589, (8, 6), False),
        "a10 a10-24gb nvidia-a10",
        f"{MODAL}; {LOGS}, 22.06 GiB",
    ),
    Row(*("NVIDIA A10G", 24, 23028, 22589, (8, 6), False), "a10g a10g-24gb nvidia-a10g", SMI),
    Row(*("NVIDIA A10M", 24, 23028, 22589, (8, 6), False), "a10m", f"{RULE}: as A10"),
    Row(*("NVIDIA A16", 16, 15356, 0, (8, 6), False), "a16 a16-16gb nvidia-a16", SMI),
    Row(*("NVIDIA A2", 16, 15356, 0, (8, 6), False), "a2 a2-16gb nvidia-a2", SMI),
)

# V100 and older are no engine's choice any more; clusters still have them.
OLDER = (
    Row(
        *("Tesla T4", 16, 15360, 14950, (7, 5), False),
        "t4 t4-16gb nvidia-tesla-t4 nvidia-t4",
        f"{MODAL}; {LOGS}, 14.56 to 14.74 GiB with the driver's branch",
    ),
    Row(
        *("NVIDIA T4G", 16, 15360, 14950, (7, 5), False),
        "t4g t4g-16gb nvidia-t4g",
        f"{RULE}: as T4",
    ),
    Row(
        *("Tesla V100-SXM2-32GB", 32, 32768, 32501, (7, 0), True),
        "v100-32gb v100-32 v100-sxm2-32gb v100-nvlink-32gb nvidia-tesla-v100-32gb "
        "tesla-v100-sxm2-32gb-ls tesla-v100-dgxs-32gb",
        f"NVIDIA/dcgm-exporter#385; {LOGS}, 31.74 GiB",
    ),
    Row(
        *("Tesla V100-SXM3-32GB", 32, 32768, 32501, (7, 0), True),
        "v100-sxm3 v100-sxm3-32gb-h",
        f"{RULE}: HBM",
    ),
    Row(
        *("Tesla V100-PCIE-32GB", 32, 32768, 32501, (7, 0), False),
        "v100-32gb-pcie",
        f"{RULE}: HBM",
    ),
    Row(*("Tesla V100S-PCIE-32GB", 32, 32768, 32501, (7, 0), False), "v100s", f"{RULE}: HBM"),
    Row(
        *("Tesla V100-SXM2-16GB", 16, 16384, 16151, (7, 0), True),
        "v100-16gb v100-16 nvidia-tesla-v100 v100-nvlink tesla-v100-nvlink v100-sxm2 "
        "tesla-v100-sxm2-16gb-n tesla-v100-sxm2-16gb-ls tesla-v100-dgxs-16gb",
        f"{RULE}: HBM",
    ),
    Row(
        *("Tesla V100-PCIE-16GB", 16, 16384, 16151, (7, 0), False),
        "v100-16gb-pcie v100-pcie tesla-v100-fhhl-16gb v100-fhhl",
        f"{RULE}: HBM",
    ),
    Row(
        *("Tesla P100-PCIE-16GB", 16, 16384, 0, (6, 0), False),
        "p100 p100-16gb p100-pcie nvidia-tesla-p100",
        f"{RULE}: HBM",
    ),
    Row(*("Quadro GV100", 32, 32768, 32501, (7, 0), True), "gv100", f"{RULE}: HBM"),
    Row(*("NVIDIA TITAN V", 12, 12288, 0, (7, 0), False), "titan-v", f"{RULE}: HBM", ecc=Ecc.NONE),
    Row(
        *("Tesla P100-PCIE-12GB", 12, 12288, 0, (6, 0), False),
        "p100-12gb p100-pcie-12gb",
        f"{RULE}: HBM",
    ),
    Row(*("Tesla P100-SXM2-16GB", 16, 16384, 0, (6, 0), True), "p100-sxm2", f"{RULE}: HBM"),
    Row(
        *("Tesla P40", 24, 23040, 0, (6, 1), False),
        "p40 p40-24gb nvidia-tesla-p40",
        f"{RULE}: GDDR5 with ECC",
    ),
    Row(
        *("Tesla P4", 8, 7680, 0, (6, 1), False),
        "p4 p4-8gb nvidia-tesla-p4",
        f"{RULE}: GDDR5 with ECC",
    ),
    Row(
        *("Quadro RTX 8000", 48, 49152, 0, (7, 5), False),
        "quadro-rtx-8000 rtx-8000 q-rtx-8000",
        NOMINAL,
        ecc=Ecc.INLINE_OFF,
    ),
    Row(
        *("Quadro RTX 6000", 24, 24576, 0, (7, 5), False),
        "quadro-rtx-6000 q-rtx-6000",
        NOMINAL,
        ecc=Ecc.INLINE_OFF,
    ),
    Row(
        *("Quadro RTX 5000", 16, 16384, 0, (7, 5), False),
        "quadro-rtx-5000",
        NOMINAL,
        ecc=Ecc.INLINE_OFF,
    ),
    Row(*("Quadro RTX 4000", 8, 8192, 0, (7, 5), False), "quadro-rtx-4000", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA CMP 170HX", 8, 8192, 0, (8, 0), False), "cmp-170hx", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA CMP 90HX", 10, 10240, 0, (8, 6), False), "cmp-90hx", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA CMP 50HX", 10, 10240, 0, (7, 5), False), "cmp-50hx", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA CMP 40HX", 8, 8192, 0, (7, 5), False), "cmp-40hx", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA T1000 8GB", 8, 8192, 0, (7, 5), False), "t1000-8gb", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA T1000", 4, 4096, 0, (7, 5), False), "t1000 quadro-t1000", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA T600", 4, 4096, 0, (7, 5), False), "t600", NOMINAL, ecc=Ecc.NONE),
    Row(*("NVIDIA T400 4GB", 4, 4096, 0, (7, 5), False), "t400 t400-4gb", NOMINAL, ecc=Ecc.NONE),
)
