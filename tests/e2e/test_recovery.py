"""The GPU is not as it was believed: the engine refuses, and a plan that fits it is found."""

import pytest

from e2e.stories import A100, L40S, LLAMA_8B, flag, serve, serving, stays, uids, variant

pytestmark = pytest.mark.plane


@pytest.mark.parametrize(
    ("product", "engine", "words"),
    [
        pytest.param(
            L40S,
            {"activation_gib": 12.0},
            "KV cache is needed",
            id="the cache is smaller than planned",
        ),
        pytest.param(
            A100,  # another type than above: what one refusal taught is known to the next plan
            {"free_gib": 30.0},
            "is less than desired GPU memory utilization",
            id="somebody else holds memory of the GPU",
        ),
    ],
)
def test_a_refusal_leads_to_a_smaller_plan_that_serves(stage, product, engine, words):
    stage.add_gpu_node("gpu-1", product, 1, engine=engine)
    serve(stage, "llama", LLAMA_8B)
    (pod,) = serving(stage, "llama")
    planned, recovery = variant(stage, "llama"), stage.status("llama")["recovery"]
    assert 32_768 <= planned["maxModelLen"] < 131_072, "no more was given up than need be"
    assert flag(pod, "max-model-len") == str(planned["maxModelLen"])
    assert recovery["attempts"] == 1
    assert words in recovery["lastError"]
    told = [e["message"] for e in stage.objects("events") if e["reason"] == "SteppedDown"]
    assert any(words in message for message in told)
    assert len(stage.objects("replicasets")) == 2
    before = uids(stage.pods("llama"))
    assert stays(lambda: uids(stage.pods("llama"))) == before, "it does not go back and forth"
