"""The documents say what the code does."""

import re
import shlex
import subprocess
import sys

import pytest
import yaml

from contract.generated import PAGES, ROOT
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.status.reasons import REASONS

READMES = ("README.md", "README.zh-CN.md")


@pytest.mark.parametrize("path", PAGES)
def test_generated_documents_are_current(path):
    assert (ROOT / path).read_text() == PAGES[path](), "run: make golden"


def test_every_reason_used_in_the_code_is_documented():
    source = "\n".join(path.read_text() for path in (ROOT / "operator").rglob("*.py"))
    used = set(re.findall(r'Condition\(\s*"\w+",\s*\w+,\s*"(\w+)"', source))
    assert used <= {reason.name for reason in REASONS}


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / readme).read_text(), re.S | re.M)


def console_steps() -> list[str]:
    steps = []
    for readme in READMES:
        for block in blocks(readme, "console"):
            steps += re.split(r"^\$ ", block, flags=re.M)[1:]
    return list(dict.fromkeys(steps))


@pytest.mark.parametrize("step", console_steps())
def test_readme_commands_print_what_the_readme_shows(step):
    command, _, want = step.partition("\n")
    program, *arguments = shlex.split(command)
    assert program == "shipfitter", "console blocks are run; use sh for what needs a cluster"
    result = subprocess.run(
        [sys.executable, "-m", "shipfitter", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stdout.rstrip() == want.rstrip(), result.stderr


@pytest.mark.parametrize("readme", READMES)
def test_files_named_in_the_readme_exist(readme):
    text = (ROOT / readme).read_text()
    named = set(re.findall(r"\b(?:examples|docs|charts|tests|operator|crds)/[\w./-]+\w", text))
    missing = {path for path in named if not (ROOT / path).exists()}
    assert not missing


@pytest.mark.parametrize("readme", READMES)
def test_make_targets_named_in_the_readme_exist(readme):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(
        re.findall(r"(?:`|^)(?:KEEP=1 )?make (?:-s )?([a-z-]+)", (ROOT / readme).read_text(), re.M)
    )
    assert named <= targets


def test_both_readmes_show_the_same_blocks():
    english, chinese = (
        {language: blocks(readme, language) for language in ("console", "sh", "yaml")}
        for readme in READMES
    )
    assert english == chinese


@pytest.mark.parametrize("readme", READMES)
def test_manifests_in_the_readme_parse(readme):
    for block in blocks(readme, "yaml"):
        for body in yaml.safe_load_all(block):
            ModelDeployment.parse(body, unknown="forbid")


def test_the_source_root_is_no_package():
    shadow = ROOT / "operator" / "__init__.py"
    assert not shadow.exists(), "delete it: it would shadow the stdlib module operator"
