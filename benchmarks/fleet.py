"""The operator beside a thousand GPU nodes: how soon it may act, and what it weighs."""

import statistics
from collections.abc import Iterator

from applying import Arrivals, bare_operator_beside, install_bare_kind
from figures import Figure, mebibytes, milliseconds
from ground import Ground, add_nodes, ground, wait_until_quiet
from processes import Started, answers, free_port, shipfitter

NODES = 1000
PRODUCTS = (
    "NVIDIA-L40S", "NVIDIA-L4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-H200", "NVIDIA-A10", "Tesla-T4", "NVIDIA-B200", "NVIDIA-L40", "NVIDIA-A40",
)  # fmt: skip
IDLE_SECONDS = 20.0
ROUNDS = 5


def measure() -> Iterator[Figure]:
    with ground() as place:
        add_nodes(place, PRODUCTS, NODES)
        install_bare_kind(place.plane)
        wait_until_quiet(place.plane)
        with bare_operator_beside(place) as seconds:
            yield Figure("a bare kopf operator, from start to /healthz", f"{seconds:.1f} s")
        port = free_port()
        with Started(
            shipfitter("operator"),
            log=place.folder / "ours.log",
            environment=place.environment(port),
        ) as operator:
            leads = operator.wait_for("the lease", lambda: "holds the lease" in operator.said())
            ready = operator.wait_for("/readyz", lambda: answers(f"http://127.0.0.1:{port}/readyz"))
            synced = ready - leads
            yield Figure("from process start to /readyz", f"{ready:.1f} s", "below 5 s")
            yield Figure("  of it from holding the lease", f"{synced:.1f} s")
            yield Figure("  processor time", f"{operator.cpu_seconds():.1f} s")
            yield Figure("resident", mebibytes(operator.resident_bytes()), "below 250 MiB")
            share = operator.cpu_share(IDLE_SECONDS)
            yield Figure(f"of one core while idle, over {IDLE_SECONDS:.0f} s", f"{share:.2%}")
            yield from _carrying(place)
            yield Figure(
                "resident, with plans", mebibytes(operator.resident_bytes()), "below 250 MiB"
            )


def _carrying(place: Ground) -> Iterator[Figure]:
    """Plans over all these nodes; the first reads its model from the hub."""
    with Arrivals(place.plane) as arrivals:
        _, *seconds = [arrivals.create(f"m{number}") for number in range(ROUNDS + 1)]
    median = milliseconds(statistics.median(seconds))
    yield Figure(f"apply to Deployment, over all nodes, median of {ROUNDS}", median)
