"""Commands inside a running container: exec probes and hooks, with its variables and paths."""

import itertools
from collections.abc import Sequence

from world.nodes.launch import Launch
from world.nodes.processes import Processes
from world.nodes.termination import last_bytes

OUTPUT_BYTES = 1024
NUMBERS = itertools.count()  # names in the sandbox are unique


def run_inside(
    processes: Processes, launch: Launch, name: str, command: Sequence[str], timeout_seconds: float
) -> tuple[int | None, str]:
    """(exit code, or None when the time ended first; the output's end)."""
    number = next(NUMBERS)
    log = launch.root / f".exec-{number}.log"
    process = processes.launch(
        f"{name}/exec-{number}", launch.translate(command), launch.variables, launch.root, log
    )
    code = process.wait(timeout_seconds)
    if code is None:
        process.kill()
        process.wait()
    lines = last_bytes(log, OUTPUT_BYTES).splitlines()
    log.unlink(missing_ok=True)
    output = b"\n".join(line.partition(b" ")[2] for line in lines).decode(errors="replace")
    return code, process.error or output
