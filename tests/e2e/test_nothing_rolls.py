"""Pods keep running, by their UIDs, over everything that is no reason to replace them."""

import json
import shutil
import sys
from contextlib import contextmanager

import pytest

from e2e.stories import AT_ONCE, L4, L40S, LLAMA_8B, measured, says, serve, stays, uids
from world.nodes.programs import Image, Program
from world.stage import NAMESPACE, ROOT, TESTS

pytestmark = [pytest.mark.plane, pytest.mark.timeout(600)]

# What another release might have changed: a constant of the planner, and how pods are written.
ANOTHER_BUILD = {
    "core/candidate.py": ("MOST_UTILIZATION = 0.95", "MOST_UTILIZATION = 0.93"),
    "render/startup.py": ("PRE_STOP_SECONDS = ", "PRE_STOP_SECONDS = 3 + "),
}
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modeldeployments.shipfitter.dev"


@pytest.fixture
def served(stage):
    """Two replicas, the third GPU free: nothing stands in the way of rolling them."""
    stage.add_gpu_node("l40s-1", L40S, 3)
    measured(stage, "l40s-1")
    products = {"gpus": {"products": [L4, L40S]}}
    serve(stage, "llama", LLAMA_8B, replicas=2, resize=AT_ONCE, **products)
    says(stage, "llama", "Calibrated", "Observed")
    return stage


def kept(stage):
    """Pods and what they are made from."""
    templates = [
        json.dumps(each["spec"]["template"], sort_keys=True)
        for each in stage.objects("deployments", selector="shipfitter.dev/modeldeployment")
    ]
    return sorted(uids(stage.pods("llama"))), templates, stage.status("llama")["plan"]


def another_build(stage):
    """The operator with other constants and another renderer, as an image of its own."""
    folder = stage.folder / "another-build"
    shutil.copytree(ROOT / "operator", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (old, new) in ANOTHER_BUILD.items():
        path = folder / "shipfitter" / name
        text = path.read_text()
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new))
    program = Program(
        argv=(sys.executable, "-m", "shipfitter"), environment={"PYTHONPATH": f"{folder}:{TESTS}"}
    )
    stage.emulator.programs.images["shipfitter/shipfitter:next"] = Image(entrypoint=program)
    stage.upgrade({"image": {"tag": "next"}})


@contextmanager
def defaulted(stage):
    """The definition of another release, which fills in what objects leave out."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/workload/default"
    how = "application/json-patch+json"
    stage.api.patch(CRD, [{"op": "add", "path": path, "value": {}}], how)
    try:
        yield
    finally:
        stage.api.patch(CRD, [{"op": "remove", "path": path}], how)


def noise(stage, residual_bytes):
    """What engines like these taught, a little to and fro."""
    (calibration,) = stage.objects("calibrations")
    path = f"/apis/shipfitter.dev/v1alpha1/calibrations/{calibration['metadata']['name']}"
    stage.api.patch(path, {"status": {"residualBytes": residual_bytes, "observations": 9}})


def new_leader(stage):
    """The operator's pod is another one."""
    before = stage.operator_pod()["metadata"]
    stage.delete("pods", before["name"], NAMESPACE)
    stage.eventually(
        lambda: stage.operator_ready(not_uid=before["uid"]), what="another operator leads"
    )


def test_nothing_rolls_without_a_reason(served):
    before = kept(served)
    with defaulted(served):
        served.eventually(
            lambda: served.get("modeldeployment", "llama")["spec"].get("workload"),
            what="the new default shows",
        )
        served.change("llama", {"gpus": {"products": [L40S, L4]}})  # the same, in another order
        noise(served, -400_000_000)
        served.hub.switch(down=True)
        new_leader(served)
        assert stays(lambda: kept(served)) == before
    try:
        noise(served, 400_000_000)
        another_build(served)
        assert stays(lambda: kept(served)) == before
        served.kill_operator()
        served.eventually(served.operator_ready, what="the operator is back")
        assert stays(lambda: kept(served)) == before
        served.hub.switch(down=False)  # a new pod reads the model
        served.plane.kubectl("scale", "mdl", "llama", "--replicas=3")
        served.eventually(lambda: len(served.pods("llama")) == 3 and served.ready("llama"))
        assert set(before[0]) < uids(served.pods("llama"))
    finally:
        served.upgrade({"image": {"tag": ""}})
