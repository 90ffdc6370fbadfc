"""One way to say no: its kind, and the pattern with the figures in it."""

import re
from dataclasses import dataclass

from shipfitter.core.engine_log.needles import masked
from shipfitter.core.refusals import Refusal

OUT_OF_MEMORY = "OutOfMemory"  # which one, the place in the start decides


@dataclass(frozen=True, slots=True)
class Sentence:
    """Groups of the pattern name fields of EngineRefusal."""

    kind: Refusal | str
    needle: str  # a part that never changes, masked
    pattern: re.Pattern[str]


_NUMBER = r"-?\d+(?:\.\d+)?"
_SIZE = r"\d+(?:\.\d+)?\s*(?:bytes|[KMGT]i?B)"


def say(kind: Refusal | str, needle: str, pattern: str) -> Sentence:
    """A row of a table; <N> stands for a number, <SIZE> for one with its unit, a space for any."""
    spaced = pattern.replace("<N>", _NUMBER).replace("<SIZE>", _SIZE).replace(" ", r"\s+")
    return Sentence(kind, masked(needle), re.compile(spaced, re.IGNORECASE))
