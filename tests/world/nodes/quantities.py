"""Kubernetes quantities as numbers, and the resource fields a container may ask for."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

SUFFIXES = {
    **{letter + "i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    "m": Decimal("0.001"),
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
}


def parse_quantity(text: str | float) -> Decimal:
    """The number a quantity stands for.

    >>> parse_quantity("1500m"), parse_quantity("2Gi"), parse_quantity("1e3")
    (Decimal('1.500'), Decimal('2147483648'), Decimal('1E+3'))
    """
    text = str(text)
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return Decimal(text.removesuffix(suffix)) * factor
    return Decimal(text)


def resource_field(
    reference: Mapping[str, Any], container: Mapping[str, Any], allocatable: Mapping[str, str]
) -> str:
    """A `resourceFieldRef`: the limit or request in units of its divisor, rounded up.

    A missing limit is what the node offers; a missing request is 0.

    >>> resource_field({"resource": "limits.memory", "divisor": "1Mi"}, {}, {"memory": "2Gi"})
    '2048'
    """
    kind, resource = reference["resource"].split(".", 1)
    given = (container.get("resources") or {}).get(kind) or {}
    fallback = allocatable.get(resource, "0") if kind == "limits" else "0"
    value = parse_quantity(given.get(resource, fallback))
    divisor = parse_quantity(reference.get("divisor") or "1") or Decimal(1)
    return str(math.ceil(value / divisor))
