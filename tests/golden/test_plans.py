"""Whole stories through the pure line, as a person sees them; `make golden` writes them anew.

The figures in them are the planner's own: a change of a constant shows here on purpose.
"""

from pathlib import Path

import pytest

from shipfitter.cli.plan import run_plan

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "plans"

STORIES = {
    "llama-8b on the smallest of three types": ("llama-3.1-8b", ["L4:2", "L40S:8", "H100:8"]),
    "llama-8b where there is only an L4": ("llama-3.1-8b", ["L4:1"]),
    "qwen3-32b takes its AWQ form on one L40S": ("qwen3-32b-with-alternatives", ["L40S:1"]),
    "qwen3-32b in full on H100s": ("qwen3-32b-with-alternatives", ["H100:8"]),
    "gemma-3-27b with its sliding layers": ("gemma-3-27b", ["A100-80GB:1"]),
    "a 70b over tensor-parallel A100s": ("llama-3.3-70b-two-gpu-types", ["A100-80GB:8", "H100:8"]),
    "a 70b that none of its products can hold": ("llama-3.3-70b-two-gpu-types", ["L4:4"]),
    "a group of two nodes": ("deepseek-r1-two-nodes", ["H100:8", "H100:8"]),
    "a layout that the user pins": ("deepseek-v3-expert-parallel", ["H200:8"]),
    "three replicas over two types": ("llama-3.1-8b-three-replicas", ["L40S:1", "A100-80GB:2"]),
    "facts inline and no network": ("inline-facts", ["L40S:4"]),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_the_plan_a_person_sees(story, capsys, request):
    example, gpus = STORIES[story]
    code = run_plan(
        ROOT / "examples" / f"{example}.yaml", gpus, None,
        output="text", manifests=False, context=None, offline=True,
    )  # fmt: skip
    got = f"{capsys.readouterr().out}exit code {code}\n"
    golden = GOLDEN / f"{story.replace(' ', '-')}.txt"
    if request.config.getoption("--update-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(got, encoding="utf-8")
    assert got == golden.read_text(encoding="utf-8"), "read the difference, then: make golden"
    assert max(map(len, got.splitlines())) <= 100
