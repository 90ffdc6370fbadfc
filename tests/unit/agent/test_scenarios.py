"""The agent's reading through the real pynvml, for every scenario of the shim."""

import os
from pathlib import Path

import pytest
import yaml

from shipfitter.api.gpu_node import GPUNode
from unit.agent.agents import host_root, once, timeless
from world import nvml

GOLDEN = Path(__file__).parents[2] / "golden/gpunodes"


@pytest.mark.parametrize("name", nvml.names())
def test_what_the_agent_reports(name, tmp_path):
    got = once(nvml.named(name), host_root(tmp_path))
    golden = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(yaml.safe_dump(timeless(got), sort_keys=False))
    assert timeless(got) == yaml.safe_load(golden.read_text())


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_it_reports_is_what_the_kind_has_fields_for(path):
    manifest = yaml.safe_load(path.read_text())
    for condition in manifest["status"]["conditions"]:
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    GPUNode.model_validate(manifest, extra="forbid")


def test_every_scenario_has_its_golden_object_and_no_more():
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(nvml.names())


def test_a_machine_without_the_drivers_libraries_is_no_error(tmp_path):
    status = once(None, host_root(tmp_path))["status"]
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("NVMLReady", "False")
    assert condition["reason"] == "LibraryNotFound"
    assert "agent.runtimeClassName" in condition["message"]
    assert status["gpus"] == []


def test_a_written_scenario_is_read_back(tmp_path):
    changes = {"gpus": {1: {"used_mib": 3000}}, "ecc": 0, "node": "n7"}
    scenario = nvml.scenario("rtx-a6000", 2, path=tmp_path / "a.scenario", **changes)
    gpus = once(scenario, host_root(tmp_path))["status"]["gpus"]
    assert [gpu["uuid"] for gpu in gpus] == list(nvml.gpu_uuids(scenario))
    assert [gpu["product"] for gpu in gpus] == ["NVIDIA-RTX-A6000"] * 2
    assert [gpu["ecc"] for gpu in gpus] == [False, False]
    assert [gpu["memory"]["foreignUsedBytes"] // 2**20 for gpu in gpus] == [0, 3072]
