"""Which rows of a table are worth trying on a message: those whose unchanging part lies in it.

A server says the same few things a million times; what was looked up once is remembered.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

_MASKING = str.maketrans({**dict.fromkeys("123456789", "0"), " ": None, "\t": None})
_LONGEST_REMEMBERED = 1_000
_MOST_REMEMBERED = 4_096


class Row(Protocol):
    """A row of a table of patterns."""

    @property
    def needle(self) -> str:
        """A part of the text that never changes, masked."""


_Row = TypeVar("_Row", bound=Row)


def masked(text: str) -> str:
    """The text with all figures alike, without spaces and capitals.

    >>> masked("GPU KV cache size: 12,345 tokens")
    'gpukvcachesize:00,000tokens'
    """
    return text.translate(_MASKING).lower()


def finder(rows: Sequence[_Row]) -> Callable[[str], tuple[_Row, ...]]:
    """A function from masked text to the rows that may match it."""

    def look_up(text: str) -> tuple[_Row, ...]:
        return tuple(row for row in rows if row.needle in text)

    remembered = lru_cache(maxsize=_MOST_REMEMBERED)(look_up)
    return lambda text: (remembered if len(text) < _LONGEST_REMEMBERED else look_up)(text)
