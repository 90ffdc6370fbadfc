"""How the engine goes: what it says last, through the log and past it."""

import os

from world.engine import tracebacks
from world.engine.config_error import ConfigError
from world.engine.engine_logging import EngineLog
from world.engine.group import LOST
from world.engine.refused import Refused
from world.engine.scenario import Device, Scenario
from world.engine.settings import Settings


def refused_by_config(log: EngineLog, error: ConfigError) -> None:
    """The API server raises; nothing passes through the log."""
    text = (
        f"pydantic_core._pydantic_core.ValidationError: 1 validation error for {error.config}\n"
        f"  Value error, {error} [type=value_error, input_value=ArgsKwargs((), {{...}}), "
        "input_type=ArgsKwargs]\n"
        "    For further information visit https://errors.pydantic.dev/2.12/v/value_error"
    )
    log.raw(tracebacks.of_config(text))


def refused_by_core(log: EngineLog, refusal: Refused, settings: Settings) -> None:
    """The cause in the middle of the log, the front's traceback after it."""
    error = str(refusal)
    ranks = settings.tensor * settings.pipeline
    in_core = refusal.phase in ("planner", "states")
    if ranks > 1 and not in_core:
        for rank in range(ranks):
            log.speak_as(f"Worker_TP{rank}", os.getpid() + 2 + rank)
            log.complain(
                "v1.executor.multiproc_executor:872",
                "WorkerProc failed to start.",
                tracebacks.of_worker(refusal.phase, error),
            )
        log.speak_as("EngineCore")
        core = tracebacks.of_core_without_workers()
    else:
        log.speak_as("EngineCore")
        core = tracebacks.of_core(refusal.phase, error)
    log.complain("v1.engine.core:1213", "EngineCore failed to start.", core)
    log.complain("v1.executor.abstract:318", "Executor failed, shutting down.")
    log.raw("Process EngineCore:\n" + core)
    log.speak_as("APIServer")
    log.raw(tracebacks.of_front())


def refused_by_worker(log: EngineLog, refusal: Refused) -> None:
    """A node without a core: only its workers have anything to say."""
    log.speak_as("Worker_TP0", os.getpid() + 2)
    log.complain(
        "v1.executor.multiproc_executor:872",
        "WorkerProc failed to start.",
        tracebacks.of_worker(refusal.phase, str(refusal)),
    )
    log.speak_as("APIServer")
    log.raw(tracebacks.of_front())


def died(log: EngineLog, death: str, scenario: Scenario, device: Device) -> int:
    """A death while serving; the exit code, or a signal to itself."""
    log.speak_as("EngineCore")
    if death == "oom":
        text = (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a "
            f"total capacity of {device.total_bytes / 2**30:.2f} GiB of which 121.81 MiB is free."
        )
        log.complain(
            "v1.engine.core:1221",
            "EngineCore encountered a fatal error.",
            tracebacks.of_core("run", text),
        )
        log.speak_as("APIServer")
        log.raw(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack "
            "trace (above) for the root cause."
        )
    if death == "lost":
        log.complain(
            "v1.engine.core:1221",
            "EngineCore encountered a fatal error.",
            tracebacks.of_core("run", LOST),
        )
    if scenario.exit_code < 0:
        os.kill(os.getpid(), -scenario.exit_code)
    return scenario.exit_code
