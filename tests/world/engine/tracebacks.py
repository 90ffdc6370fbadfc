"""What Python prints when the engine gives up: long, and the cause is rarely at its end.

The shapes follow a refusal of vLLM 0.32 that was looked at: 180 lines, the cause in the middle,
8 kB of the front process after it.
"""

from world.engine.traceback_frames import (
    CACHES,
    CONFIG,
    CORE,
    EXECUTOR,
    FRONT,
    PHASES,
    ROOT,
    WORKER,
    Frame,
)


def _traceback(frames: list[Frame], last: str) -> str:
    lines = ["Traceback (most recent call last):"]
    for file, number, function, code in frames:
        lines += [f'  File "{ROOT}{file}", line {number}, in {function}', f"    {code}"]
        lines.append("    " + "^" * len(code))
    return "\n".join([*lines, last])


def of_core(phase: str, error: str) -> str:
    """In the core process, a single rank: the worker lives there."""
    if phase == "run":
        return _traceback([CORE[0], *PHASES[phase]], error)
    through = EXECUTOR if phase in ("free memory", "load") else CACHES
    return _traceback([*CORE, *through, *PHASES[phase]], error)


def of_worker(phase: str, error: str) -> str:
    """In one of several worker processes."""
    return _traceback([*WORKER, *PHASES[phase]], error)


def of_core_without_workers() -> str:
    return _traceback(
        [*CORE, *EXECUTOR],
        "Exception: WorkerProc initialization failed due to an exception in a background process. "
        "See stack trace for root cause.",
    )


def of_front() -> str:
    """The API server: nothing of the cause."""
    return _traceback(
        FRONT,
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        "proc(s): {}",
    )


def of_config(error: str) -> str:
    """A setting refused in the API server."""
    return _traceback(CONFIG, error)
