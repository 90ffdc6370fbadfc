"""Documents made from the code; `python -m contract.generated` (from tests/) writes them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from shipfitter.status.reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("plan", "estimate", "compare-log", "gpus", "crd", "version")
EDIT = "<!-- Generated from the code: `make golden` writes it anew. -->\n\n"


def conditions_page() -> str:
    """Every reason with its meaning and remedy."""
    lines = [
        "# Conditions and reasons\n\n",
        EDIT,
        "A ModelDeployment tells its story in conditions. `Ready` sums the others up; "
        "`kubectl get mdl` shows its reason.\n\n",
        "| condition | true when |\n| --- | --- |\n",
        "| `Ready` | all replicas serve |\n",
        "| `ModelResolved` | the model's facts are known |\n",
        "| `CapacityKnown` | at least one usable pool of GPUs is known |\n",
        "| `Planned` | a plan fits the wish onto the GPUs |\n",
        "| `Available` | all replicas are up |\n",
        "| `Verified` | the engines answered a load test of this plan whole "
        "(`spec.verify.enabled`) |\n",
        "| `Drifted` | today another plan would be made than the one that runs |\n",
        "| `Reconciling`, `Stalled` | as kstatus defines them |\n\n",
        "| reason | what it means | what to do |\n| --- | --- | --- |\n",
    ]
    lines += [
        f"| `{reason.name}` | {reason.meaning} | {reason.remedy or 'Nothing.'} |\n"
        for reason in sorted(REASONS, key=lambda each: each.name)
    ]
    return "".join(lines)


def cli_page() -> str:
    """What --help says of every command."""
    pages = ["# The command line\n\n", EDIT]
    for command in ("", *COMMANDS):
        title = f"shipfitter {command}".strip()
        pages.append(f"## {title}\n\n```text\n{_help(command)}\n```\n\n")
    return "".join(pages).rstrip() + "\n"


def _help(command: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    words = [sys.executable, "-m", "shipfitter", *([command] if command else []), "--help"]
    text = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n")


PAGES = {"docs/conditions.md": conditions_page, "docs/cli.md": cli_page}


READMES = ("README.md", "README.zh-CN.md")
CONSOLE = re.compile(r"^```console\n\$ (?P<command>.*)\n(?P<shown>(?:.*\n)*?)```", re.MULTILINE)


def refreshed(readme: str) -> str:
    """The README with what its console commands print now."""

    def answer(found: re.Match[str]) -> str:
        program, *arguments = shlex.split(found["command"])
        words = [sys.executable, "-m", program, *arguments]
        run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        return f"```console\n$ {found['command']}\n{run.stdout.rstrip()}\n```"

    return CONSOLE.sub(answer, readme)


def main() -> None:
    """Write them all."""
    for name in READMES:
        path = ROOT / name
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote {name}")
    for path, page in PAGES.items():
        (ROOT / path).write_text(page(), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
