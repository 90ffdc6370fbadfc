"""A container's log: lines with the time in front, and the part that `kubectl logs` asks for."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

LOOK_AGAIN_SECONDS = 0.2  # while following


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """What of a log is wanted."""

    tail_lines: int | None = None
    since_seconds: float | None = None  # epoch
    limit_bytes: int | None = None
    timestamps: bool = False
    follow: bool = False


def split_stamp(line: bytes) -> tuple[bytes, bytes]:
    """(time, text) of a stored line."""
    stamp, _, text = line.partition(b" ")
    return stamp, text


def texts(path: Path) -> list[bytes]:
    """The lines of a log as the program wrote them."""
    try:
        with path.open("rb") as file:
            return [split_stamp(line)[1] for line in file]
    except OSError:
        return []


def _is_wanted(line: bytes, request: LogRequest) -> bool:
    if request.since_seconds is None:
        return True
    stamp = datetime.datetime.fromisoformat(split_stamp(line)[0].decode())
    return stamp.timestamp() >= request.since_seconds


def selected(lines: list[bytes], request: LogRequest) -> Iterator[bytes]:
    """The wanted lines of what is there now."""
    wanted = [line for line in lines if _is_wanted(line, request)]
    if request.tail_lines is not None:
        wanted = (
            wanted[len(wanted) - request.tail_lines :]
            if request.tail_lines < len(wanted)
            else wanted
        )
    for line in wanted:
        yield line if request.timestamps else split_stamp(line)[1]


def read(path: Path, request: LogRequest, ended: Event) -> Iterator[bytes]:
    """The wanted lines; with `follow` also those to come, until the container has ended."""
    left_bytes = request.limit_bytes if request.limit_bytes is not None else float("inf")
    for line in _all(path, request, ended):
        part = line[: int(min(left_bytes, len(line)))]
        left_bytes -= len(part)
        if part:
            yield part
        if left_bytes <= 0:
            return


def _all(path: Path, request: LogRequest, ended: Event) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from selected(file.readlines(), request)
        while request.follow:
            over = ended.is_set()  # asked before reading: what it wrote last is then in the file
            lines = file.readlines()
            yield from selected(lines, LogRequest(timestamps=request.timestamps))
            if over and not lines:
                return
            if not lines:
                yield b""  # lets the reader notice that nobody listens any more
                ended.wait(LOOK_AGAIN_SECONDS)
