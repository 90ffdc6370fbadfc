"""One world for all stories; each begins with an empty cluster."""

import pytest

from world.controlplane import PlaneSettings
from world.stage import Stage

# A node that says nothing for 16 s is lost; those here speak every 2 s, unless all is slow.
QUICK_TO_NOTICE = PlaneSettings(
    controller_manager_args=("--node-monitor-period=1s", "--node-monitor-grace-period=16s")
)


@pytest.fixture(scope="session")
def world():
    """The control plane with Shipfitter installed by its chart, started once."""
    with Stage(plane=QUICK_TO_NOTICE) as started:
        started.eventually(started.operator_ready, what="the operator is ready")
        yield started


@pytest.fixture
def stage(world):
    """The world with nothing left of other stories."""
    world.clear()
    return world
