"""One world for all stories; each begins with an empty cluster."""

import pytest

from world.controlplane import FAST_NODE_LOSS
from world.stage import Stage


@pytest.fixture(scope="session")
def world():
    """The control plane with Shipfitter installed by its chart, started once."""
    with Stage(plane=FAST_NODE_LOSS) as started:
        started.eventually(started.operator_ready, what="the operator is ready")
        yield started


@pytest.fixture
def stage(world):
    """The world with nothing left of other stories."""
    world.clear()
    return world
