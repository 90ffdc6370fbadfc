"""The agent on a node where nothing changes, which is nearly always."""

import time
from collections.abc import Iterator, Mapping

from figures import Figure, mebibytes
from ground import Ground, Writer, agent_environment, ground, paper_node
from processes import Started, shipfitter

from world import nvml
from world.nodes.podresources import HoldingPod, Socket

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
        yield from _idle(place, environment, "alone")
        kubelet = Socket(lambda: [HoldingPod(name="engine")], lambda: {})
        asking = {"SHIPFITTER_AGENT_POD_RESOURCES": str(kubelet.path)}
        yield from _idle(place, environment | asking, "asking the kubelet")
        kubelet.stop()
        writer.close()


def _idle(place: Ground, environment: Mapping[str, str], how: str) -> Iterator[Figure]:
    argv, log = shipfitter("agent", "--listen", ""), place.folder / f"agent-{how}.log"
    with Started(argv, log=log, environment=environment) as agent:
        agent.wait_for("its first report", lambda: f"wrote {NODE}" in agent.said())
        time.sleep(1.0)  # what the first report still costs is no idling
        share = agent.cpu_share(IDLE_SECONDS)
        yield Figure(
            f"{how}: of one core, {GPUS} GPUs, over {IDLE_SECONDS:.0f} s",
            f"{share:.3%}",
            "below 0.1 %",
        )
        yield Figure(f"{how}: resident", mebibytes(agent.resident_bytes()), "below 60 MiB")
