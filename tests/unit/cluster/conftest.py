"""The API server in memory, started anew for each test."""

import pytest

from shipfitter.cluster.runtime import Runtime
from shipfitter.decide.world import Settings
from unit.cluster.fake_api import FakeApi, client_of, eventually
from unit.cluster.runtime_stage import Decider


@pytest.fixture
def api():
    with FakeApi().running() as running:
        yield running


@pytest.fixture
def client(api):
    made = client_of(api)
    yield made
    made.close()


@pytest.fixture
def decider():
    return Decider()


@pytest.fixture
def start(api, client, decider):
    started = []

    def run(**settings):
        made = Runtime(
            client,
            decide=decider,
            fetch=lambda uri, **_: None,
            settings=Settings(settle_seconds=settings.pop("settle_seconds", 0.3)),
            **settings,
        )
        started.append(made)
        made.start()
        eventually(lambda: made.caches.synced)
        return made

    yield run
    for runtime in started:
        runtime.stop()
    api.drop_watches()
