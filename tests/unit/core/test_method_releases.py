"""Checkpoints whose quantisation a release does not know."""

import pytest

from builders_core import qwen25_7b
from shipfitter.core.facts import Quantization
from shipfitter.core.legality import card_problems
from shipfitter.core.method_releases import method_problem


@pytest.mark.parametrize(
    ("method", "release", "want"),
    [
        pytest.param("fp8", (0, 6), "", id="known from the first release to the newest"),
        pytest.param("bitsandbytes", (0, 27), "", id="the last release that had it"),
        pytest.param("bitsandbytes", (0, 28), "before 0.28 only", id="given up"),
        pytest.param("mxfp4", (0, 9), "from vLLM 0.10 on", id="not there yet"),
        pytest.param("auto-round", (0, 33), "", id="read under another name today"),
        pytest.param("exl3", (0, 33), "no vLLM release loads exl3", id="never known"),
    ],
)
def test_a_method_is_known_to_some_releases(method, release, want):
    said = method_problem(method, release)
    assert want in said
    assert bool(said) == bool(want)


def test_the_engine_would_refuse_it_on_every_card():
    model = qwen25_7b(quantization=Quantization(method="eetq", weight_bits=8))
    for capability in ((8, 9), None):
        (problem,) = card_problems(model, capability)
        assert "eetq" in problem
