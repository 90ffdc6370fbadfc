"""The agent as a process: what it writes, when, and how it ends."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from shipfitter.agent.api import Api
from shipfitter.agent.credentials import load
from shipfitter.agent.devices import Fingerprint, NodeReading
from shipfitter.agent.host import Host
from shipfitter.agent.readiness import Readiness
from shipfitter.agent.report import meaning
from shipfitter.agent.watch import Pace, Watch
from unit.agent.agents import RUN, Agent, environment, host_root
from unit.agent.gpunode_api import NODE_UID, GpuNodeApi, bound_token, kubeconfig
from world import nvml


@pytest.fixture
def api():
    with GpuNodeApi().running() as running:
        yield running


class World:
    """Files an agent needs, and a scenario that may change under it."""

    def __init__(self, api, folder):
        self.api, self.folder = api, folder
        self.root = host_root(folder / "host")
        self.kubeconfig = kubeconfig(folder, api.url, bound_token())
        self.path = folder / "node.scenario"
        self.closed = folder / "closed"

    def scenario(self, product="NVIDIA-L40S", count=2, **changes):
        return nvml.scenario(product, count, path=self.path, shutdown_file=self.closed, **changes)

    def agent(self, **more):
        return Agent(self.path, self.root, self.kubeconfig, **more)


@pytest.fixture
def world(api, tmp_path):
    made = World(api, tmp_path)
    made.scenario()
    return made


def ready(status):
    return status["conditions"][0]["status"]


def test_it_creates_its_object_owned_by_its_node_and_then_writes_only_news(api, world):
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        created, first = api.writes
        assert created["metadata"] == {
            "name": "n1",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": NODE_UID}
            ],
        }
        assert "status" not in created
        assert len(first["status"]["gpus"]) == 2
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["status"]["observedAt"])
        assert api.queries == ["fieldManager=shipfitter-agent&force=true"] * 2

        world.scenario(count=3)
        api.wait_for(lambda: len(api.status_writes()) == 2)
        assert len(api.status_writes()[-1]["gpus"]) == 3

        world.scenario(count=3, used_mib=2)  # breathing is no news
        world.scenario(count=3, gpus={0: {"compute_mode": 2}})
        api.wait_for(lambda: len(api.status_writes()) == 3)
        health = api.status_writes()[-1]["gpus"][0]["health"]
        assert health == {"state": "Unhealthy", "reason": "ComputeModeProhibited"}
        since = {status["conditions"][0]["lastTransitionTime"] for status in api.status_writes()}
        assert len(since) == 1

        assert agent.resident_bytes() < 60 * 2**20
        assert agent.stop() == 0
        assert world.closed.exists()


def test_a_driver_that_goes_and_comes_back_is_a_condition_and_keeps_the_measurement(api, world):
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        world.scenario(init=9, fail={"nvmlDeviceGetCount_v2": 1})
        api.wait_for(lambda: ready(api.status_writes()[-1]) == "False")
        gone = api.status_writes()[-1]
        assert gone["conditions"][0]["reason"] in {"Uninitialized", "DriverNotLoaded"}
        assert gone["gpus"] == api.status_writes()[0]["gpus"]
        world.scenario()
        api.wait_for(lambda: ready(api.status_writes()[-1]) == "True")
        assert agent.stop() == 0


def test_an_earlier_agents_measurement_outlives_a_restart_without_driver(api, world):
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        agent.stop()
    world.scenario(init=18)
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 2)
        last = api.status_writes()[-1]
        assert last["conditions"][0]["reason"] == "LibRmVersionMismatch"
        assert len(last["gpus"]) == 2
        agent.stop()


def test_lost_devices_end_the_agent_so_that_the_container_is_made_anew(api, world):
    world.scenario(init=999)
    with world.agent() as agent:
        assert agent.process.wait(timeout=30) == 1
        assert "exiting so that it is made anew" in agent.process.stderr.read()
    assert api.status_writes()[-1]["conditions"][0]["reason"] == "UnknownError"


@pytest.mark.parametrize(
    ("before", "trouble", "want"),
    [
        pytest.param("580.95.05", 18, "was 580.95.05 when", id="the driver was upgraded under it"),
        pytest.param("", 12, "was not loaded when", id="the driver came after the container"),
    ],
)
def test_a_driver_of_another_version_ends_the_agent_whose_library_is_of_before(
    api, world, before, trouble, want
):
    loaded = world.root / "sys/module/nvidia/version"
    loaded.parent.mkdir(parents=True)
    loaded.write_text(before)
    world.scenario(init=trouble)
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        loaded.write_text("590.48.01\n")
        assert agent.process.wait(timeout=30) == 1
        said = agent.process.stderr.read()
    assert f"driver is 590.48.01 now and {want}" in said
    with world.agent() as agent:  # made anew, and no better: it waits
        api.wait_for(lambda: len(api.status_writes()) >= 1)
        with pytest.raises(subprocess.TimeoutExpired):
            agent.process.wait(timeout=5)
        agent.stop()


def test_partitions_made_anew_are_news_though_the_gpu_was_partitioned_before(api, world):
    world.scenario("a100-40gb", 1, mig={0: [(0, "3g.20gb", 19968)]})
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        world.scenario("a100-40gb", 1, mig={0: [(1, "2g.10gb", 9856), (2, "2g.10gb", 9856)]})
        api.wait_for(lambda: len(api.status_writes()) == 2)
        (gpu,) = api.status_writes()[-1]["gpus"]
        assert [mig["profile"] for mig in gpu["migDevices"]] == ["2g.10gb"] * 2
        agent.stop()


def test_a_driver_loaded_anew_clears_what_was_wrong_before(api, world):
    world.scenario("h100", gpus={1: {"xid": 79, "event_types": 8}})
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        assert api.status_writes()[0]["gpus"][1]["health"]["reason"] == "Xid79"
        world.scenario("h100", init=9, fail={"nvmlDeviceGetCount_v2": 9})
        api.wait_for(lambda: ready(api.status_writes()[-1]) == "False")
        world.scenario("h100")
        api.wait_for(lambda: ready(api.status_writes()[-1]) == "True")
        assert api.status_writes()[-1]["gpus"][1]["health"]["state"] == "Healthy"
        agent.stop()


def test_a_replaced_token_is_read_when_the_old_one_is_refused(api, world):
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        renewed = bound_token(serial=2)
        (world.folder / "token").write_text(renewed)
        api.accepted = renewed
        world.scenario(count=4)
        api.wait_for(lambda: len(api.status_writes()) == 2)
        agent.stop()


def test_it_waits_as_long_as_the_server_wishes(api, world):
    api.refusals = [(429, {"Retry-After": "1"}), (503, {})]
    begin = time.monotonic()
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        assert time.monotonic() - begin >= 1
        agent.stop()


def test_a_token_of_another_node_owns_nothing(api, world):
    (world.folder / "token").write_text(bound_token(node="n2"))
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        assert api.writes[0]["metadata"] == {"name": "n1"}
        agent.stop()


def test_a_rise_of_foreign_memory_is_written_once_and_an_engine_is_no_stranger(api, world):
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        world.scenario(gpus={0: {"used_mib": 1000}})
        api.wait_for(lambda: len(api.status_writes()) == 2)
        used = [gpu["memory"]["foreignUsedBytes"] for gpu in api.status_writes()[-1]["gpus"]]
        assert used == [1024 * 2**20, 0]
        busy = {"used_mib": 40000, "processes": "4711:39000"}
        world.scenario(gpus={0: busy, 1: busy | {"compute_mode": 3}})  # the mode makes it news
        api.wait_for(lambda: len(api.status_writes()) == 3)
        used = [gpu["memory"]["foreignUsedBytes"] for gpu in api.status_writes()[-1]["gpus"]]
        assert used == [1024 * 2**20, 0]
        agent.stop()


def test_an_object_of_an_earlier_machine_of_that_name_is_taken_over(api, world):
    api.stored = {
        "metadata": {"name": "n1", "ownerReferences": [{"kind": "Node", "uid": "earlier"}]},
        "status": {"gpus": [{"uuid": "GPU-of-the-other"}]},
    }
    world.scenario(init=9)
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        (owner,) = api.writes[0]["metadata"]["ownerReferences"]
        assert owner["uid"] == NODE_UID
        assert api.status_writes()[0]["gpus"] == []
        agent.stop()


def test_an_unchanged_world_is_confirmed_now_and_then(api, world):
    client = Api(load({"KUBECONFIG": str(world.kubeconfig)}))
    watch = Watch(
        node_name="n1",
        agent_version="1",
        nvml=Quiet(),
        host=Host(world.root),
        api=client,
        readiness=Readiness(),
        pace=Pace(poll_seconds=0.02, refresh_seconds=0.2),
        stop=(stop := threading.Event()),
    )
    thread = threading.Thread(target=watch.run)
    begin = time.monotonic()
    thread.start()
    try:
        api.wait_for(lambda: len(api.status_writes()) == 4)
    finally:
        stop.set()
        thread.join()
        client.close()
    assert time.monotonic() - begin >= 3 * 0.8 * 0.2
    assert len({json.dumps(meaning(status)) for status in api.status_writes()}) == 1


class Quiet:
    """A driver without GPUs in which nothing ever changes."""

    def fingerprint(self):
        return Fingerprint(driver="580", gpus=(), xids=())

    def read(self):
        return NodeReading(driver="580")

    def close(self):
        pass


def test_a_wrong_setting_is_told(world):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env=environment(
            world.path,
            world.root,
            KUBECONFIG=str(world.kubeconfig),
            SHIPFITTER_AGENT_POLL_SECONDS="often",
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "shipfitter agent: SHIPFITTER_AGENT_POLL_SECONDS: a number of seconds above 0 is needed, "
        "got 'often'\n"
    )


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"xid": 79, "event_types": 8}, "Xid79", id="an XID of the hardware"),
        pytest.param({"xid": 31, "event_types": 8}, "", id="an application's own XID"),
        pytest.param({"fabric_state": 2}, "FabricNotReady", id="an unfinished NVSwitch fabric"),
        pytest.param({"remapped_rows": "0 9 0 1"}, "RowRemapFailure", id="no row left to remap"),
    ],
)
def test_what_happens_to_a_gpu_is_told(api, world, change, want):
    world.scenario(product="h100", gpus={1: change})
    with world.agent() as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        assert [gpu["health"]["reason"] for gpu in api.status_writes()[0]["gpus"]] == ["", want]
        agent.stop()


def probe(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_probes_tell_ready_after_a_pass_and_why_not_before(api, world, unused_port):
    world.scenario(init=9)
    with world.agent(listen=f"127.0.0.1:{unused_port}") as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        assert probe(unused_port, "/healthz") == (200, "ok\n")
        status, text = probe(unused_port, "/readyz")
        assert (status, "DriverNotLoaded" in text) == (503, True)
        assert probe(unused_port, "/")[0] == 404
        world.scenario()
        api.wait_for(lambda: ready(api.status_writes()[-1]) == "True")
        deadline = time.monotonic() + 10
        while probe(unused_port, "/readyz")[0] != 200:
            assert time.monotonic() < deadline
        agent.stop()


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]
