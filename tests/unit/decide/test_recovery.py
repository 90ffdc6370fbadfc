"""When an engine refuses: bounded steps, then back to what served; and what engines teach."""

from dataclasses import replace

import pytest

from builders_decide import NOW, Settled, condition, manifests, mdl, serving, world
from builders_plan import node
from shipfitter.core.calibrate import Learning, fold
from shipfitter.decide import decide
from shipfitter.status.pods import ObservedEngine
from shipfitter.units import GIB

TOO_SMALL = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (12.00 GiB). Based "
    "on the available memory, the estimated maximum model length is 98304. Try increasing "
    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
SAMPLER = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 96 dummy requests. "
    "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
)
STATES = "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (40)."
FREE = (
    "ValueError: Free memory on device cuda:0 (38.00/44.39 GiB) on startup is less than desired "
    "GPU memory utilization (0.95, 42.17 GiB). Decrease GPU memory utilization or reduce GPU "
    "memory used by other processes."
)


def variant(outcome):
    return outcome.status["plan"]["variants"][0]


def refused(settled, words, nodes, *, at=NOW + 5, created=None):
    """The next decision after the engine of the running plan ended with these words."""
    pod = serving(
        settled.variant, nodes[0].name, ready=False, exit_code=1, restarts=1,
        waiting_reason="CrashLoopBackOff", termination_message=words,
        created_seconds=created or at - 1,
    )  # fmt: skip
    outcome = settled.decide(*nodes, pods=(pod,), now_seconds=at)
    settled.status = outcome.status
    return outcome


@pytest.mark.parametrize(
    ("words", "field", "most"),
    [
        pytest.param(TOO_SMALL, "maxModelLen", 98_304, id="the cache it named is planned with"),
        pytest.param(SAMPLER, "maxNumSeqs", 48, id="a sampler out of memory halves the sequences"),
        pytest.param(STATES, "maxNumSeqs", 40, id="no more sequences than state blocks"),
        pytest.param(FREE, "gpuMemoryUtilization", 0.85, id="no more than what is free"),
    ],
)
def test_one_step_for_one_refusal(words, field, most):
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    outcome = refused(settled, words, nodes)
    assert variant(outcome)[field] <= most
    assert outcome.status["recovery"]["attempts"] == 1
    assert len(manifests(outcome, "Deployment")) == 1
    assert outcome.notices[0].reason == "Resized"
    assert condition(outcome, "Planned")["reason"] == "SteppedDown"


def test_the_figure_the_engine_named_is_hit_in_one_step():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    outcome = refused(settled, TOO_SMALL, nodes)
    budget = variant(outcome)["budget"]
    assert budget["kvCacheBytes"] <= 12.0 * GIB * 1.01


def test_a_refusal_in_the_second_its_pod_was_made_is_answered_in_the_next():
    """Times are whole seconds: the next plan would bear the name of this one."""
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    at_once = refused(settled, TOO_SMALL, nodes, at=NOW + 5.9, created=NOW + 5)
    assert not manifests(at_once, "Deployment")
    assert at_once.requeue_after_seconds == 1
    later = refused(settled, TOO_SMALL, nodes, at=NOW + 6.9, created=NOW + 5)
    assert later.status["recovery"]["attempts"] == 1
    assert len(manifests(later, "Deployment")) == 1


def test_words_of_an_earlier_plan_do_not_count():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    refused(settled, TOO_SMALL, nodes)
    again = refused(settled, TOO_SMALL, nodes, at=NOW + 5)
    assert again.status["recovery"]["attempts"] == 1


def test_five_refusals_and_no_plan_that_served_back_off():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    settled.status = {k: v for k, v in settled.status.items() if k != "lastGoodPlan"}
    for attempt in range(1, 7):
        outcome = refused(settled, SAMPLER, nodes, at=NOW + attempt * 1000)
    assert outcome.status["recovery"]["attempts"] == 5
    assert condition(outcome, "Planned")["reason"] == "BackedOff"
    last = refused(settled, SAMPLER, nodes, at=NOW + 9000)
    assert last.status["plan"] == outcome.status["plan"]


def test_refusals_after_a_change_roll_back_to_what_served():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    good = settled.status["lastGoodPlan"]["variants"][0]["maxNumSeqs"]
    for attempt in range(1, 7):
        outcome = refused(settled, SAMPLER, nodes, at=NOW + attempt * 1000)
        if outcome.status["recovery"]["attempts"] == 5 and variant(outcome)["maxNumSeqs"] == good:
            break
    assert variant(outcome)["maxNumSeqs"] == good


def test_the_next_attempt_waits():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    refused(settled, SAMPLER, nodes, at=NOW + 1000)
    outcome = refused(settled, SAMPLER, nodes, at=NOW + 1002)
    assert outcome.status["recovery"]["attempts"] == 1
    assert outcome.requeue_after_seconds > 0


def test_a_changed_spec_starts_afresh():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    refused(settled, SAMPLER, nodes)
    outcome = settled.decide(*nodes, spec={"workload": {"maxNumSeqs": {"preferred": 64}}})
    assert "recovery" not in outcome.status


@pytest.mark.parametrize(
    ("words", "code", "want"),
    [
        pytest.param("", 137, "HostOutOfMemory", id="killed by the host"),
        pytest.param(
            "OSError: You are trying to access a gated repo.", 1, "TokenRequired", id="gated"
        ),
        pytest.param("Segmentation fault", 139, "EngineFailed", id="anything else"),
    ],
)
def test_what_is_no_memory_refusal_changes_no_plan(words, code, want):
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    pod = serving(
        settled.variant,
        "a",
        ready=False,
        exit_code=code,
        termination_message=words,
        created_seconds=NOW + 1,
    )
    outcome = settled.decide(*nodes, pods=(pod,))
    assert not manifests(outcome, "Deployment")
    assert condition(outcome, "Available")["reason"] == want


def observing(settled, blocks):
    engine = ObservedEngine(num_gpu_blocks=blocks, kv_cache_tokens=blocks * 16, max_concurrency=1.5)
    return tuple(replace(pod, observed=engine) for pod in settled.pods)


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
