"""The operator beside a thousand GPU nodes: how soon it may act, and what it weighs."""

from collections.abc import Iterator

from applying import Arrivals
from figures import Figure, mebibytes, milliseconds
from ground import Ground, add_nodes, ground
from processes import Started, answers, free_port, shipfitter

NODES = 1000
PRODUCTS = (
    "NVIDIA-L40S", "NVIDIA-L4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-H200", "NVIDIA-A10", "Tesla-T4", "NVIDIA-B200", "NVIDIA-L40", "NVIDIA-A40",
)  # fmt: skip
IDLE_SECONDS = 20.0
CARRIED = ("m0", "m1", "m2")


def measure() -> Iterator[Figure]:
    with ground() as place:
        add_nodes(place, PRODUCTS, NODES)
        port = free_port()
        with Started(
            shipfitter("operator"),
            log=place.folder / "ours.log",
            environment=place.environment(port),
        ) as operator:
            leads = operator.wait_for("the lease", lambda: "holds the lease" in operator.said())
            ready = operator.wait_for("/readyz", lambda: answers(f"http://127.0.0.1:{port}/readyz"))
            yield Figure("start to /readyz", f"{ready:.1f} s", "below 5 s")
            yield Figure("  from holding the lease to /readyz", f"{ready - leads:.1f} s")
            yield Figure("resident, synced", mebibytes(operator.resident_bytes()), "below 250 MiB")
            yield Figure("processor to there", f"{operator.cpu_seconds():.1f} s")
            yield from _carrying(place)
            share = operator.cpu_share(IDLE_SECONDS)
            yield Figure(f"of one core while idle, over {IDLE_SECONDS:.0f} s", f"{share:.2%}")
            yield Figure("resident, idle", mebibytes(operator.resident_bytes()), "below 250 MiB")


def _carrying(place: Ground) -> Iterator[Figure]:
    """Plans over all these nodes; the first reads its model from the hub."""
    with Arrivals(place.plane) as arrivals:
        seconds = [arrivals.create(name) for name in CARRIED]
    yield Figure("apply to Deployment, over all of them", milliseconds(min(seconds[1:])))
