"""One line of a log that states figures: its pattern, and which releases print it so.

Group names are the names of the facts; a `_bytes` group is turned into GiB. What the engine calls
GB it divides by 2^30 as well (vLLM worker/model_runner.py, 0.6 to 0.8).
"""

import re
from dataclasses import dataclass

from shipfitter.core.engine_log.needles import masked

_N = r"-?\d+(?:\.\d+)?"
_COUNT = r"\d[\d,]*"
_GIB = r"\s*Gi?B"


@dataclass(frozen=True, slots=True)
class Line:
    """How one range of releases words one statement.

    `needle` is a part that never changes, masked. `rank`: the same fact stated by a line of a lower
    rank goes before this one.
    """

    needle: str
    pattern: re.Pattern[str]
    source: str
    rank: int = 1


def line(needle: str, pattern: str, source: str, rank: int = 1) -> Line:
    """A row of a table; <N> stands for a number, <C> for a count, <G> for GiB, a space for any."""
    compiled = pattern.replace("<N>", _N).replace("<C>", _COUNT).replace("<G>", _GIB)
    spaced = re.compile(compiled.replace(" ", r"\s+"))
    return Line(masked(needle), spaced, source, rank)
