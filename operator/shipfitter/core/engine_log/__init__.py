"""What an engine says of itself: log lines and last words, read into facts."""

from shipfitter.core.engine_log.arguments import Flag
from shipfitter.core.engine_log.facts import EngineLog, EngineRefusal
from shipfitter.core.engine_log.reading import read_last_words, read_log

__all__ = ["EngineLog", "EngineRefusal", "Flag", "read_last_words", "read_log"]
