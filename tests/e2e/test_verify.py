"""A plan that is rolled out is put under load, once; what it shows is told and acted upon."""

import pytest

from e2e.stories import (
    L40S,
    flag,
    measured,
    says,
    serve,
    serving,
    stays,
)

pytestmark = pytest.mark.plane
VERIFY = {"verify": {"enabled": True}}
FEW = {"maxNumSeqs": {"preferred": 8}, "typicalTokens": 400}


def jobs(stage, name):
    return stage.objects("jobs", selector=f"shipfitter.dev/modeldeployment={name}")


def nothing_left(stage, name):
    pods = stage.objects("pods", selector=f"shipfitter.dev/verifies={name}")
    return not jobs(stage, name) and not pods


def test_a_plan_is_verified_once_and_a_changed_one_again(stage):
    stage.add_gpu_node("gpu-1", L40S, 2)
    measured(stage, "gpu-1")
    seen = set()
    serve(stage, "llama", workload=FEW, **VERIFY)

    def told(requests):
        seen.update(each["metadata"]["name"] for each in jobs(stage, "llama"))
        found = stage.status("llama").get("verify") or {}
        done = stage.condition("llama", "Verified").get("status") == "True"
        return done and found.get("requests") == requests and found

    found = stage.eventually(lambda: told(16), what="the load test of the plan has ended well")
    assert found["failed"] == 0
    assert found["preemptions"] == 0
    assert (found["atOnce"], found["inputTokens"], found["outputTokens"]) == (8, 350, 100)
    assert found["outputTokensPerSecond"] > 0
    said = stage.condition("llama", "Verified")
    assert said["message"].startswith("16 answered; 8 requests at once of 350 + 100 tokens, ")
    stage.eventually(lambda: nothing_left(stage, "llama"), what="the Job is gone")
    assert len(seen) == 1
    before = stage.status("llama")
    with stage.operator_away():
        pass
    assert stays(lambda: jobs(stage, "llama")) == []
    assert stage.status("llama") == before, "not repeated by another operator"
    stage.change("llama", {"workload": {"maxNumSeqs": {"preferred": 4}}})
    stage.eventually(lambda: told(8), what="the changed plan is verified, too")
    assert len(seen) == 2
    stage.change("llama", {"verify": {"enabled": False}})
    stage.eventually(
        lambda: (
            not stage.status("llama").get("verify") and not stage.condition("llama", "Verified")
        ),
        what="nothing is said of it any more",
    )


def test_an_engine_that_dies_under_load_gets_a_smaller_plan_that_holds(stage):
    # Serves a request at a time; several take more than what was not requested.
    stage.add_gpu_node("gpu-1", L40S, 1, engine={"serving_gib": 2.5})
    serve(stage, "llama", workload=FEW, **VERIFY)
    first = flag(serving(stage, "llama")[0], "gpu-memory-utilization")
    says(stage, "llama", "Verified", "Verified")
    (pod,) = serving(stage, "llama")
    assert float(flag(pod, "gpu-memory-utilization")) < float(first)
    recovery = stage.status("llama")["recovery"]
    assert recovery["attempts"] == 1
    assert "CUDA out of memory" in recovery["lastError"]
    assert stage.condition("llama", "Planned")["reason"] == "SteppedDown"


def test_a_job_that_is_refused_is_told_and_is_in_nobodys_way(stage):
    stage.add_gpu_node("gpu-1", L40S, 1)
    none = {"hard": {"count/jobs.batch": "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-jobs"}}
    stage.apply({**quota, "spec": none})
    try:
        serve(stage, "llama", workload=FEW, **VERIFY)
        stage.eventually(
            lambda: "exceeded quota" in stage.condition("llama", "Verified").get("message", ""),
            what="the refusal is told",
        )
        assert stage.condition("llama", "Verified")["reason"] == "Verifying"
        assert stage.ready("llama")
        assert jobs(stage, "llama") == []
    finally:
        stage.plane.kubectl("delete", "resourcequota", "no-jobs")
    says(stage, "llama", "Verified", "Verified")
