"""The label of a node's kind."""

import re
from dataclasses import replace

import pytest

from builders_plan import node
from shipfitter.core.inventory import CapacitySource
from shipfitter.core.pool_label import pool_label

L40S = node("n", "NVIDIA-L40S", 8)
L4 = node("n", "NVIDIA-L4", 8)
SLICE = replace(L40S.devices[0], product="NVIDIA-A100-SXM4-40GB", mig_profile="1g.5gb")


@pytest.mark.parametrize(
    ("offers", "want"),
    [
        pytest.param([L40S], "NVIDIA-L40S-8", id="product and GPUs built in"),
        pytest.param(
            [replace(L40S, devices=(replace(L40S.devices[0], healthy=False), *L40S.devices[1:]))],
            "NVIDIA-L40S-8",
            id="a broken GPU makes no other kind of node",
        ),
        pytest.param(
            [replace(L40S, devices=(*L40S.devices[:4], *L4.devices[:4]))],
            "NVIDIA-L4-NVIDIA-L40S-8",
            id="mixed GPUs, all named",
        ),
        pytest.param(
            [replace(L40S, devices=(SLICE,) * 7)],
            "NVIDIA-A100-SXM4-40GB-7-1g.5gb",
            id="MIG partitions by profile",
        ),
        pytest.param(
            [replace(L40S, sharing="time-slicing", replicas_per_gpu=4)],
            "NVIDIA-L40S-8-time-slicing-4",
            id="shared cards say so",
        ),
        pytest.param(
            [replace(L40S, source=CapacitySource.CATALOGUE)],
            "",
            id="what nobody saw is not written",
        ),
        pytest.param([replace(L40S, devices=())], "", id="no GPUs"),
    ],
)
def test_a_node_is_named_by_what_does_not_change(offers, want):
    assert pool_label(offers) == want


def test_it_is_always_a_label_value():
    odd = replace(L40S.devices[0], product="Some (odd) card/with*a " + "very " * 20 + "long name")
    value = pool_label([replace(L40S, devices=(odd,))])
    assert len(value) <= 63
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", value)
