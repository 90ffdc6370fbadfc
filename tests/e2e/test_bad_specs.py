"""Mistakes the schema cannot see: all told at once, and what runs stays as it is."""

import pytest

from e2e.stories import L40S, LLAMA_8B, args_of, model_deployment, says, serve, serving, stays, uids
from world.nodes.api import ApiError

pytestmark = pytest.mark.plane

TWO_MISTAKES = {
    "engine": {"args": ["--port=9000"]},
    "template": {"spec": {"hostNetwork": True}},
}


def test_all_mistakes_are_told_at_once_and_what_runs_stays_as_it_is(stage):
    stage.add_gpu_node("l40s-1", L40S, 2)
    serve(stage, "runs", LLAMA_8B)
    pods, decided = uids(serving(stage, "runs")), stage.status("runs")["plan"]["decidedAt"]
    stage.change("runs", TWO_MISTAKES)
    stage.apply(model_deployment("new", LLAMA_8B, **TWO_MISTAKES))
    for name in ("runs", "new"):
        told = says(stage, name, "Planned", "InvalidSpec")
        assert told["status"] == "False"
        assert "spec.engine.args: --port=9000" in told["message"]
        assert "spec.template.spec.hostNetwork" in told["message"]
        generation = stage.get("modeldeployment", name)["metadata"]["generation"]
        assert told["observedGeneration"] == generation
    assert stays(lambda: uids(stage.objects("pods"))) == pods
    assert stage.ready("runs"), "what ran before the mistake still serves"
    assert stage.condition("new", "Ready")["reason"] == "InvalidSpec"
    assert stage.condition("new", "Stalled")["status"] == "True"
    for name in ("runs", "new"):
        stage.change(name, {"engine": {"args": None}, "template": None})
    stage.eventually(lambda: stage.ready("new"), what="the mended one serves")
    says(stage, "runs", "Planned", "Fits")
    assert uids(stage.pods("runs")) == pods, "the old spec needs no new pods"
    assert stage.status("runs")["plan"]["decidedAt"] == decided


REFUSED = {"engine": {"args": ["--no-such-flag"]}}
MENDED = {"engine": {"args": ["--enable-auto-tool-choice"]}}


def test_a_flag_the_engine_refuses_is_told_in_its_words_and_mending_it_recovers(stage):
    """One GPU: the pod that crashes again and again must not hold it for ever."""
    stage.add_gpu_node("l40s-1", L40S, 1)
    serve(stage, "llama", LLAMA_8B)
    stage.change("llama", REFUSED)
    told = says(stage, "llama", "Ready", "EngineFailed")
    assert "--no-such-flag" in told["message"]
    stage.change("llama", MENDED)
    stage.eventually(
        lambda: (
            stage.ready("llama") and "--enable-auto-tool-choice" in args_of(stage.pods("llama")[0])
        ),
        what="the mended one serves",
    )


def test_with_a_gpu_to_spare_the_old_pods_serve_on_until_the_mistake_is_mended(stage):
    stage.add_gpu_node("l40s-1", L40S, 2)
    serve(stage, "llama", LLAMA_8B)
    before = uids(serving(stage, "llama"))
    stage.change("llama", REFUSED)
    rolling = says(stage, "llama", "Reconciling", "EngineFailed")
    assert "--no-such-flag" in rolling["message"]
    assert stays(lambda: uids(serving(stage, "llama"))) == before
    assert stage.ready("llama"), "what served before still does"
    stage.change("llama", MENDED)

    def mended():
        args = [args_of(pod)[-1] for pod in serving(stage, "llama")]
        assert args, "nobody served for a moment"
        return args == MENDED["engine"]["args"]

    stage.eventually(mended, what="the mended one serves")


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"workload": {"maxModelLen": {"min": 4096, "preferred": 1024}}},
            "min",
            id="a minimum above what is preferred",
        ),
        pytest.param({"model": {"uri": "no uri at all"}}, "uri", id="a uri that does not parse"),
        pytest.param({"gpus": {"products": []}}, "products", id="no product allowed"),
        pytest.param({"replicas": -1}, "replicas", id="less than no replicas"),
    ],
)
def test_what_the_schema_can_see_is_refused_by_the_api_server(stage, spec, want):
    body = model_deployment("llama")
    body["spec"] |= spec
    with pytest.raises(ApiError, match=want):
        stage.apply(body)
