"""What several contracts share: one control plane with the chart installed."""

from pathlib import Path

import pytest

from world.controlplane import Plane

CHART = Path(__file__).parents[2] / "charts" / "shipfitter"


@pytest.fixture(scope="session")
def installed_plane():
    """The chart in namespace shipfitter, its kinds established."""
    with Plane() as started:
        install = ("install", "shipfitter", CHART, "-n", "shipfitter", "--create-namespace")
        started.helm(*install)
        started.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=20s")
        yield started
