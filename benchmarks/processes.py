"""Programs under measurement: started, watched through /proc, and always ended."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE_SECONDS = 60.0
END_SECONDS = 10.0
TICKS = os.sysconf("SC_CLK_TCK")


class Started:
    """A running program, with its output in a file; it ends with the `with` block."""

    def __init__(
        self, argv: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        self.began = time.monotonic()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.began

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, what: str, check: Callable[[], object]) -> float:
        """Seconds since the start when the check first holds."""
        while not check():
            if self._process.poll() is not None or self.seconds > PATIENCE_SECONDS:
                raise RuntimeError(
                    f"{what}: not seen in {self.seconds:.0f} s\n{self.said()[-3000:]}"
                )
            time.sleep(0.02)
        return self.seconds

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def cpu_seconds(self) -> float:
        """Of all its threads, in the program and in the kernel."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def cpu_share(self, seconds: float) -> float:
        """Part of one core it takes over the next seconds."""
        before, began = self.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        return (self.cpu_seconds() - before) / (time.monotonic() - began)


def shipfitter(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "shipfitter", *arguments]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Whether the address answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
