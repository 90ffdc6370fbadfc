"""The sandbox: one process that starts every container's program and never outlives its master.

It is a process of its own for three reasons: a fork from a single thread is safe, whoever loses
its parent comes back to it (subreaper) and can be ended, and when the emulator dies, however it
dies, the end of the control socket tells it to kill all that it started. Should it be killed
itself, the kernel ends its children (parent-death signal). It has one thread and only the
standard library; it is run as a file.

Lines of JSON on the control socket. In: start, signal. Out: started, failed, exited.
"""

import contextlib
import ctypes
import datetime
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1  # Source: Linux, include/uapi/linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36  # Source: Linux, include/uapi/linux/prctl.h
LIBC = ctypes.CDLL(None, use_errno=True)
OWNER_VARIABLE = "WORLD_CONTAINER_ID"  # tells whose descendant an orphan is
MAX_LINE_BYTES = 16_384  # a longer line is logged in pieces, as container runtimes do
END_SECONDS = 5.0


@dataclass
class Child:
    """A started program, its output pipe and its log."""

    name: str
    pid: int
    output: int
    log: BinaryIO
    partial: bytes = b""
    closed: bool = False

    def drain(self) -> bool:
        """Log what the program has written so far; False at the end of the pipe."""
        while True:
            try:
                data = os.read(self.output, 65_536)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._log(self.partial + data)

    def _log(self, data: bytes) -> None:
        *lines, self.partial = data.split(b"\n")
        if len(self.partial) > MAX_LINE_BYTES:
            lines.append(self.partial)
            self.partial = b""
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode()
        with contextlib.suppress(OSError):  # a full disk costs lines, not every other container
            self.log.write(b"".join(stamp + line + b"\n" for line in lines))

    def close(self) -> None:
        """Log the rest, even without a newline at its end."""
        self.drain()
        if self.partial:
            self._log(self.partial + b"\n")
        os.close(self.output)
        self.log.close()
        self.closed = True


def die_with_parent(parent: int) -> None:
    """Run in the child before its program: the kernel ends it when the sandbox ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(137)


@dataclass
class Sandbox:
    """Starts, signals, logs and reaps; everything happens in `run`."""

    control: socket.socket
    children: dict[int, Child] = field(default_factory=dict)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    received: bytes = b""

    def run(self) -> None:
        """Serve until the control socket ends, then leave nothing behind."""
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        wake, waker = socket.socketpair()
        for end in (wake, waker, self.control):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for unwanted in (signal.SIGINT, signal.SIGTERM):  # only the master's end ends it
            # A handler, not SIG_IGN: programs would inherit that and never end on SIGTERM.
            signal.signal(unwanted, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self.selector.register(self.control, selectors.EVENT_READ, self.on_control)
        self.selector.register(wake, selectors.EVENT_READ, functools.partial(self.on_exit, wake))
        serving = True
        while serving:
            for key, _ in self.selector.select():
                serving = key.data() and serving
        self.end_all()

    def on_control(self) -> bool:
        try:
            data = self.control.recv(65_536)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            (self.start if order["do"] == "start" else self.signal)(order)
        return bool(data)

    def tell(self, **event: Any) -> None:
        self.control.setblocking(True)
        with contextlib.suppress(OSError):  # the master is gone: `run` is about to see it
            self.control.sendall(json.dumps(event).encode() + b"\n")
        self.control.setblocking(False)

    def start(self, order: dict[str, Any]) -> None:
        name = order["name"]
        output, theirs = os.pipe()
        try:
            log = open(order["log"], "ab", buffering=0)  # noqa: SIM115 - closed with its child
            process = subprocess.Popen(
                order["argv"],
                env={**order["env"], OWNER_VARIABLE: name},
                cwd=order["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=functools.partial(die_with_parent, os.getpid()),  # noqa: PLW1509
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            os.close(output)
            self.tell(event="failed", name=name, error=str(error))
            return
        finally:
            os.close(theirs)
        process.returncode = 0  # reaped below, for all alike; Popen need not look
        os.set_blocking(output, False)
        child = Child(name, process.pid, output, log)
        self.children[child.pid] = child
        self.selector.register(
            output, selectors.EVENT_READ, functools.partial(self.on_output, child)
        )
        self.tell(event="started", name=name, pid=child.pid)

    def on_output(self, child: Child) -> bool:
        # One look at the selector may have shown its end as well, and that came first.
        if not child.closed and not child.drain():
            self.selector.unregister(child.output)
        return True

    def signal(self, order: dict[str, Any]) -> None:
        """To the program alone, or with SIGKILL to its whole group, like a container runtime."""
        for child in self.children.values():
            if child.name == order["name"]:
                everyone = order["signal"] == signal.SIGKILL
                with contextlib.suppress(ProcessLookupError):
                    (os.killpg if everyone else os.kill)(child.pid, order["signal"])

    def on_exit(self, wake: socket.socket) -> bool:
        with contextlib.suppress(BlockingIOError):
            wake.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid in self.children:
                    self.ended(self.children.pop(pid), os.waitstatus_to_exitcode(status))
        self.end_orphans()
        return True

    def ended(self, child: Child, code: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # a container ends with its first process
        with contextlib.suppress(KeyError):
            self.selector.unregister(child.output)
        child.close()
        self.tell(event="exited", name=child.name, code=code if code >= 0 else 128 - code)

    def end_orphans(self) -> None:
        """Kill what came back to us from a container that has ended."""
        living = {child.name for child in self.children.values()}
        for pid in own_children():
            if pid not in self.children and owner(pid) not in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def end_all(self) -> None:
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            for pid in own_children():
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def own_children() -> list[int]:
    """The processes whose parent is this one now."""
    with open(f"/proc/self/task/{os.getpid()}/children") as listing:
        return [int(pid) for pid in listing.read().split()]


def owner(pid: int) -> str:
    """The container a process descends from, by the variable it inherited."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as variables:
            entries = variables.read().split(b"\0")
    except OSError:
        return ""
    prefix = OWNER_VARIABLE.encode() + b"="
    return next((e[len(prefix) :].decode() for e in entries if e.startswith(prefix)), "")


if __name__ == "__main__":
    Sandbox(socket.socket(fileno=int(sys.argv[1]))).run()
