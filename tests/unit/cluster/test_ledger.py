"""Promises: what was decided counts for everybody else before the API server has it."""

import pytest

from shipfitter.cluster import ledger
from shipfitter.cluster.queue import Key
from shipfitter.cluster.trim import own_workload
from unit.cluster.builders import config_map, deployment, scale

LLAMA, QWEN = Key("team", "llama"), Key("team", "qwen")


def stored(replicas, owner="llama", gpus=1):
    manifest = deployment(owner=owner, gpus=gpus).manifest
    metadata = {**manifest["metadata"], "namespace": "team"}
    return own_workload(
        {**manifest, "metadata": metadata, "spec": {**manifest["spec"], "replicas": replicas}}
    )


@pytest.mark.parametrize(
    ("known", "applies", "want"),
    [
        pytest.param(None, (scale(3), deployment()), (3, 1), id="a new workload and its scale"),
        pytest.param(None, (deployment(gpus=2),), (1, 2), id="a new workload starts with one"),
        pytest.param(stored(2), (scale(5),), (5, 1), id="only more of it"),
        pytest.param(stored(2), (deployment(gpus=4),), (2, 4), id="another template, as many pods"),
        pytest.param(stored(2), (scale(1), deployment(gpus=4)), (1, 4), id="both"),
        pytest.param(stored(2), (config_map(),), (2, 1), id="nothing of the workload"),
    ],
)
def test_what_an_outcome_promises(known, applies, want):
    before = {known.name: known} if known else {}
    (made,) = ledger.promised(LLAMA, applies, before)
    assert (made.replicas, made.gpus["nvidia.com/gpu"]) == want
    assert (made.namespace, made.name, made.owner) == ("team", "llama-v", "llama")


def test_a_scale_of_what_is_unknown_promises_nothing():
    assert ledger.promised(LLAMA, (scale(3),), {}) == ()


def test_a_promise_stands_over_what_is_stored_until_it_is_withdrawn():
    promises = ledger.Promises()
    promises.make(LLAMA, (stored(5),))
    assert [each.replicas for each in promises.over([stored(2)], but_for=QWEN)] == [5]
    promises.withdraw(LLAMA)
    assert [each.replicas for each in promises.over([stored(2)], but_for=QWEN)] == [2]


def test_nobody_counts_its_own_promises():
    promises = ledger.Promises()
    promises.make(LLAMA, (stored(5),))
    assert promises.over([stored(2), stored(1, "qwen")], but_for=LLAMA) == [stored(1, "qwen")]
