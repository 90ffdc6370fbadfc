"""Tensors by group, and back: nothing is lost, nothing swells up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shipfitter.core.facts import TensorHeader
from shipfitter.core.tensor_groups import expanded, folded, read_group

SEGMENTS = st.sampled_from(["layers", "experts", "up", "weight", "0", "1", "2", "17", "007", "*1"])
NAMES = st.lists(SEGMENTS, min_size=1, max_size=5).map(".".join)
TENSORS = st.builds(
    TensorHeader,
    NAMES,
    st.sampled_from(["BF16", "F32"]),
    st.lists(st.integers(0, 9), max_size=2).map(tuple),
)


@given(st.sets(TENSORS, max_size=40))
def test_folding_and_expanding_loses_nothing(tensors):
    groups = folded(tensors)
    assert set(expanded(groups)) == tensors
    assert sum(group.count for group in groups) == len(tensors)


def test_layers_with_experts_are_one_group():
    tensors = [
        TensorHeader(f"model.layers.{layer}.experts.{expert}.up.weight", "BF16", (4, 8))
        for layer in range(3, 61)
        for expert in range(256)
    ]
    (group,) = folded(tensors)
    assert group.pattern == "model.layers.*.experts.*.up.weight"
    assert group.blocks == ((((3, 58, 1),), ((0, 256, 1),)),)
    assert group.count == len(tensors)


def test_a_pattern_of_every_fourth_layer_is_one_run():
    tensors = [TensorHeader(f"layers.{layer}.q.weight", "BF16", (1,)) for layer in range(3, 48, 4)]
    (group,) = folded(tensors)
    assert group.blocks == ((((3, 12, 4),),),)


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        pytest.param(["a.*", "BF16", [1]], [[]], id="a number is missing"),
        pytest.param(["a.*", "BF16", [1]], [[[[0, 0, 1]]]], id="a run of nothing"),
        pytest.param(["a.*", "BF16", [1]], [[[[0, 2, 0]]]], id="a run that stands still"),
        pytest.param(["a", "BF16", [-1]], [[]], id="a shape below zero"),
        pytest.param(["a", "BF16"], [[]], id="no shape"),
        pytest.param(["a.*", "BF16", [1]], [[["abc"]]], id="letters for numbers"),
    ],
)
def test_what_is_no_group_is_refused(value, blocks):
    with pytest.raises((ValueError, TypeError)):
        read_group(value, blocks)


def test_groups_that_swell_up_are_refused_before_they_do():
    group = read_group(["a.*.*", "BF16", [1]], [[[[0, 100_000, 1]], [[0, 100_000, 1]]]])
    with pytest.raises(ValueError, match="more than"):
        expanded([group])
