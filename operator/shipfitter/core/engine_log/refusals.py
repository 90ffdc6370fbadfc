"""Finds the sentences by which an engine, its libraries or its host say no."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shipfitter.core.engine_log.cleaning import Record
from shipfitter.core.engine_log.needles import finder
from shipfitter.core.engine_log.refusals_configuration import CONFIGURATION
from shipfitter.core.engine_log.refusals_machine import MACHINE
from shipfitter.core.engine_log.refusals_memory import MEMORY
from shipfitter.core.engine_log.sentences import OUT_OF_MEMORY, Sentence
from shipfitter.core.refusals import Refusal

__all__ = ["OUT_OF_MEMORY", "Said", "sentences"]

_sentences_in = finder((*MEMORY, *CONFIGURATION, *MACHINE))


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence found in a message."""

    kind: Refusal | str
    message: str
    figures: dict[str, str]
    at: int


def sentences(record: Record) -> Iterator[Said]:
    """Every sentence of refusal in a message."""
    for sentence in _sentences_in(record.masked):
        yield from _found(sentence, record)


def _found(sentence: Sentence, record: Record) -> Iterator[Said]:
    """In the reading that shows most figures of it: a wrap may have cut a number."""
    best: re.Match[str] | None = None
    for text in record.texts:
        match = sentence.pattern.search(text)
        if match and (best is None or _figures(match) > _figures(best)):
            best = match
    if best is not None:
        stated = {name: value for name, value in best.groupdict().items() if value is not None}
        yield Said(sentence.kind, _around(best), stated, best.start())


def _figures(match: re.Match[str]) -> int:
    return sum(value is not None for value in match.groups())


def _around(match: re.Match[str]) -> str:
    """The sentence with what follows it, short enough for a status."""
    text = match.string
    start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - 120)
    if ": " in text[start : match.start()]:
        start = text.rfind(": ", start, match.start()) + 2
    return " ".join(text[start : match.end() + 300].split())[:600]
