"""Other memories that are sold under a name of the catalogue; columns as in `gpu_rows`.

The driver names them like the usual card, so only a spelling that tells the memory means them.
"""

from shipfitter.core.gpu_rows import NOMINAL, RULE, Row

_SAME = "the vendor's figure for the other size of that name"
_MODULE = "nominal less what firmware keeps"

_HBM = f"{RULE}: HBM, as the 80 GB card for its size"

OTHER_SIZES = (
    Row("NVIDIA H100 96GB HBM3", 96, 97871, 0, (9, 0), True, "h100-sxm-96gb", _HBM),
    Row("NVIDIA H100 94GB HBM2e", 94, 95830, 0, (9, 0), True, "h100-sxm-94gb", _HBM),
    Row("NVIDIA H100 64GB HBM2", 64, 65247, 0, (9, 0), True, "h100-sxm-64gb", _HBM),
    Row("NVIDIA GeForce RTX 5060 Ti", 8, 8151, 0, (12, 0), False, "rtx-5060-ti 5060-ti", _SAME),
    Row("NVIDIA GeForce RTX 4060 Ti", 8, 8188, 0, (8, 9), False, "rtx-4060-ti 4060-ti", _SAME),
    Row("NVIDIA GeForce RTX 3080", 12, 12288, 0, (8, 6), False, "rtx-3080 3080", _SAME),
    Row("NVIDIA GeForce RTX 3060", 8, 8192, 0, (8, 6), False, "rtx-3060 3060", _SAME),
    Row("NVIDIA GeForce RTX 3050", 6, 6144, 0, (8, 6), False, "rtx-3050 3050", _SAME),
    Row("NVIDIA GeForce RTX 2060", 12, 12288, 0, (7, 5), False, "rtx-2060 2060", _SAME),
    Row("NVIDIA GeForce RTX 3080 Laptop GPU", 8, 8192, 0, (8, 6), False, "", _SAME),
    Row("NVIDIA GeForce RTX 3050 Laptop GPU", 4, 4096, 0, (8, 6), False, "", _SAME),
    Row("NVIDIA T400", 2, 2048, 0, (7, 5), False, "t400", NOMINAL),
    Row(
        *("Orin (nvgpu)", 32, 30697, 30697, (8, 7), False),
        "jetson-agx-orin agx-orin",
        _MODULE,
        unified=True,
    ),
    Row(
        *("Orin (nvgpu)", 16, 15656, 15656, (8, 7), False),
        "jetson-orin-nx orin-nx",
        _MODULE,
        unified=True,
    ),
    Row(
        *("Orin (nvgpu)", 8, 7620, 7620, (8, 7), False),
        "jetson-orin-nx orin-nx jetson-orin-nano orin-nano",
        _MODULE,
        unified=True,
    ),
    Row(
        *("NVIDIA Thor", 64, 62885, 62885, (11, 0), False),
        "jetson-thor jetson-t4000 jetson-thor-t4000",
        f"{RULE}: half of the larger module",
        unified=True,
    ),
)
