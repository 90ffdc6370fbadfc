"""`shipfitter compare-log`: what an engine's log states, beside what would have been predicted."""

import codecs
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from shipfitter.cli.compare_log_question import question_of
from shipfitter.cli.estimate import estimate
from shipfitter.cli.estimate_record import Estimated, estimate_record
from shipfitter.core.engine_log import EngineLog, read_log
from shipfitter.errors import InvalidSpecError, UserError
from shipfitter.known_models import known_config

EXIT_READ, EXIT_NOTHING = 0, 2
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # what PowerShell's > writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What the command line adds to a log that does not say it."""

    model_facts: Path | None = None
    gpu: str | None = None
    gpu_memory_mib: float | None = None
    engine_version: str | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A log, the prediction of the same run, and what it rests on or why there is none."""

    log: EngineLog
    predicted: Estimated | None = None
    notes: tuple[str, ...] = ()


def run_compare_log(file: Path, filling: Filling, *, output: str) -> int:
    """Print the comparison; 0 when the file said anything."""
    try:
        text = _text(file)
    except InvalidSpecError as error:
        print(f"shipfitter: {error}", file=sys.stderr)
        return EXIT_NOTHING
    log = read_log(text)
    compared = _compared(log, filling) if log.says_anything else Comparison(log=log)
    if output == "text":
        from shipfitter.cli.compare_log_text import comparison_text

        if log.says_anything:
            print(comparison_text(str(file), compared))
    else:
        _print_record(compared, output)
    if log.says_anything:
        return EXIT_READ
    print(
        f"shipfitter: {file}: no line of a vLLM log in it; give what the engine printed from its "
        "start on",
        file=sys.stderr,
    )
    return EXIT_NOTHING


def _print_record(compared: Comparison, output: str) -> None:
    predicted = compared.predicted
    record = {
        "read": dict(compared.log.read()),
        "outcome": compared.log.outcome,
        "predicted": None if predicted is None else estimate_record(predicted),
    }
    if output == "json":
        print(json.dumps(record, indent=2))
        return
    import yaml

    print(yaml.safe_dump(record, sort_keys=False), end="")


def _text(file: Path) -> str:
    """The text of a file, or of standard input for -; in whatever encoding a shell wrote it."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InvalidSpecError((f"{file}: {error.strerror}; give the path of a log",)) from error
    encoding = "utf-16" if data.startswith(_WIDE_MARKS) else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def _compared(log: EngineLog, filling: Filling) -> Comparison:
    try:
        question, notes = question_of(
            log,
            gpu=filling.gpu,
            gpu_memory_mib=filling.gpu_memory_mib,
            engine_version=filling.engine_version,
            model_facts=filling.model_facts,
        )
        if (
            filling.offline
            and filling.model_facts is None
            and known_config(log.model or "") is None
        ):
            raise InvalidSpecError((f"{log.model} is not known offline: give --model-facts",))
        question = replace(question, offline=filling.offline)
        return Comparison(log=log, predicted=estimate(question), notes=notes)
    except UserError as error:
        message = str(error).replace("spec.model.facts", "--model-facts")
        name = "" if error.reason == "InvalidSpec" else f"{error.reason}: "
        return Comparison(log=log, notes=(f"{name}{message}",))
