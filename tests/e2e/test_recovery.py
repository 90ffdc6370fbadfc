"""The GPU is not as it was believed: the engine refuses, and a plan that fits it is found.

All refusals are staged at once, each on a node of its own with 15 % less memory than was counted
on, so that the waits between attempts pass side by side.
"""

from dataclasses import replace

import pytest

from e2e.labs import Lab, open_all
from e2e.stories import (
    A100,
    L4,
    L40S,
    flag,
    says,
    serving,
    stays,
    uids,
    variant,
)

pytestmark = [pytest.mark.plane, pytest.mark.timeout(600)]

QWEN_32B = "hf://Qwen/Qwen3-32B"
MISSING = 0.15  # of a GPU's memory
FULL_LENGTH = {"workload": {"prefer": "Context"}}
WITHOUT_LAST_WORDS = {"engine": {"env": [{"name": "VLLM_CONFIGURE_LOGGING", "value": "0"}]}}
LIGHTER = {"model": {"uri": QWEN_32B, "alternatives": [{"uri": f"{QWEN_32B}-AWQ"}]}}
SMALL_CACHE = {"activation_gib": 1.2 + MISSING * 22.06}  # on an L4


def taken(phase):
    return {"taken_in": phase, "taken_gib": MISSING * 44.39}


# lab → (what the engine says, at most so many restarts)
MEMORY = {
    Lab(name="cache-named", product=L4, engine=SMALL_CACHE, spec=FULL_LENGTH): (
        "KV cache is needed",
        2,
    ),
    Lab(name="free-named", product=A100, engine={"free_gib": 0.85 * 79.25}): (
        "less than desired GPU memory utilization",
        2,
    ),
    Lab(
        name="no-cache",
        product=A100,
        engine={"activation_gib": 3.0 + MISSING * 79.25},
        uri=QWEN_32B,
        spec=LIGHTER,
    ): ("No available memory for the cache blocks", 2),
    Lab(
        name="tail-only",
        product=L4,
        engine=SMALL_CACHE,
        spec={**FULL_LENGTH, **WITHOUT_LAST_WORDS},
    ): ("Engine core initialization failed", 4),
    Lab(name="load", product=L4, engine={"load_peak_gib": 7.0}, gpus=2): ("CUDA out of memory", 4),
    Lab(name="profile", product=L4, engine={"activation_mib_per_token": 3.5}): ("memory", 4),
    Lab(name="graphs", engine=taken("graphs")): ("CUDA out of memory", 4),
    Lab(name="sampler", engine=taken("sampler")): ("out of memory", 4),
    Lab(name="run", engine=taken("run")): ("CUDA out of memory", 4),
}
# lab → (reason, part of the advice): no smaller plan would help
OTHER = {
    Lab(name="host", engine={"exit_code": -9, "crash_after_seconds": 0.1}): (
        "HostOutOfMemory",
        "raise spec.resources.limits.memory",
    ),
    Lab(
        name="driver",
        engine={"says": "RuntimeError: The NVIDIA driver on your system is too old (found 12020)."},
    ): ("DriverMismatch", "upgrade the node's driver"),
    Lab(
        name="gated",
        engine={"says": "OSError: You are trying to access a gated repo."},
    ): ("TokenRequired", "spec.model.tokenSecretRef"),
    Lab(
        name="architecture",
        engine={
            "says": "ValueError: Model architectures ['NewForCausalLM'] are not supported for now."
        },
    ): ("EngineUnsupported", "newer spec.engine.image"),
    Lab(
        name="nccl",
        engine={"says": "torch.distributed.DistBackendError: NCCL error in: ncclSystemError"},
    ): ("EngineCommunication", "/dev/shm"),
}
EXHAUSTED = Lab(name="exhausted", product=L4, engine={"oom_in": "load"})


@pytest.fixture(scope="module")
def labs(world):
    """All of it has begun."""
    world.clear()
    open_all(world, (*MEMORY, *OTHER, EXHAUSTED))
    return world


@pytest.mark.parametrize("lab", MEMORY, ids=lambda lab: lab.name)
def test_it_works_again_after_few_restarts(labs, lab):
    words, most = MEMORY[lab]
    labs.eventually(
        lambda: labs.ready(lab.name) and labs.status(lab.name).get("recovery"),
        what=f"{lab.name} serves after a refusal",
        seconds=180,
    )
    if lab.name == "run":  # Ready between two deaths is not yet well
        before = uids(serving(labs, lab.name))
        stays(lambda: uids(serving(labs, lab.name)) == before, seconds=3)
    planned, recovery = variant(labs, lab.name), labs.status(lab.name)["recovery"]
    assert 1 <= recovery["attempts"] <= most
    (pod,) = labs.eventually(lambda: serving(labs, lab.name), what=f"{lab.name}: its pod is Ready")
    assert flag(pod, "max-model-len") == str(planned["maxModelLen"])
    assert len(labs.objects("replicasets", selector=owned(lab))) <= most + 1
    told = [e["message"] for e in labs.objects("events") if of(e, lab, "SteppedDown")]
    assert any(words in message for message in told)


@pytest.mark.parametrize("lab", OTHER, ids=lambda lab: lab.name)
def test_what_no_smaller_plan_would_mend_is_told_and_waited_for(labs, lab):
    reason, advice = OTHER[lab]
    told = says(labs, lab.name, "Available", reason)
    assert advice in told["message"]
    assert "recovery" not in labs.status(lab.name)
    assert len(labs.objects("replicasets", selector=owned(lab))) == 1


def test_nothing_smaller_is_said_and_a_larger_gpu_that_joins_is_taken(labs):
    told = says(labs, EXHAUSTED.name, "Planned", "BackedOff")
    assert "CUDA out of memory" in told["message"]
    assert "nothing smaller fits" in labs.status(EXHAUSTED.name)["recovery"]["lastStep"]
    labs.add_gpu_node("larger", L40S, 1, labels={"lab": EXHAUSTED.name})
    labs.eventually(lambda: labs.ready(EXHAUSTED.name), what="it serves on the larger GPU")
    assert variant(labs, EXHAUSTED.name)["gpuProduct"] == L40S


def test_nobody_goes_back_and_forth(labs):
    everybody = [lab.name for lab in MEMORY]
    assert stays(lambda: [uids(labs.pods(name)) for name in everybody])


def owned(lab):
    return f"shipfitter.dev/modeldeployment={lab.name}"


def of(event, lab, reason):
    return event["reason"] == reason and event["involvedObject"]["name"] == lab.name


def test_where_the_chart_allows_it_the_log_tells_what_the_last_words_lack(labs):
    """Then one restart does, as when the figure was named."""
    lab = replace(next(each for each in MEMORY if each.name == "tail-only"), name="log-read")
    labs.upgrade({"operator": {"readPodLogs": True}})
    try:
        open_all(labs, [lab])
        labs.eventually(lambda: labs.ready(lab.name), what="it serves", seconds=180)
        recovery = labs.status(lab.name)["recovery"]
        assert "KV cache is needed" in recovery["lastError"]
        assert recovery["attempts"] == 1
    finally:
        labs.upgrade({"operator": {"readPodLogs": False}})
