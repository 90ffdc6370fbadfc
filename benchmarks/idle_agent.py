"""The agent on a node where nothing changes, which is nearly always."""

import time
from collections.abc import Iterator

from figures import Figure, mebibytes
from ground import Writer, agent_environment, ground, paper_node
from processes import Started, shipfitter

from world import nvml

PRODUCT = "NVIDIA-L40S"
NODE = "gpu-0000"
GPUS = 8
IDLE_SECONDS = 30.0
WRITTEN = f"/apis/shipfitter.dev/v1alpha1/gpunodes/{NODE}"


def measure() -> Iterator[Figure]:
    with ground() as place:
        writer = Writer(place.plane)
        writer.write("POST", "/api/v1/nodes", paper_node(NODE, PRODUCT, GPUS, "boot-1"))
        environment = agent_environment(
            nvml.scenario(PRODUCT, GPUS, path=place.folder / "scenario")
        ) | {"KUBECONFIG": str(place.plane.kubeconfig)}
        argv = shipfitter("agent", "--listen", "")
        with Started(argv, log=place.folder / "agent.log", environment=environment) as agent:
            agent.wait_for("its first report", lambda: f"wrote {NODE}" in agent.said())
            time.sleep(1.0)  # what the first report still costs is no idling
            share = agent.cpu_share(IDLE_SECONDS)
            yield Figure(
                f"of one core, {GPUS} GPUs, over {IDLE_SECONDS:.0f} s",
                f"{share:.3%}",
                "below 0.1 %",
            )
            yield Figure("resident", mebibytes(agent.resident_bytes()), "below 60 MiB")
        writer.close()
