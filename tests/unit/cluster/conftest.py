"""The API server in memory, started anew for each test."""

import pytest

from unit.cluster.fake_api import FakeApi, client_of


@pytest.fixture
def api():
    with FakeApi().running() as running:
        yield running


@pytest.fixture
def client(api):
    made = client_of(api)
    yield made
    made.close()
