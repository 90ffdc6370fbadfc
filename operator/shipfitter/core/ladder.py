"""The values worth trying, and a search over them."""

from collections.abc import Callable


def sequence_ladder(preferred: int) -> tuple[int, ...]:
    """Values worth trying for max_num_seqs: the engine's capture sizes up to the preferred one.

    >>> sequence_ladder(24)
    (1, 2, 4, 8, 16, 24)
    """
    steps = [1, 2, 4, *range(8, 257, 8), *range(272, preferred + 1, 16)]
    return (*(s for s in steps if s < preferred), preferred)


def round_length(tokens: int) -> int:
    """A length rounded down to a sixteenth of the power of two below, so noise changes nothing.

    >>> round_length(35_300)
    34816
    """
    if tokens < 16:
        return tokens
    grain = max(1, (1 << (tokens.bit_length() - 1)) // 16)
    return tokens // grain * grain


def last_true(values: tuple[int, ...], test: Callable[[int], bool]) -> int | None:
    """The last value that passes, for a test that fails from some value on."""
    if test(values[-1]):
        return values[-1]
    low, high = 0, len(values) - 1  # values[high] fails; the answer index lies in low-1 .. high-1
    while low < high:
        middle = (low + high) // 2
        if test(values[middle]):
            low = middle + 1
        else:
            high = middle
    return values[low - 1] if low else None
