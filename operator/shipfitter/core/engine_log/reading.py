"""Reads a whole log, or the last words of a container, into facts; it never fails on a text."""

from collections.abc import Iterator
from typing import Any

from shipfitter.core.engine_log.attempt import Attempt
from shipfitter.core.engine_log.cleaning import records
from shipfitter.core.engine_log.facts import EngineLog, EngineRefusal
from shipfitter.core.engine_log.services import separate_services
from shipfitter.core.refusals import Refusal

KILLED_EXIT_CODE = 137  # 128 + SIGKILL


def read_log(text: str) -> EngineLog:
    """The facts of the last start in a log whose end is known; of the last one where none is.

    Where several services speak in one text, each with a start of its own: of one that failed, else
    of the one that states most.
    """
    services = separate_services(text)
    if not services:
        return _last_start(text)
    logs = [_last_start(service) for service in services]
    failed = [log for log in logs if log.refusal is not None]
    return max(failed or logs, key=_facts_stated)


def _last_start(text: str) -> EngineLog:
    attempts = tuple(_attempts(text))
    decided = [one for one in attempts if one.outcome != "Unknown"]
    return (decided or attempts)[-1]


def _facts_stated(log: EngineLog) -> int:
    return sum(value is not None for value in log.read().values())


def _attempts(text: str) -> Iterator[EngineLog]:
    current = Attempt()
    for record in records(text):
        if current.is_over_before(record):
            yield current.facts()
            current = Attempt()
        current.hear(record)
    yield current.facts()


def read_last_words(
    message: str | None, exit_code: int | None = None, reason: str | None = None
) -> EngineRefusal | None:
    """What a container that ended said, by its termination message (or log tail) and status.

    None where it ended well, or nobody knows that it ended at all.
    """
    heard = read_log(message or "")
    if heard.refusal is not None:
        return _with_exit_code(heard.refusal, exit_code)
    if (
        reason == "OOMKilled"
        or exit_code == KILLED_EXIT_CODE
        or _evicted_for_memory(reason, message)
    ):
        return EngineRefusal(
            kind=Refusal.HOST_OUT_OF_MEMORY,
            message=reason if reason and reason != "Error" else f"exit code {exit_code}",
            exit_code=exit_code,
        )
    if exit_code in (None, 0) and reason in (None, "", "Completed"):
        return None
    return EngineRefusal(
        kind=Refusal.OTHER,
        message=_last_line(message) or _status(exit_code, reason),
        exit_code=exit_code,
    )


def _with_exit_code(refusal: EngineRefusal, exit_code: int | None) -> EngineRefusal:
    fields: dict[str, Any] = {name: getattr(refusal, name) for name in refusal.__slots__}
    return EngineRefusal(**fields | {"exit_code": fields["exit_code"] or exit_code})


def _evicted_for_memory(reason: str | None, message: str | None) -> bool:
    return reason == "Evicted" and "memory" in (message or "")


def _status(exit_code: int | None, reason: str | None) -> str:
    return " ".join(
        part for part in (reason, f"exit code {exit_code}" if exit_code else "") if part
    )


def _last_line(message: str | None) -> str:
    lines = [record.text.strip() for record in records(message or "")]
    return " ".join(next((line for line in reversed(lines) if line), "").split())[:600]
