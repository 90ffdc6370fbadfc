"""Ask the newest release for activation peaks: `python -m oracle.activation.ask FILE`.

Runs inside the engine's environment. One child process for each case, because the engine and the
compiler keep what they learnt of the last model; one line of JSON for each. Cases that the file
answers already are not asked again: remove it to ask for all.
"""

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oracle.activation.cases import CASES, Case
from oracle.activation.compiler import ENVIRONMENT

# Its layouts of scales are values: without it the engine takes kernels that need none.
_WITHOUT = {"VLLM_USE_DEEP_GEMM": "0"}


def main(path: str) -> None:
    """Ask what is not answered and write all answers, in the order of the cases."""
    file = Path(path)
    answered = {_key(row): row for row in _lines(file)}
    os.environ.update(ENVIRONMENT | _WITHOUT)
    _prepare()
    for case in CASES:
        if _key(asdict(case)) in answered:
            continue
        began = time.monotonic()
        answered[_key(asdict(case))] = row = asdict(case) | _in_child(case)
        took = f"{time.monotonic() - began:.0f} s"
        print(case.name, took, str(row.get("refused", ""))[:200], file=sys.stderr, flush=True)
        _write(file, answered)
    _write(file, answered)


def _key(row: dict[str, Any]) -> str:
    return json.dumps({name: row.get(name) for name in Case.__dataclass_fields__})


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _write(file: Path, answered: dict[str, dict[str, Any]]) -> None:
    keys = (_key(asdict(case)) for case in CASES)
    rows = [answered[key] for key in keys if key in answered]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _prepare() -> None:
    """Everything that all cases share, imported once."""
    from oracle.activation.collectives import pretend_collectives
    from oracle.activation.engine_operators import run_bodies
    from oracle.activation.kernels import pretend_kernels
    from oracle.ask_models import prepare

    def before_engine() -> None:
        run_bodies()
        pretend_kernels()
        pretend_collectives()

    prepare(before_engine)


def _in_child(case: Case) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(2, 1)  # the engine prints
        with os.fdopen(writer, "w") as answers:
            answers.write(json.dumps(_answer(case)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(text or '{"refused": "the engine ended without a word"}')
    return found


def _answer(case: Case) -> dict[str, Any]:
    import torch
    import vllm

    from oracle.activation.compiler import pretend_compiler
    from oracle.activation.profile_run import answer

    versions = {"release": vllm.__version__.split("+")[0], "torch": torch.__version__}
    try:
        if not case.eager:
            pretend_compiler()
        return versions | answer(case)
    except BaseException as error:
        said = " ".join(str(error).split())[:300]
        return versions | {"refused": f"{type(error).__name__}: {said}"}


if __name__ == "__main__":
    main(sys.argv[1])
