"""`shipfitter estimate` run in this process, as a user would type it."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shipfitter.cli import main

MODELS = Path(__file__).parents[2] / "data" / "models"
LLAMA = f"--model-facts {MODELS / 'Llama-3.1-8B-Instruct.json'}"


@dataclass(frozen=True)
class Ran:
    """What a run printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        return json.loads(self.out)


def run(capsys: pytest.CaptureFixture[str], line: str) -> Ran:
    with pytest.raises(SystemExit) as ended:
        main(["estimate", *shlex.split(line)])
    printed = capsys.readouterr()
    return Ran(int(ended.value.code or 0), printed.out, printed.err)


def record_of(capsys: pytest.CaptureFixture[str], line: str) -> dict[str, Any]:
    """The JSON of a run that was no mistake."""
    options, _, command = line.partition(" -- ")
    ran = run(capsys, f"{options} -o json -- {command}")
    assert ran.code in (0, 1, 3), ran.err
    return ran.record
