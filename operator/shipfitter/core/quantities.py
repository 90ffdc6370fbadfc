"""Kubernetes quantities as whole numbers."""

import re
from decimal import ROUND_FLOOR, Decimal

_FACTORS = {
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{letter: Decimal(1000) ** -power for power, letter in enumerate("mun", 1)},
    "": Decimal(1),
}
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2})|([KMGTPE]i|[kMGTPEmun]))?")


def whole(quantity: object) -> int:
    """The whole number in a quantity; 0 for what is none, as an absent resource is 0.

    >>> whole("8"), whole("131072Ki"), whole("1500m"), whole("2e3"), whole("many"), whole(None)
    (8, 134217728, 1, 2000, 0, 0)
    """
    found = _QUANTITY.fullmatch(str(quantity).strip())
    if not found:
        return 0
    number, exponent, suffix = found.groups()
    value = Decimal(number) * _FACTORS[suffix or ""] * Decimal(10) ** int(exponent or 0)
    return int(value.to_integral_value(ROUND_FLOOR))
