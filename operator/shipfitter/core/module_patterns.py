"""Module names as quantisation formats write them: exact, in part, as globs or expressions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

# What stands before the layers in the names of different wrappers.
_PREFIXES = ("", "model.", "model.language_model.", "language_model.model.")


@dataclass(frozen=True, slots=True)
class ModulePatterns:
    """Patterns read once, asked often; `everything` where they mean all linear layers."""

    everything: bool
    parts: frozenset[str]
    globs: tuple[str, ...]
    expressions: tuple[re.Pattern[str], ...]

    @classmethod
    def read(cls, patterns: Iterable[str]) -> "ModulePatterns":
        """Sort patterns by their form: "re:" expressions, shell globs, dotted parts of a path."""
        patterns = tuple(patterns)
        expressions = tuple(p.removeprefix("re:") for p in patterns if p.startswith("re:"))
        names = tuple(_after_prefix(p) for p in patterns if not p.startswith("re:"))
        return cls(
            everything="Linear" in names,
            parts=frozenset(name for name in names if "*" not in name),
            globs=tuple(name for name in names if "*" in name),
            expressions=tuple(re.compile(expression) for expression in expressions),
        )

    def cover(self, path: str) -> bool:
        """Whether any pattern means this module, whatever prefix the wrapper gives it."""
        tail = _after_prefix(path)
        return (
            self.everything
            or not self.parts.isdisjoint(_dotted_parts(tail))
            or any(fnmatchcase(tail, g) or fnmatchcase(tail, f"{g}.*") for g in self.globs)
            or any(e.match(prefix + tail) for e in self.expressions for prefix in _PREFIXES)
        )


def _after_prefix(path: str) -> str:
    start = path.find("layers.")
    return path[start:] if start >= 0 and not path.startswith("mtp") else path


def _dotted_parts(path: str) -> set[str]:
    """Every run of whole words of a path.

    >>> sorted(_dotted_parts("a.b"))
    ['a', 'a.b', 'b']
    """
    words = path.split(".")
    return {
        ".".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, len(words) + 1)
    }
