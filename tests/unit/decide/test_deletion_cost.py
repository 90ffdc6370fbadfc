"""Which pods go first when replicas are taken away."""

import pytest

from builders_decide import serving
from builders_plan import node
from shipfitter.decide.deletion_cost import deletion_costs

V = "llama-1"


def pods(*placed):
    """Pods of one variant: (node, cost)."""
    return [
        serving(V, where, number=number, cost=cost) for number, (where, cost) in enumerate(placed)
    ]


def nodes(**used):
    return [node(name, "NVIDIA-L40S", 8, used_gpus=count) for name, count in used.items()]


@pytest.mark.parametrize(
    ("placed", "used", "want"),
    [
        pytest.param(
            [("a", 0), ("a", 0), ("b", 0)],
            {"a": 2, "b": 1},
            {f"{V}-0": 2, f"{V}-1": 2, f"{V}-2": 1},
            id="the pod alone on its node goes first",
        ),
        pytest.param(
            [("a", 0), ("b", 0)],
            {"a": 8, "b": 1},
            {f"{V}-0": 8, f"{V}-1": 1},
            id="a node that others fill stays full",
        ),
        pytest.param([("a", 0), ("b", 0)], {"a": 1, "b": 1}, {}, id="nodes alike need no order"),
        pytest.param([("a", 0)], {"a": 5}, {}, id="a single pod needs none"),
        pytest.param(
            [("a", 7), ("b", 1)], {"a": 3, "b": 2}, {}, id="while the order stands nothing is said"
        ),
        pytest.param(
            [("a", 3), ("b", 1)],
            {"a": 1, "b": 4},
            {f"{V}-0": 1, f"{V}-1": 4},
            id="a turned order is written anew",
        ),
        pytest.param([("", 0), ("a", 0)], {"a": 1}, {}, id="a pod that waits holds nothing"),
    ],
)
def test_pods_on_emptier_nodes_are_cheaper(placed, used, want):
    assert deletion_costs(pods(*placed), nodes(**used), [V]) == want


def test_what_was_written_is_not_written_again():
    first = deletion_costs(pods(("a", 0), ("b", 0)), nodes(a=2, b=1), [V])
    written = pods(("a", first[f"{V}-0"]), ("b", first[f"{V}-1"]))
    assert deletion_costs(written, nodes(a=2, b=1), [V]) == {}


def test_variants_are_ordered_each_for_itself():
    others = [serving("group", "b", number=5)]
    costs = deletion_costs([*pods(("a", 0), ("a", 0)), *others], nodes(a=2, b=1), [V])
    assert costs == {}
