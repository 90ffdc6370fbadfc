"""Every example is right to the letter."""

from pathlib import Path

import pytest
import yaml

from shipfitter.api.model_deployment import ModelDeployment

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_no_mistake(path):
    (body,) = yaml.safe_load_all(path.read_text())
    ModelDeployment.parse(body, unknown="forbid")


def test_the_first_example_is_five_lines():
    (first,) = [path for path in EXAMPLES if path.stem == "llama-3.1-8b"]
    assert len(first.read_text().splitlines()) == 5
    assert len(EXAMPLES) >= 5
