"""The catalogue's rows for desktops and laptops; columns as in `gpu_rows`, names without NVIDIA's.

Laptops' cards are listed under the memory they are sold with; none of them has ECC.
"""

from shipfitter.core.gpu_rows import LOGS, NOMINAL, RULE, SMI, Row

_GDDR7 = f"{RULE}: GDDR7"
_8_GB = "An 8 GB card has the same name"


def _row(name: str, sizes: tuple[int, int, int], capability: tuple[int, int], source: str) -> Row:
    """A GeForce card; people leave out "GeForce", and often "RTX"."""
    short = name.replace(" ", "-").lower()
    bare = short.removeprefix("rtx-")
    # A bare number of three digits or a laptop's is nobody's way to name a card.
    spellings = short if bare.startswith("gtx") or bare.endswith("gpu") else f"{short} {bare}"
    if "-super" in short:  # shops write RTX 4070S Ti
        spellings += f" {short.replace('-ti-super', 's-ti').replace('-super', 's')}"
    return Row(f"NVIDIA GeForce {name}", *sizes, capability, False, spellings, source)


_BLACKWELL, _ADA, _AMPERE, _TURING = (12, 0), (8, 9), (8, 6), (7, 5)

GEFORCE = (
    _row("RTX 5090", (32, 32607, 32113), _BLACKWELL, f"noonghunna/club-3090#1107; {LOGS}"),
    _row("RTX 5090 D", (32, 32607, 32113), _BLACKWELL, f"{RULE}: as RTX 5090"),
    _row("RTX 5090 D V2", (24, 24463, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5080", (16, 16303, 15842), _BLACKWELL, f"{SMI}; {LOGS}, 15.47 GiB"),
    _row("RTX 5070 Ti", (16, 16303, 15842), _BLACKWELL, SMI),
    _row("RTX 5070", (12, 12227, 0), _BLACKWELL, "libc6-shim#14"),
    _row("RTX 5060 Ti", (16, 16311, 15882), _BLACKWELL, f"{LOGS}; the total by rule. {_8_GB}"),
    _row("RTX 5060", (8, 8151, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5050", (8, 8151, 0), _BLACKWELL, _GDDR7),
    _row("RTX 4090", (24, 24564, 24210), _ADA, "vllm-project/vllm#7553"),
    _row("RTX 4090 D", (24, 24564, 24115), _ADA, f"{LOGS}, 23.55 GiB"),
    _row("RTX 4080 SUPER", (16, 16376, 0), _ADA, SMI),
    _row("RTX 4080", (16, 16376, 0), _ADA, SMI),
    _row("RTX 4070 Ti SUPER", (16, 16376, 0), _ADA, SMI),
    _row("RTX 4070 Ti", (12, 12282, 0), _ADA, NOMINAL),
    _row("RTX 4070 SUPER", (12, 12282, 0), _ADA, NOMINAL),
    _row("RTX 4070", (12, 12282, 0), _ADA, NOMINAL),
    _row("RTX 4060 Ti", (16, 16380, 0), _ADA, f"nominal. {_8_GB}"),
    _row("RTX 4060", (8, 8188, 7834), _ADA, f"{RULE}: as the laptop's RTX 4070"),
    _row("RTX 3090 Ti", (24, 24564, 24142), _AMPERE, f"{SMI} for CUDA; the total by rule"),
    _row("RTX 3090", (24, 24576, 24123), _AMPERE, "noonghunna/club-3090#747"),
    _row("RTX 3080 Ti", (12, 12288, 12038), _AMPERE, f"{LOGS}, 11.76 GiB"),
    _row("RTX 3080", (10, 10240, 0), _AMPERE, "nominal. A 12 GB card has the same name"),
    _row("RTX 3070 Ti", (8, 8192, 0), _AMPERE, NOMINAL),
    _row("RTX 3070", (8, 8192, 0), _AMPERE, NOMINAL),
    _row("RTX 3060 Ti", (8, 8192, 0), _AMPERE, NOMINAL),
    _row(
        "RTX 3060", (12, 12288, 0), _AMPERE, f"geerlingguy/raspberry-pi-pcie-devices#790. {_8_GB}"
    ),
    _row("RTX 3050", (8, 8192, 0), _AMPERE, "nominal. A 6 GB card has the same name"),
    _row("RTX 2080 Ti", (11, 11264, 0), _TURING, "nominal; modified cards of 22 GB share the name"),
    _row("RTX 2080 SUPER", (8, 8192, 0), _TURING, NOMINAL),
    _row("RTX 2080", (8, 8192, 0), _TURING, NOMINAL),
    _row("RTX 2070 SUPER", (8, 8192, 0), _TURING, NOMINAL),
    _row("RTX 2070", (8, 8192, 0), _TURING, NOMINAL),
    _row("RTX 2060 SUPER", (8, 8192, 0), _TURING, NOMINAL),
    _row("RTX 2060", (6, 6144, 0), _TURING, "nominal. A 12 GB card has the same name"),
    _row("GTX 1660 Ti", (6, 6144, 0), _TURING, NOMINAL),
    _row("GTX 1660 SUPER", (6, 6144, 0), _TURING, NOMINAL),
    _row("GTX 1660", (6, 6144, 0), _TURING, NOMINAL),
    _row("GTX 1650 SUPER", (4, 4096, 0), _TURING, NOMINAL),
    _row("GTX 1650", (4, 4096, 0), _TURING, NOMINAL),
    _row("RTX 5090 Laptop GPU", (24, 24463, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5080 Laptop GPU", (16, 16303, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5070 Ti Laptop GPU", (12, 12227, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5070 Laptop GPU", (8, 8151, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5060 Laptop GPU", (8, 8151, 0), _BLACKWELL, _GDDR7),
    _row("RTX 5050 Laptop GPU", (8, 8151, 0), _BLACKWELL, _GDDR7),
    _row("RTX 4090 Laptop GPU", (16, 16376, 0), _ADA, NOMINAL),
    _row("RTX 4080 Laptop GPU", (12, 12282, 0), _ADA, NOMINAL),
    _row("RTX 4070 Laptop GPU", (8, 8188, 7834), _ADA, f"{LOGS}, 7.65 GiB"),
    _row("RTX 4060 Laptop GPU", (8, 8188, 7834), _ADA, f"{RULE}: as the laptop's RTX 4070"),
    _row("RTX 4050 Laptop GPU", (6, 6141, 0), _ADA, NOMINAL),
    _row("RTX 3080 Ti Laptop GPU", (16, 16384, 0), _AMPERE, NOMINAL),
    _row("RTX 3080 Laptop GPU", (16, 16384, 0), _AMPERE, f"nominal. {_8_GB}"),
    _row("RTX 3070 Ti Laptop GPU", (8, 8192, 0), _AMPERE, NOMINAL),
    _row("RTX 3070 Laptop GPU", (8, 8192, 0), _AMPERE, NOMINAL),
    _row("RTX 3060 Laptop GPU", (6, 6144, 0), _AMPERE, NOMINAL),
    _row("RTX 3050 Laptop GPU", (6, 6144, 0), _AMPERE, "nominal. A 4 GB card has the same name"),
    _row("RTX 3050 Ti Laptop GPU", (4, 4096, 0), _AMPERE, NOMINAL),
    Row(
        *("NVIDIA TITAN RTX", 24, 24576, 0, (7, 5), False),
        "titan-rtx",
        "weicj/2080Ti-LLM-Toolbox#2",
    ),
)
