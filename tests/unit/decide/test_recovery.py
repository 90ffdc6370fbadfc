"""When an engine refuses: bounded steps, then back to what served."""

from itertools import pairwise

import pytest

from builders_decide import NOW, Settled, as_live, condition, manifests, serving
from builders_plan import LLAMA_8B, facts, node
from shipfitter.render.workload import template_of
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


def broken(settled, node_name, words, *, code=1, **changes):
    """A pod of the workload as it is now, ended with these words."""
    values = {"restarts": 1, "waiting_reason": "CrashLoopBackOff", **changes}
    values.setdefault("template_hash", template_of(settled.workload.body))
    return serving(
        settled.variant, node_name, ready=False, exit_code=code, termination_message=words, **values
    )


def refused(settled, words, nodes, *, at=NOW + 5, pod=None):
    """The next decision after the engine of the running plan ended with these words."""
    pod = pod or broken(settled, nodes[0].name, words)
    outcome = settled.decide(*nodes, pods=(pod,), now_seconds=at)
    settled.status = outcome.status
    for manifest in manifests(outcome, "Deployment"):
        if manifest["metadata"]["name"] == settled.variant:
            settled.workload = as_live(manifest)
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


def test_a_refusal_in_the_second_of_its_plan_is_answered_in_the_next():
    """Times are whole seconds: the next plan would bear the name of this one."""
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    at_once = refused(settled, TOO_SMALL, nodes, at=NOW + 0.9)
    assert not manifests(at_once, "Deployment")
    assert at_once.requeue_after_seconds == 1
    later = refused(settled, TOO_SMALL, nodes, at=NOW + 1.9)
    assert later.status["recovery"]["attempts"] == 1
    assert len(manifests(later, "Deployment")) == 1


def test_words_of_an_earlier_plan_do_not_count():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    old = broken(settled, "a", TOO_SMALL)
    refused(settled, TOO_SMALL, nodes, pod=old)
    again = refused(settled, TOO_SMALL, nodes, at=NOW + 500, pod=old)
    assert again.status["recovery"]["attempts"] == 1


@pytest.mark.parametrize("skew_seconds", [-3600, 3600], ids=["an hour behind", "an hour ahead"])
def test_clocks_that_disagree_do_not_make_it_deaf(skew_seconds):
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    pod = broken(settled, "a", TOO_SMALL, created_seconds=NOW + skew_seconds)
    assert refused(settled, TOO_SMALL, nodes, pod=pod).status["recovery"]["attempts"] == 1


def test_a_pod_that_a_new_plan_left_as_it_is_is_still_heard():
    """Another wish with the same figures makes no new pods, and theirs are the words that count."""
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    pod = broken(settled, "a", TOO_SMALL, created_seconds=NOW - 1)
    settled.spec = {"workload": {"maxNumSeqs": {"min": 3}}}
    assert manifests(refused(settled, TOO_SMALL, nodes, pod=pod), "Deployment")
    assert template_of(settled.workload.body) == pod.template_hash
    heard = refused(settled, TOO_SMALL, nodes, at=NOW + 10, pod=pod)
    assert heard.status["recovery"]["attempts"] == 1


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
    good = settled.status["lastGoodPlan"]["variants"]
    for attempt in range(1, 7):
        outcome = refused(settled, SAMPLER, nodes, at=NOW + attempt * 1000)
    assert outcome.status["plan"]["variants"] == good
    assert condition(outcome, "Planned")["reason"] == "RolledBack"
    quiet = settled.decide(*nodes, now_seconds=NOW + 7000)
    assert condition(quiet, "Planned")["reason"] == "RolledBack", "the story stays"
    assert quiet.status["recovery"]["lastStep"].startswith("back to the plan that served")
    refused(settled, SAMPLER, nodes, at=NOW + 8000)
    last = refused(settled, SAMPLER, nodes, at=NOW + 9000)
    assert condition(last, "Planned")["reason"] == "BackedOff"
    assert last.status["plan"]["variants"] == good


LOAD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB."
FRONT_ALONE = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)


def test_weights_that_do_not_load_leave_room_for_a_lighter_model_on_the_same_gpu():
    nodes = (node("a", "L40S"),)
    first, lighter = f"hf://{LLAMA_8B}", "hf://Qwen/Qwen3-4B"
    models = {first: facts(LLAMA_8B), lighter: facts("Qwen/Qwen3-4B")}
    settled = Settled(*nodes)
    settled.spec = {"model": {"uri": first, "alternatives": [{"uri": lighter}]}}
    settled.status = settled.decide(*nodes, models=models).status
    outcome = settled.decide(
        *nodes, models=models, pods=(broken(settled, "a", LOAD),), now_seconds=NOW + 5
    )
    assert variant(outcome)["modelUri"] == lighter


@pytest.mark.parametrize(
    ("restarts", "want"),
    [
        pytest.param(0, None, id="once may be chance"),
        pytest.param(1, 1, id="again is answered with less"),
    ],
)
def test_a_core_that_died_without_a_word(restarts, want):
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    before = variant(settled.first)
    outcome = refused(
        settled, FRONT_ALONE, nodes, pod=broken(settled, "a", FRONT_ALONE, restarts=restarts)
    )
    assert outcome.status.get("recovery", {}).get("attempts") == want
    less = variant(outcome)["budget"]["kvCacheBytes"] < before["budget"]["kvCacheBytes"]
    assert less == bool(want)


def test_steps_without_a_figure_grow():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    words = "EngineCore encountered a fatal error.\n" + LOAD
    asked = [variant(settled.first)["gpuMemoryUtilization"]]
    for attempt in range(1, 4):
        outcome = refused(settled, words, nodes, at=NOW + attempt * 1000)
        asked.append(variant(outcome)["gpuMemoryUtilization"])
    lost = [round(one - other, 2) for one, other in pairwise(asked)]
    assert lost == [0.03, 0.06, 0.12]


def test_nothing_smaller_waits_and_takes_a_gpu_that_comes():
    nodes = (node("a", "L4"),)
    settled = Settled(*nodes)
    stuck = refused(settled, LOAD, nodes)
    assert condition(stuck, "Planned")["reason"] == "BackedOff"
    assert stuck.status["recovery"]["lastStep"].startswith("nothing smaller fits")
    assert not manifests(stuck, "Deployment")
    again = refused(settled, LOAD, nodes, at=NOW + 20)
    assert again.status["recovery"] == stuck.status["recovery"], "it is told once"
    more = refused(settled, LOAD, (*nodes, node("b", "L40S")), at=NOW + 30)
    assert variant(more)["gpuProduct"] == "NVIDIA-L40S"
    assert more.status["recovery"]["attempts"] == 1


def test_what_never_served_is_no_way_back():
    """While a change rolls out the earlier pods are still Ready, under the same name."""
    nodes = (node("a", "L40S", 2),)
    settled = Settled(*nodes)
    good = settled.status["lastGoodPlan"]
    settled.spec = {"workload": {"maxNumSeqs": {"preferred": 32}}}
    changed = settled.decide(*nodes, now_seconds=NOW + 10)
    (deployment,) = manifests(changed, "Deployment")
    settled.status, settled.workload = changed.status, as_live(deployment)
    settled.workload.body["status"] = {"observedGeneration": 1, "updatedReplicas": 0, "replicas": 1}
    rolling = settled.decide(*nodes, now_seconds=NOW + 20)
    assert variant(rolling)["maxNumSeqs"] == 32
    assert rolling.status["lastGoodPlan"] == good


def test_the_fifth_attempt_may_serve():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    for attempt in range(1, 6):
        refused(settled, SAMPLER, nodes, at=NOW + attempt * 1000)
    outcome = settled.decide(*nodes, now_seconds=NOW + 6000)
    assert outcome.status["recovery"]["attempts"] == 5
    assert condition(outcome, "Planned")["reason"] == "SteppedDown"
    assert condition(outcome, "Ready")["status"] == "True"


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
    pod = broken(settled, "a", words, code=code)
    outcome = settled.decide(*nodes, pods=(pod,))
    assert not manifests(outcome, "Deployment")
    assert condition(outcome, "Available")["reason"] == want


def test_words_of_a_pod_whose_gpus_are_gone_lead_nowhere():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    pod = broken(settled, "a", TOO_SMALL)
    outcome = refused(settled, TOO_SMALL, (), at=NOW + 60, pod=pod)
    assert condition(outcome, "Planned")["reason"] == "NoGpuCapacity"
    assert "recovery" not in outcome.status
