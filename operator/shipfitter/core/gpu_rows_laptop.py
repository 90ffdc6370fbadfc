"""The catalogue's rows for mobile workstations and Max-Q cards; columns as in `gpu_rows`.

All figures are the vendor's, in the totals that cards of the same memory show on desktops. None of
them corrects errors inline as it comes.
"""

from shipfitter.core.gpu_rows import NOMINAL, RULE, Row

_BLACKWELL, _ADA, _AMPERE, _TURING = (12, 0), (8, 9), (8, 6), (7, 5)
# What a card of so many gigabytes shows as total: GDDR7 cards and GDDR6 ones. Source: the desktop
# cards' rows.
_GDDR7_MIB = {6: 6107, 8: 8151, 12: 12227, 16: 16303, 24: 24463}
_GDDR6_MIB = {2: 2048, 4: 4096, 6: 6144, 8: 8192, 12: 12288, 16: 16384, 24: 24576}


def _row(name: str, gigabytes: int, capability: tuple[int, int]) -> Row:
    totals_mib = _GDDR7_MIB if capability == _BLACKWELL else _GDDR6_MIB
    source = f"{RULE}: GDDR7" if capability == _BLACKWELL else NOMINAL
    spelling = name.removeprefix("NVIDIA ").replace(" ", "-").lower()
    return Row(name, gigabytes, totals_mib[gigabytes], 0, capability, False, spelling, source)


LAPTOP = (
    *(
        _row(f"NVIDIA RTX PRO {model} Blackwell Generation Laptop GPU", gigabytes, _BLACKWELL)
        for model, gigabytes in ((5000, 24), (4000, 16), (3000, 12), (2000, 8), (1000, 8), (500, 6))
    ),
    *(
        _row(f"NVIDIA RTX {model} Ada Generation Laptop GPU", gigabytes, _ADA)
        for model, gigabytes in (
            *((5000, 16), (4000, 12), (3500, 12), (3000, 8), (2000, 8), (1000, 6), (500, 4)),
        )
    ),
    *(
        _row(f"NVIDIA RTX {model} Laptop GPU", gigabytes, _AMPERE)
        for model, gigabytes in (
            *(("A5500", 16), ("A5000", 16), ("A4500", 16), ("A4000", 8), ("A3000", 6)),
            *(("A3000 12GB", 12), ("A2000", 4), ("A2000 8GB", 8), ("A1000", 4), ("A1000 6GB", 6)),
            ("A500", 4),
        )
    ),
    _row("NVIDIA GeForce RTX 3050 6GB Laptop GPU", 6, _AMPERE),
    _row("NVIDIA GeForce RTX 2050", 4, _AMPERE),
    *(
        _row(f"Quadro RTX {model} with Max-Q Design", gigabytes, _TURING)
        for model, gigabytes in ((6000, 24), (5000, 16), (4000, 8), (3000, 6))
    ),
    _row("Quadro RTX 3000", 6, _TURING),
    _row("Quadro T2000", 4, _TURING),
    *(
        _row(f"NVIDIA {model} Laptop GPU", 4, _TURING)
        for model in ("T1200", "T1000", "T600", "T550", "T500")
    ),
    *(
        _row(f"NVIDIA GeForce {model} with Max-Q Design", gigabytes, _TURING)
        for model, gigabytes in (
            *(("RTX 2080 Super", 8), ("RTX 2080", 8), ("RTX 2070 Super", 8), ("RTX 2070", 8)),
            *(("RTX 2060", 6), ("GTX 1660 Ti", 6), ("GTX 1650 Ti", 4), ("GTX 1650", 4)),
        )
    ),
    _row("NVIDIA GeForce GTX 1650 Ti", 4, _TURING),
)
