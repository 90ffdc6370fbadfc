"""The engine's log: its configuration file, its formatter, its line shape, who says it.

Source: vLLM 0.33 vllm/logger.py, vllm/logging_utils/formatter.py, vllm/utils/system_utils.py
decorate_logs.
"""

import json
import logging
import logging.config
import os
import sys
import types
from pathlib import Path
from typing import Any, TextIO

FORMAT = "%(levelname)s %(asctime)s [%(fileinfo)s:%(lineno)d] %(message)s"
DATE_FORMAT = "%m-%d %H:%M:%S"


class NewLineFormatter(logging.Formatter):
    """Every line of a message begins as its first one does."""

    def format(self, record: logging.LogRecord) -> str:
        record.fileinfo = Path(record.pathname).name
        text = super().format(record)
        if record.message:
            start = text.split(record.message)[0]
            text = text.replace("\n", "\r\n" + start)
        return text


class SpokenBy:
    """A stream that puts the speaking process before each line, as the real processes do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_start = True
        self.speaker = ""

    def write(self, text: str) -> int:
        prefix = f"({self.speaker}) " if self.speaker else ""
        for line in text.splitlines(keepends=True):
            self._stream.write(prefix + line if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False


class EngineLog:
    """What this engine says: log lines, raw tracebacks, and by which of its processes."""

    def __init__(self) -> None:
        self.out = SpokenBy(sys.stdout)
        self.err = SpokenBy(sys.stderr)
        self.speak_as("APIServer")

    def configure(self) -> None:
        """As the engine does on import; VLLM_LOGGING_CONFIG_PATH replaces all of it."""
        sys.stdout, sys.stderr = self.out, self.err  # type: ignore[assignment]
        _stand_in_for_vllm()
        named = os.environ.get("VLLM_LOGGING_CONFIG_PATH")
        if not named:
            logging.config.dictConfig(_default_configuration())
            return
        if not Path(named).exists():
            raise RuntimeError(f"Could not load logging config. File does not exist: {named}")
        configuration = json.loads(Path(named).read_text("utf-8"))
        if not isinstance(configuration, dict):
            raise ValueError(
                f"Invalid logging config. Expected dict, got {type(configuration).__name__}."
            )
        logging.config.dictConfig(configuration)

    def speak_as(self, process: str, pid: int | None = None) -> None:
        self.out.speaker = self.err.speaker = f"{process} pid={pid or os.getpid()}"

    def say(self, origin: str, message: str) -> None:
        """`origin` is the module and line that says it: `v1.worker.gpu_worker:456`."""
        self._say(logging.INFO, origin, message)

    def whisper(self, origin: str, message: str) -> None:
        self._say(logging.DEBUG, origin, message)

    def complain(self, origin: str, message: str, traceback: str = "") -> None:
        self._say(logging.ERROR, origin, message, traceback)

    def raw(self, text: str) -> None:
        """What an uncaught exception leaves: on standard error, through no logger."""
        self.err.write(text if text.endswith("\n") else text + "\n")
        self.err.flush()

    def _say(self, level: int, origin: str, message: str, traceback: str = "") -> None:
        module, _, line = origin.partition(":")
        logger = logging.getLogger(f"vllm.{module}")
        if not logger.isEnabledFor(level):
            return
        path = f"/usr/local/lib/python3.12/dist-packages/vllm/{module.replace('.', '/')}.py"
        record = logger.makeRecord(logger.name, level, path, int(line), message, (), None)
        record.exc_text = traceback or None
        logger.handle(record)


def _stand_in_for_vllm() -> None:
    """Make `vllm.logging_utils.NewLineFormatter` a name that dictConfig finds."""
    package = types.ModuleType("vllm")
    utils = types.ModuleType("vllm.logging_utils")
    vars(utils)["NewLineFormatter"] = NewLineFormatter
    vars(package)["logging_utils"] = utils
    sys.modules["vllm"] = package
    sys.modules["vllm.logging_utils"] = utils


def _default_configuration() -> dict[str, Any]:
    level = os.environ.get("VLLM_LOGGING_LEVEL", "INFO").upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "vllm": {
                "class": "vllm.logging_utils.NewLineFormatter",
                "datefmt": DATE_FORMAT,
                "format": os.environ.get("VLLM_LOGGING_PREFIX", "") + FORMAT,
            }
        },
        "handlers": {
            "vllm": {
                "class": "logging.StreamHandler",
                "formatter": "vllm",
                "level": level,
                "stream": "ext://sys.stdout",
            }
        },
        "loggers": {"vllm": {"handlers": ["vllm"], "level": level, "propagate": False}},
    }
