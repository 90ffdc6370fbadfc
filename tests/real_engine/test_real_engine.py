"""The real vLLM starts with the operator's arguments, and what it finds is what was planned."""

import json

import pytest

from e2e.stories import args_of, call, model_deployment, says, serving, variant
from real_engine.conftest import MODEL
from real_engine.environment import VERSION

# Three starts of half a minute on idle cores; on very busy ones each has taken five.
pytestmark = [pytest.mark.plane, pytest.mark.timeout(2700)]
SOON_SECONDS = 900
T4 = "Tesla-T4"
CPU_BLOCK_TOKENS, GPU_BLOCK_TOKENS = 128, 16  # what their attention backends choose
# A share of the GPU whose cache a small machine has in memory: half a gigabyte.
SHARE = "--gpu-memory-utilization=0.05"
CACHE = "--kv-cache-memory-bytes=512M"
WISH = {
    "engine": {
        "image": f"vllm/vllm-openai:v{VERSION}",
        "args": [SHARE],
    },
    "workload": {"maxNumSeqs": {"preferred": 8}, "typicalTokens": 300, "prefer": "Context"},
}


def wish(name, **spec):
    return model_deployment(name, f"hf://{MODEL}", **{**WISH, **spec})


def given_to_engine(stage, pod):
    """The command line that became the engine, after `vllm serve`."""
    lines = stage.plane.kubectl("logs", pod["metadata"]["name"]).splitlines()
    (started,) = (line for line in lines if line.startswith("real engine: vllm serve "))
    return started.split()[4:]


def test_the_engine_has_what_was_planned_answers_and_holds_under_load(stage):
    stage.add_gpu_node("gpu-1", T4, 1)
    engine = {**WISH["engine"], "args": [SHARE, CACHE]}
    stage.apply(wish("tiny", engine=engine, verify={"enabled": True}))
    stage.eventually(lambda: stage.ready("tiny"), what="the engine serves", seconds=SOON_SECONDS)
    (pod,) = serving(stage, "tiny")
    given = given_to_engine(stage, pod)
    assert given[: len(args_of(pod))] == args_of(pod), "the operator's own arguments, in order"
    assert "--kv-cache-memory-bytes=536870912" in args_of(pod)
    stage.eventually(lambda: stage.status("tiny").get("observed"), what="the engine was asked")
    planned, (observed,) = variant(stage, "tiny"), stage.status("tiny")["observed"]
    assert planned["maxModelLen"] == 65_536
    assert planned["kvCacheTokens"] == 131_072
    assert abs(observed["kvCacheTokens"] - planned["kvCacheTokens"]) < CPU_BLOCK_TOKENS
    assert abs(observed["predictionErrorPercent"]) < 100 * CPU_BLOCK_TOKENS / 131_072
    assert observed["maxConcurrency"] == pytest.approx(planned["maxConcurrency"], abs=0.01)

    asked = {"model": "tiny", "prompt": "A model fits", "max_tokens": 8, "ignore_eos": True}
    answer = json.loads(call(stage, "http://tiny.default.svc:8000/v1/completions", asked))
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["model"] == MODEL, "the first of its names, whichever was asked for"

    says_verified = stage.eventually(
        lambda: (c := stage.condition("tiny", "Verified")).get("status") == "True" and c,
        what="the engine's own client has put it under load",
        seconds=SOON_SECONDS,
    )
    assert "16 answered; 8 requests at once of 263 + 75 tokens" in says_verified["message"]
    found = stage.status("tiny")["verify"]
    assert (found["requests"], found["failed"], found["preemptions"]) == (16, 0, 0)
    for figure in ("outputTokensPerSecond", "meanFirstTokenMilliseconds", "seconds"):
        assert found[figure] > 0


def test_too_small_a_cache_is_refused_by_the_engine_and_the_next_plan_fits(stage):
    # The GPU leaves 0.2 GiB where half a gigabyte was planned; a request of the whole length takes
    # a quarter.
    found = {"overhead_gib": 0.1, "graph_estimate_gib": 0.1, "activation_gib": 0.33}
    stage.add_gpu_node("gpu-1", T4, 1, engine=found)
    stage.apply(wish("tiny"))
    stage.eventually(
        lambda: stage.status("tiny").get("recovery"),
        what="the refusal was heard",
        seconds=SOON_SECONDS,
    )
    recovery = stage.status("tiny")["recovery"]
    assert "KV cache is needed" in recovery["lastError"]
    assert "estimated maximum model length is" in recovery["lastError"]
    stage.eventually(lambda: stage.ready("tiny"), what="the next one serves", seconds=SOON_SECONDS)
    says(stage, "tiny", "Planned", "SteppedDown")
    planned = variant(stage, "tiny")
    assert 32_768 <= planned["maxModelLen"] < 65_536, "no more was given up than need be"
    assert stage.status("tiny")["recovery"]["attempts"] == 1
    (pod,) = serving(stage, "tiny")
    assert f"--max-model-len={planned['maxModelLen']}" in args_of(pod)
    stage.eventually(lambda: stage.status("tiny").get("observed"), what="the engine was asked")
    (observed,) = stage.status("tiny")["observed"]
    left = next(x for x in given_to_engine(stage, pod) if x.startswith("--kv-cache-memory-bytes"))
    each_bytes = stage.status("tiny")["model"]["kvBytesPerToken"]
    assert abs(observed["kvCacheTokens"] - int(left.split("=")[1]) // each_bytes) < CPU_BLOCK_TOKENS
    cache_bytes = planned["budget"]["kvCacheBytes"]
    assert abs(planned["kvCacheTokens"] - cache_bytes // each_bytes) < GPU_BLOCK_TOKENS
