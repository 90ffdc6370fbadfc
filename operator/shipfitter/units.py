"""Bytes inside, GiB where a person reads."""

KIB = 1024
MIB = 1024**2
GIB = 1024**3


def format_gib(size_bytes: int) -> str:
    """Render a byte count for a person.

    >>> format_gib(25_769_803_776)
    '24.0 GiB'
    """
    return f"{size_bytes / GIB:.1f} GiB"


def ceil_div(dividend: int, divisor: int) -> int:
    """The smallest whole number of `divisor`s that holds `dividend`."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple that is at least `value`."""
    return ceil_div(value, multiple) * multiple
