"""The engine's release numbers: parsed, ordered, and the range that is known."""

import re
from dataclasses import dataclass

from shipfitter.errors import UnknownEngineError

_TAG = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:$|[-+.]?[A-Za-z].*|[-+].*)")


@dataclass(frozen=True, slots=True, order=True)
class EngineVersion:
    """A vLLM release; ordered. `EngineVersion.parse("0.33.0")`, "v0.20.1rc1" read as 0.20.1."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "EngineVersion":
        """Read a release or image tag. Raises UnknownEngineError for anything else, or before 0.6.

        >>> str(EngineVersion.parse("v0.20.1rc1"))
        '0.20.1'
        """
        found = _TAG.fullmatch(text.strip())
        if found is None:
            raise UnknownEngineError(
                f"engine version: not a vLLM release, got {text!r}; name one like 0.33.0 in "
                "spec.engine.version"
            )
        version = cls(int(found[1]), int(found[2]), int(found[3] or 0))
        if version < OLDEST_KNOWN:
            raise UnknownEngineError(
                f"engine version: vLLM before {OLDEST_KNOWN} keeps memory by other rules, got "
                f"{text!r}; use {OLDEST_KNOWN} or newer"
            )
        return version

    @property
    def release(self) -> tuple[int, int]:
        """The minor release, of which patches share the rules."""
        return (self.major, self.minor)

    @property
    def is_newer_than_known(self) -> bool:
        """True for a minor release we have no row for: it is computed as the newest known one."""
        return (self.major, self.minor) > (NEWEST_KNOWN.major, NEWEST_KNOWN.minor)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST_KNOWN = EngineVersion(0, 6, 0)
NEWEST_KNOWN = EngineVersion(0, 33, 0)
