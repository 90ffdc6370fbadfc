"""What an engine says of itself: log lines and last words, read into facts.

Two hundred patterns read them; they are compiled when the first text comes, for most plans see
none.
"""

from shipfitter.core.engine_log.arguments import Flag
from shipfitter.core.engine_log.facts import EngineLog, EngineRefusal

__all__ = ["EngineLog", "EngineRefusal", "Flag", "read_last_words", "read_log"]


def read_log(text: str) -> EngineLog:
    """The facts of a whole log; see `reading.read_log`."""
    from shipfitter.core.engine_log import reading  # noqa: PLC0415  # see above

    return reading.read_log(text)


def read_last_words(
    message: str | None, exit_code: int | None = None, reason: str | None = None
) -> EngineRefusal | None:
    """Why a container ended; see `reading.read_last_words`."""
    from shipfitter.core.engine_log import reading  # noqa: PLC0415  # see above

    return reading.read_last_words(message, exit_code, reason)
