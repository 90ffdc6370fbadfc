"""A figure of docs/accuracy.md that gets worse fails here."""

import json
from pathlib import Path

import pytest

from accuracy.figures import figures
from accuracy.observations import observations
from accuracy.report import page
from accuracy.scoring import scores

# {"figure": {"at_most" or "at_least": value}}: what is committed; tighten it when figures improve.
BOUNDS = json.loads((Path(__file__).parent / "bounds.json").read_text())


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in BOUNDS])
def test_no_figure_gets_worse(name):
    got = figures(scores())[name]
    bound = BOUNDS[name]
    assert got <= bound.get("at_most", got), f"{name}: {got:.4f}"
    assert got >= bound.get("at_least", got), f"{name}: {got:.4f}"


def test_every_figure_has_a_bound():
    assert set(figures(scores())) == set(BOUNDS)


def test_the_page_can_be_written_and_names_every_figure():
    text = page()
    assert text.startswith("# Accuracy")
    assert [name for name in BOUNDS if "median error" not in name and name not in text] == []


def test_every_observation_has_its_own_name_and_a_source():
    rows = observations()
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.source for row in rows)
