"""Robust minimums: what a class of nodes offers, whatever one of them claims."""

from collections.abc import Sequence

# Nodes of one product differ by driver branch, not by more; a broken or lying one does.
TOLERANCE_PERCENT = 3


def close(one_bytes: int, other_bytes: int) -> bool:
    """Whether two sizes are within the tolerance of the larger one."""
    larger_bytes = max(one_bytes, other_bytes)
    return abs(one_bytes - other_bytes) * 100 <= TOLERANCE_PERCENT * larger_bytes


def lower_median(values: Sequence[int]) -> int:
    """The middle value, the smaller of the two middle ones for an even number.

    >>> lower_median((3, 1, 2)), lower_median((4, 1, 2, 3))
    (2, 2)
    """
    return sorted(values)[(len(values) - 1) // 2]


def groups_around_medians(values: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Distinct values in groups that agree, the one around the median first.

    >>> groups_around_medians((100, 100, 99, 50, 150))
    ((99, 100), (50,), (150,))
    """
    remaining = sorted(values)
    groups = []
    while remaining:
        median = lower_median(remaining)
        groups.append(tuple(sorted({value for value in remaining if close(value, median)})))
        remaining = [value for value in remaining if not close(value, median)]
    return tuple(groups)
