"""The emulator's end of the sandbox: start a program, signal it, wait for its end."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KILLED = 128 + signal.SIGKILL


@dataclass
class Process:
    """A program in the sandbox; `error` tells why it could not be started."""

    name: str
    owner: "Processes"
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    pid: int = 0
    exit_code: int | None = None  # 128 + the signal's number when one ended it
    error: str = ""

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """The exit code, or None when the time ends first."""
        self.ended.wait(timeout_seconds)
        return self.exit_code

    def terminate(self) -> None:
        """Ask the program to end; only its first process is told."""
        self.owner.signal(self, signal.SIGTERM)

    def kill(self) -> None:
        """End the program and all of its process group."""
        self.owner.signal(self, signal.SIGKILL)


class Processes:
    """All programs of one emulator."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sending = threading.Lock()  # its own: whoever reads events never waits for a sender
        self._living: dict[str, Process] = {}
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start the sandbox."""
        self._control, theirs = socket.socketpair()
        self._sandbox = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(Path(__file__).with_name("sandbox.py")),
                str(theirs.fileno()),
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is ours to handle
        )
        theirs.close()
        self._reader = threading.Thread(target=self._read, name="sandbox-events", daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """Kill every program; none is left when this returns."""
        if self._control is None:
            return
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self._sandbox.wait()
        self._reader.join()
        self._control.close()

    def launch(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path
    ) -> Process:
        """Start a program; names are unique among the living."""
        process = Process(name, self)
        with self._lock:
            self._living[name] = process
        self._order(
            do="start", name=name, argv=list(argv), env=dict(env), cwd=str(cwd), log=str(log)
        )
        process.started.wait()
        return process

    def signal(self, process: Process, number: int) -> None:
        """Nothing happens to a program that has ended."""
        self._order(do="signal", name=process.name, signal=int(number))

    def _order(self, **order: Any) -> None:
        assert self._control is not None, "start() comes first"
        try:
            with self._sending:
                self._control.sendall(json.dumps(order).encode() + b"\n")
        except OSError as error:
            with self._lock:
                process = self._living.pop(order["name"], None)
            if process is not None:
                _end(process, KILLED, f"the sandbox has ended: {error}")

    def _read(self) -> None:
        assert self._control is not None
        with self._control.makefile("rb") as events:
            for line in events:
                self._on_event(json.loads(line))
        with self._lock:
            lost, self._living = list(self._living.values()), {}
        for process in lost:  # the sandbox ended, and with it every child
            _end(process, KILLED, "")

    def _on_event(self, event: dict[str, Any]) -> None:
        with self._lock:
            ends = event["event"] != "started"
            process = (self._living.pop if ends else self._living.get)(event["name"], None)
        if process is None:
            return
        if ends:
            _end(process, event.get("code", 128), event.get("error", ""))
        else:
            process.pid = event["pid"]
            process.started.set()


def _end(process: Process, code: int, error: str) -> None:
    process.exit_code, process.error = code, error
    process.started.set()
    process.ended.set()
