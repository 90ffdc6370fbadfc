"""Slow work that only one process does at a time."""

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def only_one(lock_file: Path, say: Callable[[str], None], waiting: str) -> Iterator[None]:
    """Alone with what the lock stands for; says `waiting` where somebody else is at it."""
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
