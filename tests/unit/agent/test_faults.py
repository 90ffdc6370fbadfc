"""Every NVML call may fail in every way on every machine: the agent goes on, and claims no more.

What it reports with a fault is true (as without one), or is missing, or is marked: a GPU that is
not healthy or not told of is counted by nobody.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from unit.agent.agents import environment, host_root
from world import nvml
from world.nvml.library import SOURCE

GOLDEN = Path(__file__).parents[2] / "golden/gpunodes"
FUNCTIONS = re.findall(r"^(?:int |TEXT_FACT\(|NUMBER_FACT\()(nvml\w+)", SOURCE.read_text(), re.M)
NOT_SUPPORTED, FUNCTION_NOT_FOUND = 3, 13
# No such thing here, no right, lost, unknown, an answer nobody knows.
CODES = (NOT_SUPPORTED, 4, 15, 999, 4711)
MORE_CODES = (1, 2, FUNCTION_NOT_FOUND, 18, 25)
# These tell of trouble; where they are silent a GPU counts as well, as one does on most machines.
HINTS = re.compile("RemappedRows|GpuFabricInfoV|Event|ComputeMode$")
RESERVE_TOLERANCE = 0.01  # a reserve that is estimated: of the usable memory

# One process for all faults of a machine: the shim reads its scenario at every nvmlInitWithFlags.
LOOK_OFTEN = """
import json, os, sys
from pathlib import Path
from shipfitter.agent.command import look_once
from shipfitter.agent.host import Host

scenario, root, pristine = Path(os.environ["NVML_SCENARIO"]), Path(sys.argv[1]), sys.stdin.read()
for fault in sys.argv[2:]:
    scenario.write_text(fault + "\\n" + pristine)
    print(json.dumps(look_once(Host(root))))
"""


def looks(text: str, faults: list[str], folder: Path) -> list[dict]:
    """What is seen with each fault."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK_OFTEN, str(host_root(folder)), *faults],
        env=environment(folder / "faulty.scenario", folder),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    statuses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(statuses) == len(faults)
    return statuses


@pytest.mark.parametrize("name", [each for each in nvml.names() if "init" not in each])
def test_with_any_call_failing_nothing_untrue_is_claimed(name, tmp_path):
    truth = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text())["status"]
    faults = [(function, code) for function in FUNCTIONS for code in CODES]
    lines = [f"fail.{function} {code}" for function, code in faults]
    for (function, code), status in zip(
        faults, looks(nvml.named(name).read_text(), lines, tmp_path), strict=True
    ):
        assert_no_untruth(status, truth, function, code)


@pytest.mark.parametrize("product", ["h100", "NVIDIA-L40S"])
def test_the_rarer_answers_and_those_of_one_gpu_alone(product, tmp_path):
    mig = {1: [(0, "3g.40gb", 40192)]} if product == "h100" else None
    text = nvml.scenario_text(product, 2, mig=mig, event_types=8, fabric_state=3)
    (truth,) = looks(text, [""], tmp_path)
    faults = [(function, code) for function in FUNCTIONS for code in MORE_CODES]
    lines = [f"fail.{function} {code}" for function, code in faults]
    faults += [(function, 15) for function in FUNCTIONS]
    lines += [f"fail.{function}.1 15" for function in FUNCTIONS]
    for (function, code), status in zip(faults, looks(text, lines, tmp_path), strict=True):
        assert_no_untruth(status, truth, function, code)


def assert_no_untruth(status: dict, truth: dict, function: str, code: int) -> None:
    fault = f"{function} {code}"
    (condition,) = status["conditions"]
    assert condition["type"] == "NVMLReady", fault
    true_gpus = {gpu["uuid"]: gpu for gpu in truth["gpus"]}
    for gpu in status["gpus"]:
        assert gpu["health"]["state"] in {"Healthy", "Unhealthy", "Unknown"}, fault
        if gpu["health"]["state"] == "Healthy":
            assert_true_gpu(gpu, true_gpus[gpu["uuid"]], fault)
    blind = HINTS.search(function) and code in {NOT_SUPPORTED, FUNCTION_NOT_FOUND}
    trouble = HINTS.search(function) and not function.endswith("ComputeMode")
    if not (blind or trouble):
        assert status["usableGpus"] <= truth["usableGpus"], fault


def assert_true_gpu(gpu: dict, true: dict, fault: str) -> None:
    assert gpu["product"] == true["product"], fault
    memory, true_memory = gpu["memory"], true["memory"]
    assert memory["kind"] in {true_memory["kind"], "unknown"}, fault
    if memory["kind"] != "unknown":
        assert memory["totalBytes"] == true_memory["totalBytes"], fault
        usable = memory["totalBytes"] - memory["reservedBytes"]
        true_usable = true_memory["totalBytes"] - true_memory["reservedBytes"]
        assert usable == pytest.approx(true_usable, rel=RESERVE_TOLERANCE), fault
    else:
        assert "totalBytes" not in memory, fault
    assert gpu["migEnabled"] == true["migEnabled"], fault
    true_slices = {each["uuid"]: each for each in true.get("migDevices") or ()}
    for each in gpu.get("migDevices") or ():
        told = each.get("memoryBytes")
        assert told in {None, true_slices[each["uuid"]].get("memoryBytes")}, fault
    if "computeCapability" in gpu:
        assert gpu["computeCapability"] == true["computeCapability"], fault


def test_the_list_of_functions_is_not_empty():
    assert len(FUNCTIONS) > 35
    assert len(nvml.names()) >= 24
