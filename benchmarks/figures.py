"""What a benchmark found: figures with what they should be, printed as one table."""

from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 58


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; `wanted` says what it should be, where it should be something."""

    what: str
    found: str
    wanted: str = ""

    def __str__(self) -> str:
        return f"{self.what:<{WIDTH}} {self.found:>12}   {self.wanted}".rstrip()


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def mebibytes(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.0f} MiB"


def print_figures(title: str, figures: Iterable[Figure]) -> None:
    print(title)
    for figure in figures:
        print(f"  {figure}")
    print(flush=True)
