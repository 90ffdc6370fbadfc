"""Finds the figures that the messages of a log state."""

from collections.abc import Iterator
from dataclasses import dataclass

from shipfitter.core.engine_log.cleaning import Record
from shipfitter.core.engine_log.line import Line
from shipfitter.core.engine_log.lines_memory import MEMORY_LINES
from shipfitter.core.engine_log.lines_metrics import METRICS_LINES
from shipfitter.core.engine_log.lines_run import RUN_LINES
from shipfitter.core.engine_log.needles import finder

_lines_in = finder((*MEMORY_LINES, *METRICS_LINES, *RUN_LINES))


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact as one line states it."""

    fact: str
    value: str
    rank: int
    at: int  # where in the message


def statements(record: Record) -> Iterator[Statement]:
    """Every fact that a message states."""
    for line in _lines_in(record.masked):
        for text in record.texts:
            found = tuple(_found(line, text))
            if found:
                yield from found
                break


def _found(line: Line, text: str) -> Iterator[Statement]:
    for match in line.pattern.finditer(text):
        for fact, value in match.groupdict().items():
            yield Statement(fact, value, line.rank, match.start())
