"""What engines teach: once for each plan, for others of their key, and never to roll what runs."""

from dataclasses import replace

import pytest

from builders_decide import NOW, Settled, manifests, mdl, world
from builders_plan import node
from shipfitter.core.calibrate import Learning, fold
from shipfitter.decide import decide
from shipfitter.render.workload import template_of
from shipfitter.status.pods import ObservedEngine
from shipfitter.units import GIB


def variant(outcome):
    return outcome.status["plan"]["variants"][0]


def observing(settled, blocks, **changes):
    """The pods of the workload as it is, whose engines say what they have."""
    engine = ObservedEngine(num_gpu_blocks=blocks, kv_cache_tokens=blocks * 16, max_concurrency=1.5)
    values = {"template_hash": template_of(settled.workload.body), **changes}
    return tuple(replace(pod, observed=engine, **values) for pod in settled.pods)


def test_a_started_engine_is_compared_and_learnt_from_once():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    planned = variant(settled.first)["numGpuBlocks"]
    first = settled.decide(
        *nodes, pods=observing(settled, planned * 95 // 100), now_seconds=NOW + 60
    )
    (update,) = first.calibrations
    assert update.learning.residual_bytes < 0
    assert first.status["observed"][0]["predictionErrorPercent"] == pytest.approx(-5, abs=0.1)
    settled.status = first.status
    again = settled.decide(*nodes, pods=observing(settled, planned), now_seconds=NOW + 120)
    assert not again.calibrations
    assert again.status["observed"] == first.status["observed"]


def test_blocks_of_another_size_than_planned_are_counted_by_their_tokens():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    planned = variant(settled.first)["numGpuBlocks"]
    pods = tuple(
        replace(pod, observed=replace(pod.observed, block_size=128))
        for pod in observing(settled, planned // 8)
    )
    outcome = settled.decide(*nodes, pods=pods, now_seconds=NOW + 60)
    assert outcome.status["observed"][0]["predictionErrorPercent"] == pytest.approx(0, abs=0.1)


def test_the_next_plan_of_that_key_uses_what_was_learnt():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    planned = variant(settled.first)["numGpuBlocks"]
    learnt, key = Learning(), None
    for _ in range(3):
        (update,) = settled.decide(
            *nodes,
            pods=observing(settled, planned * 93 // 100),
            learnt={key: learnt} if key else {},
            now_seconds=NOW + 60,
        ).calibrations
        learnt, key = update.learning, update.key
    outcome = decide(mdl("other"), world(*nodes, learnt={key: learnt}))
    assert variant(outcome)["numGpuBlocks"] == pytest.approx(planned * 0.93, rel=0.02)


OWN_ENGINE = {"engine": {"image": "registry.example/vllm:mine", "version": "0.33.0"}}


@pytest.mark.parametrize(
    ("taught", "asks", "uses"),
    [
        pytest.param({}, {}, True, id="the usual image learns for all"),
        pytest.param(OWN_ENGINE, OWN_ENGINE, True, id="another image learns for itself"),
        pytest.param(OWN_ENGINE, {}, False, id="and not for the usual one"),
        pytest.param({}, OWN_ENGINE, False, id="nor the usual one for it"),
        pytest.param({}, {"engine": {"args": ["--x"]}}, False, id="arguments are told apart too"),
    ],
)
def test_who_learns_from_whom(taught, asks, uses):
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes, **taught)
    planned = variant(settled.first)["numGpuBlocks"]
    (update,) = settled.decide(
        *nodes, pods=observing(settled, planned * 90 // 100), now_seconds=NOW + 60
    ).calibrations
    fresh = variant(decide(mdl("other", **asks), world(*nodes)))["numGpuBlocks"]
    learnt = {update.key: update.learning}
    outcome = decide(mdl("other", **asks), world(*nodes, learnt=learnt))
    assert (variant(outcome)["numGpuBlocks"] < fresh * 0.95) == uses


def test_a_pod_of_the_plan_before_teaches_nothing_of_this_one():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    outcome = settled.decide(
        *nodes, pods=observing(settled, 1000, template_hash="earlier"), now_seconds=NOW + 60
    )
    assert not outcome.calibrations
    assert "observed" not in outcome.status


def test_a_clock_that_is_put_back_does_not_learn_the_same_twice():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    pods = observing(settled, variant(settled.first)["numGpuBlocks"])
    settled.status = settled.decide(*nodes, pods=pods, now_seconds=NOW - 3600).status
    again = settled.decide(*nodes, pods=pods, now_seconds=NOW - 3500)
    assert not again.calibrations


def test_learning_rolls_no_running_plan():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    planned = variant(settled.first)["numGpuBlocks"]
    (update,) = settled.decide(
        *nodes, pods=observing(settled, planned * 101 // 100), now_seconds=NOW + 60
    ).calibrations
    outcome = settled.decide(*nodes, learnt={update.key: update.learning}, now_seconds=NOW + 9000)
    assert not manifests(outcome, "Deployment")


def test_one_odd_run_does_not_move_the_estimate():
    total = 80 * GIB
    learning = Learning()
    for _ in range(5):
        learning = fold(learning, -GIB, total)
    odd = fold(learning, 7 * GIB, total)
    assert abs(odd.residual_bytes - learning.residual_bytes) < GIB // 4
