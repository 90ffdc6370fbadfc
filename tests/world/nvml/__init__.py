"""An NVIDIA driver's library without a driver: scenarios, and the shim that answers from them.

environment(scenario("NVIDIA-L40S", 8))   # for a process that loads the real pynvml
environment(named("a100-mig-mixed-with-holes"))
"""

from world.nvml.library import build, environment
from world.nvml.scenarios import gpu_uuids, named, names, scenario, scenario_text

__all__ = [
    "build",
    "environment",
    "gpu_uuids",
    "named",
    "names",
    "scenario",
    "scenario_text",
]
