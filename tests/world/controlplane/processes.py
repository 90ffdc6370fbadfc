"""Local processes that never outlive their parent, and are known by more than a pid."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

END_LIMIT_SECONDS = 20.0

# Runs before the program, in its process: asks the kernel to kill it when its parent is gone. Not a
# preexec_fn, which forks Python code in a process with threads.
# Source: Linux, include/uapi/linux/prctl.h (PR_SET_PDEATHSIG = 1)
_TIE = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

# The kernel means the parent *thread*. Every process is therefore started by one thread that lives
# as long as the interpreter, whichever thread asked for it.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-starter")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process: a pid alone may have been given to another one since."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> "Identity":
        stat = _stat(pid)
        if stat is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, stat[1])

    def alive(self) -> bool:
        return _stat(self.pid) == (True, self.start_ticks)


def _stat(pid: int) -> tuple[bool, int] | None:
    """Whether it runs (a zombie does not), and when it began; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # Source: proc_pid_stat(5); fields[0] is its third
    return fields[0] not in "ZX", int(fields[19])


def start(
    argv: Sequence[str | Path],
    *,
    log: Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    outlives_us: bool = False,
) -> subprocess.Popen[bytes]:
    """A running program in a session of its own, its output appended to `log`."""
    words = [str(word) for word in argv]
    if not outlives_us:
        words = [sys.executable, "-I", "-S", "-c", _TIE, str(os.getpid()), *words]

    def begin() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )

    return _starter.submit(begin).result()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Nothing of the process's own session runs any more."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(END_LIMIT_SECONDS)


def end(processes: Iterable[Identity]) -> None:
    """None of these runs any more; those of other parents included."""
    waiting = [process for process in processes if process.alive()]
    for process in waiting:
        with contextlib.suppress(ProcessLookupError):
            # Hard: with watches open, kube-apiserver takes a minute to end on SIGTERM.
            os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + END_LIMIT_SECONDS
    while still := [process.pid for process in waiting if process.alive()]:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"processes {still} still run {END_LIMIT_SECONDS:.0f} s after SIGKILL"
            )
        time.sleep(0.01)
