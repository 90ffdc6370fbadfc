"""Log text as people paste it, made into the engine's own messages: prefixes off, wraps undone.

Nothing is dropped that could carry a figure: what cannot be told apart is kept as text.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shipfitter.core.engine_log.needles import masked

# Colours: real escapes, those a viewer printed as text, and those that lost their escape character.
_COLOUR = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001b|\\033|\\e|#033|\u241b)\[[0-9;?]*[A-Za-z]|\[[0-9]{1,3}(?:;[0-9]{1,3})*m"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_LINE_END = re.compile(r"\r*\n|\r|\x85|\u2028|\u2029")

# Source: vLLM logger.py `_FORMAT`, utils/system_utils.py decorate_logs: "(EngineCore pid=7) INFO
# 11-30 03:36:54 [core.py:104] …"; before 0.8 without the brackets; Ray's own "(Name pid=7, ip=…)".
_SPEAKER = r"\([A-Za-z_][\w.]*(?: rank=\d+)?,? pid=\d+(?:, ?ip=[\d.:a-f]+)?\)"
_HEAD = re.compile(
    rf"(?P<speakers>(?:{_SPEAKER} *){{0,4}})"
    r"\b(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) +\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? +"
    r"(?:\[[^\]\s]{1,120}:\d+\] ?|[\w./-]+\.py:\d+\] ?)?"
)
_SPEAKERS = re.compile(rf"(?P<speakers>(?:{_SPEAKER} *){{1,4}})")

# What journals, containers and people put before each line; taken off as often as it is there.
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[ \t]",
        r"(?:stdout|stderr) [FP] ",
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./@-]+(?:\[\d+\])?: ",
        r"\S+ [\w./@-]+\[\d+\]: ",
        r"[A-Za-z][\w./-]*[ \t]*\| ",
        r"\[pod/[\w./-]+\] ",
        r"\[(?:rank\d+|\d+:\d\d:\d\d|\d\d:\d\d:\d\d)\]:? ?",
        r"(?:>[ \t]?)+",
    )
)
# Lines without a head that begin something new, so that they end the message before them.
_BEGINS = re.compile(
    r"\s*(?:Traceback \(most recent|File \"|[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|"
    r"Refused)\b[^ ]*:? |(?:INFO|WARNING|ERROR|DEBUG):? +\S|\$ |```|#+ |\+[-=]{5}|\[[a-z_]+\.py:|"
    r"During handling of|The above exception|Killed\s*$|\S+ exited with code|"
    r"\(\w+ pid=\d+\))|.*(?:\d%\||it/s\]|s/it\])"
)
_LONGEST_PREFIX = 400
_LINES_THAT_SHOW_PREFIXES = 4_000
_LONGEST_WORD = 24  # that a line may lack to the width because the next word did not fit


@dataclass(frozen=True, slots=True)
class Record:
    """One message of the log: who said it, and what.

    `texts` are the ways to read it: wrapped lines joined as a terminal broke them, inside words and
    numbers (by the width of the lines, and regardless of it), or with spaces, as an editor did. A
    message of one line has one text. What is sought is looked for in each, the likeliest first.
    """

    speaker: str
    level: str
    texts: tuple[str, ...]
    masked: str  # the likeliest reading, for looking up what may match
    own_length: int  # of the text: beyond it lies what may belong to no message at all

    @property
    def text(self) -> str:
        """The likeliest reading."""
        return self.texts[0]

    @property
    def has_head(self) -> bool:
        """Whether it went through the engine's logger."""
        return bool(self.level)


@dataclass(slots=True)
class _Message:
    """A record while its lines are collected."""

    speaker: str
    level: str
    lines: list[tuple[str, int]] = field(default_factory=list)  # text, width of the whole line


def records(text: str) -> tuple[Record, ...]:
    """The messages of a log, in their order."""
    lines = tuple(_physical_lines(text))
    # Where a terminal broke lines, it broke them at the width of the longest.
    width = max((len(line) for line in lines), default=0)
    prefixes = _common_prefixes(lines[:_LINES_THAT_SHOW_PREFIXES])
    return tuple(_record(message, width) for message in _messages(lines, prefixes))


def _physical_lines(text: str) -> Iterator[str]:
    plain = _COLOUR.sub("", text)
    lines = [_INVISIBLE.sub("", line).replace("\xa0", " ") for line in _LINE_END.split(plain)]
    indent = _common_indent(lines)
    for line in lines:
        yield from _unpacked(line[indent:])


def _common_indent(lines: Iterable[str]) -> int:
    widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    return min(widths, default=0)


def _unpacked(line: str) -> Iterable[str]:
    """The text inside a line of JSON (docker's log files, structured loggers), else the line."""
    stripped = line.strip()
    if not (stripped.startswith("{") and stripped.endswith("}") and '"' in stripped):
        return (line,)
    try:
        fields: Any = json.loads(stripped)
    except (ValueError, RecursionError):
        return (line,)
    if not isinstance(fields, dict):
        return (line,)
    for name in ("log", "message", "msg", "textPayload", "line", "event"):
        inner = fields.get(name)
        if isinstance(inner, str):
            plain = [one for one in _LINE_END.split(_COLOUR.sub("", inner)) if one.strip()]
            head = _structured_head(fields)
            return tuple(one if _HEAD.search(one) else head + one for one in plain)
    return (line,)


def _structured_head(fields: Mapping[str, Any]) -> str:
    """The head that the line would have had in plain text; empty where no level is stated.

    Source: vLLM 0.33 logging_utils/formatter.py JSON_FORMAT.
    """
    level = str(fields.get("levelname") or fields.get("level") or "").upper()
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        return ""
    process = re.sub(r"\W", "_", str(fields.get("processName") or "Main"))
    number = str(fields.get("process") or "")
    return f"({process} pid={number if number.isdigit() else 0}) {level} 01-01 00:00:00 "


def _common_prefixes(lines: Iterable[str]) -> frozenset[str]:
    """What stands before several heads, figures masked: put there by something, whatever it is."""
    seen: Counter[str] = Counter()
    for line in lines:
        start = _HEAD.search(line[:_LONGEST_PREFIX]) or _SPEAKERS.search(line[:_LONGEST_PREFIX])
        if start and line[: start.start()].strip():
            seen[_shape(line[: start.start()])] += 1
    return frozenset(shape for shape, times in seen.items() if times > 1)


def _shape(text: str) -> str:
    return re.sub(r"\d", "0", text)


def _messages(lines: Iterable[str], prefixes: frozenset[str]) -> Iterator[_Message]:
    current = _Message("", "")
    for line in lines:
        for speaker, level, text, width in _pieces(line, prefixes):
            if level or speaker or _BEGINS.match(text) or not text.strip():
                if current.lines:
                    yield current
                current = _Message(speaker or ("" if level else current.speaker), level)
            if text.strip():
                current.lines.append((text, width))
    if current.lines:
        yield current


def _pieces(line: str, prefixes: frozenset[str]) -> Iterator[tuple[str, str, str, int]]:
    """Speaker, level, text and width of what lies on one line: bars may stand before a head."""
    if "&" in line and re.search(r"&(?:#\d+|quot|lt|gt|amp);", line):
        line = html.unescape(line)
    heads = list(_HEAD.finditer(line))
    start = heads[0].start() if heads else len(line)
    before = _without_prefixes(line[:start], prefixes)
    if before.strip():
        spoken = _SPEAKERS.search(before[:_LONGEST_PREFIX])
        speaker = _speaker(spoken["speakers"]) if spoken else ""
        yield speaker, "", before[spoken.end() :] if spoken else before, len(line)
    ends = [*(head.start() for head in heads[1:]), len(line)]
    for head, end in zip(heads, ends, strict=False):
        yield _speaker(head["speakers"]), head["level"], line[head.end() : end], len(line)
    if not before.strip() and not heads:
        yield "", "", "", len(line)


def _without_prefixes(text: str, prefixes: frozenset[str]) -> str:
    for prefix in prefixes:
        if len(text) >= len(prefix) and _shape(text[: len(prefix)]) == prefix:
            text = text[len(prefix) :]
            break
    for _ in range(4):
        bare = text.lstrip()
        shorter = next((bare[m.end() :] for p in _PREFIXES if (m := p.match(bare))), None)
        if shorter is None:
            break
        text = shorter
    return text


def _speaker(text: str) -> str:
    """The last of the names that stand before a head, as one word."""
    names = re.findall(r"\(([^()]*)\)", text)
    return names[-1] if names else ""


def _record(message: _Message, width: int) -> Record:
    parts = [text for text, _ in message.lines]
    by_width = parts[0]
    for (part, _), (_, width_before) in zip(message.lines[1:], message.lines, strict=False):
        by_width += part if width_before >= width else " " + part.lstrip()
    readings = (by_width, " ".join(part.strip() for part in parts), "".join(parts))
    texts = tuple(dict.fromkeys(readings)) if len(parts) > 1 else (parts[0],)
    looks_wrapped = message.lines[0][1] >= width - _LONGEST_WORD
    own_length = len(texts[0]) if looks_wrapped else len(parts[0])
    return Record(message.speaker, message.level, texts, masked(texts[0]), own_length)
