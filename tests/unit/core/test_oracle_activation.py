"""Activation peaks beside those of the engine's own model code, run on tensors without data."""

import pytest

from oracle.activation.cases import CASES
from oracle.activation.compared import answered, answers, figures

TOLERANCE = 0.05
LEAST_ANSWERS = 40

_FIGURES = [figure for answer in answered() for figure in figures(answer)]
_TRUSTED = [figure for figure in _FIGURES if not figure.excepted]


@pytest.mark.parametrize(
    "figure", [pytest.param(it, id=f"{it.quantity} of {it.case.name}") for it in _TRUSTED]
)
def test_is_within_five_percent_of_the_engines_code(figure):
    assert abs(figure.relative) <= TOLERANCE, f"{figure.ours:,} instead of {figure.engine:,}"


def test_only_forwards_of_dense_8_bit_models_are_excepted_and_they_are_near():
    excepted = [figure for figure in _FIGURES if figure.excepted]
    assert {figure.quantity for figure in excepted} == {"forward"}
    assert {figure.case.model for figure in excepted} == {"Qwen3-8B-FP8"}
    assert all(abs(figure.relative) <= 3 * TOLERANCE for figure in excepted)


def test_every_case_is_answered_or_refused_with_a_reason():
    assert [answer.case for answer in answers()] == list(CASES)
    assert [answer.case.name for answer in answers() if answer.refused == ""] == []
    assert len(answered()) >= LEAST_ANSWERS


def test_answers_name_release_and_torch():
    assert {answer.said["release"] for answer in answers()} == {"0.32.0"}
    assert all(answer.said["torch"].startswith("2.13.0") for answer in answers())
