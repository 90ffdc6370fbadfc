"""Several services in one text, as docker compose and kubectl print them: each is read alone."""

import re
from collections import defaultdict
from itertools import pairwise

from shipfitter.core.engine_log.phases import BEGINNINGS

_NAMED = re.compile(r"\s*(?:(?P<service>[A-Za-z][\w./-]*)[ \t]*\| |\[pod/(?P<pod>[\w./-]+)\] )")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def separate_services(text: str) -> tuple[str, ...]:
    """The lines of each service, where two or more engines introduce themselves; else none.

    Pods of one engine over several nodes stay together: only the first of them introduces itself.
    """
    lines: defaultdict[str, list[str]] = defaultdict(list)
    speaking = ""  # a line without a name goes on with the one before it
    for line in _COLOUR.sub("", text).splitlines():
        if named := _NAMED.match(line):
            speaking = named["service"] or named["pod"]
        lines[speaking].append(line)
    engines = [said for said in lines.values() if _introduced(said)]
    return tuple("\n".join(said) for said in engines) if len(engines) > 1 else ()


def _introduced(lines: list[str]) -> bool:
    """Whether an engine introduces itself, in a line or over two that a terminal broke."""
    return any(BEGINNINGS.search(line) for line in lines) or any(
        BEGINNINGS.search(one + other) for one, other in pairwise(lines)
    )
