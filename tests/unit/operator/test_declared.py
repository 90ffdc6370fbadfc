"""The chart's value capacity.declared."""

import json

import pytest

from shipfitter.core.capacity import Taint
from shipfitter.errors import InvalidSpecError
from shipfitter.operator.configuration import read_configuration


def read(entries):
    text = entries if isinstance(entries, str) else json.dumps(entries)
    return read_configuration((), {"SHIPFITTER_DECLARED_CAPACITY": text}).settings.declared


def test_what_is_declared():
    taint = {"key": "dedicated", "value": "llm", "effect": "NoSchedule"}
    (card, machine) = read(
        [
            {"product": "l40s", "gpusPerNode": 4, "nodeLabels": {"pool": "a"}, "taints": [taint]},
            {"product": "p5.48xlarge", "nodeLabels": {"pool": "b"}},
        ]
    )
    assert (card.found.row.product, card.gpus_per_node) == ("NVIDIA-L40S", 4)
    assert card.taints == (Taint(key="dedicated", value="llm"),)
    assert (machine.found.row.product, machine.gpus_per_node) == ("NVIDIA-H100-80GB-HBM3", 8)
    assert machine.labels == {"pool": "b"}


@pytest.mark.parametrize(
    ("entries", "want"),
    [
        pytest.param("{", "capacity.declared: not JSON", id="no JSON"),
        pytest.param({"product": "l4"}, "must be a list", id="one alone"),
        pytest.param(["l4"], "capacity.declared[0]: must be an object", id="a bare name"),
        pytest.param(
            [{"product": "a100", "nodeLabels": {"a": "b"}}],
            "did you mean NVIDIA-A100-SXM4-80GB",
            id="a name of several cards",
        ),
        pytest.param(
            [{"product": "l4", "gpusPerNode": 65, "nodeLabels": {"a": "b"}}],
            "must be 1 to 64, got 65",
            id="too many",
        ),
        pytest.param([{"product": "l4"}], "give the labels", id="no labels"),
    ],
)
def test_mistakes_are_named(entries, want):
    with pytest.raises(InvalidSpecError, match=r"capacity\.declared") as error:
        read(entries)
    assert want in str(error.value)
