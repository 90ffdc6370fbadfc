"""What a person sees during a build: one moving line, or a plain line now and then."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

PLAIN_INTERVAL_SECONDS = 20.0


def minutes(seconds: float) -> str:
    """
    >>> minutes(581)
    '9:41'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    """Shows which of the programs is built, since when, and how long all of it should take."""

    def __init__(
        self,
        *,
        expected_seconds: dict[str, float],
        verb: str = "building",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.expected_seconds = expected_seconds
        self.verb = verb
        self._clock = clock
        self._moving = self.stream.isatty()
        self._begun = clock()
        self._shown: tuple[str, float] | None = None
        self._name = ""

    def begin(self, name: str) -> None:
        """Say that this program is being built from now on."""
        self._name = name
        self.tick()

    def tick(self) -> None:
        """Show the time again, when it is due."""
        now = self._clock()
        if not self._moving and self._shown:
            name, at = self._shown
            if name == self._name and now - at < PLAIN_INTERVAL_SECONDS:
                return
        self._shown = (self._name, now)
        names = list(self.expected_seconds)
        line = (
            f"{self.verb} {self._name} ({names.index(self._name) + 1} of {len(names)}), "
            f"{minutes(now - self._begun)} of about {minutes(sum(self.expected_seconds.values()))}"
        )
        if self._moving:
            self.stream.write(f"\r\x1b[2K{line}")
            self.stream.flush()
        else:
            self.say(line)

    def say(self, line: str) -> None:
        """One plain line."""
        if self._moving:
            self.stream.write("\r\x1b[2K")
        self.stream.write(line + "\n")
        self.stream.flush()
