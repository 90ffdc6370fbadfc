"""Every NVML call may fail in every way, and the agent still reports something true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unit.agent.agents import environment, host_root
from world import nvml
from world.nvml.library import SOURCE

FUNCTIONS = re.findall(r"^(?:int |TEXT_FACT\(|NUMBER_FACT\()(nvml\w+)", SOURCE.read_text(), re.M)
CODES = (1, 2, 3, 4, 13, 15, 18, 25, 999, 4711)

# One process for all faults: the shim reads its scenario again at every nvmlInitWithFlags.
LOOK_OFTEN = """
import json, os, sys
from pathlib import Path
from shipfitter.agent.command import look_once
from shipfitter.agent.host import Host

scenario, root, pristine = Path(os.environ["NVML_SCENARIO"]), Path(sys.argv[1]), sys.stdin.read()
for fault in sys.argv[2:]:
    scenario.write_text(pristine + fault + "\\n")
    print(json.dumps(look_once(Host(root))))
"""


@pytest.mark.parametrize("product", ["h100", "NVIDIA-L40S"])
def test_no_failing_call_ends_the_agent(product, tmp_path):
    mig = {1: [(0, "3g.40gb", 40192)]} if product == "h100" else None
    text = nvml.scenario_text(product, 2, mig=mig, event_types=8, fabric_state=3)
    faults = [f"fail.{function} {code}" for function in FUNCTIONS for code in CODES]
    faults += [f"fail.{function}.1 15" for function in FUNCTIONS]
    done = subprocess.run(
        [sys.executable, "-c", LOOK_OFTEN, str(host_root(tmp_path)), *faults],
        env=environment(tmp_path / "faulty.scenario", tmp_path),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    statuses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(statuses) == len(faults)
    for fault, status in zip(faults, statuses, strict=True):
        (condition,) = status["conditions"]
        assert condition["type"] == "NVMLReady", fault
        for gpu in status["gpus"]:
            assert gpu["uuid"], fault
            assert gpu["health"]["state"] in {"Healthy", "Unhealthy"}, fault
            assert gpu["memory"].get("totalBytes") != 0, fault


def test_the_list_of_functions_is_not_empty():
    assert len(FUNCTIONS) > 35
    assert Path(SOURCE).name == "shim.c"
