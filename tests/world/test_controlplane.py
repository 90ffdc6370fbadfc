"""A plane is ready in seconds, keeps its data over a restart, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from world.controlplane import ApiError, CommandError, Plane, PlaneError, PlaneSettings, registry
from world.controlplane.processes import Identity
from world.controlplane.tools import KUBE_VERSION

pytestmark = pytest.mark.plane
TESTS = Path(__file__).parents[1]
PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def plane():
    extra = PlaneSettings(apiserver_args=("--default-not-ready-toleration-seconds=7",))
    with Plane(extra) as started:
        yield started


def eventually(check, *, within_seconds=20.0):
    deadline = time.monotonic() + within_seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def test_it_says_its_true_version(plane):
    assert plane.request("GET", "/version")["gitVersion"] == KUBE_VERSION
    said = json.loads(plane.kubectl("version", "-o", "json"))
    assert said["clientVersion"]["gitVersion"] == said["serverVersion"]["gitVersion"]


def test_the_controllers_work(plane):
    plane.kubectl("create", "deployment", "web", "--image=none", "--replicas=2")

    def two_pods():
        return len(plane.kubectl("get", "pods", "-l", "app=web", "-o", "name").split()) == 2

    eventually(two_pods)
    plane.kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=30s")


def test_extra_flags_reach_the_server(plane):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "flags"},
        "spec": {"containers": [{"name": "one", "image": "none"}]},
    }
    made = plane.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
    seconds = {each["key"]: each["tolerationSeconds"] for each in made["spec"]["tolerations"]}
    assert seconds["node.kubernetes.io/not-ready"] == 7


def test_the_api_server_comes_back_with_its_data(plane):
    plane.request("POST", CONFIG_MAPS, CONFIG_MAP)
    plane.kill("kube-apiserver")
    with pytest.raises(OSError, match="refused"):
        plane.request("GET", "/version")
    plane.launch("kube-apiserver")
    assert plane.request("GET", f"{CONFIG_MAPS}/kept")["metadata"]["name"] == "kept"


def test_a_refusal_is_the_servers_own_words(plane):
    nobody = plane.client("nobody", "wrong")
    with pytest.raises(ApiError, match="Unauthorized") as refused:
        nobody.request("GET", CONFIG_MAPS)
    assert refused.value.code == 401
    with pytest.raises(CommandError, match='configmaps "gone" not found'):
        plane.kubectl("get", "configmap", "gone")
    with pytest.raises(CommandError, match=r"release: not found"):
        plane.helm("status", "gone")


def test_a_program_that_ends_is_named_with_its_last_words(tmp_path):
    broken = PlaneSettings(apiserver_args=("--no-such-flag",))
    with pytest.raises(PlaneError, match=r"(?s)kube-apiserver: ended.*no-such-flag"):
        Plane(broken, folder=tmp_path / "plane").__enter__()
    assert not (tmp_path / "plane").exists()


def test_a_folder_in_use_is_left_alone(tmp_path):
    with pytest.raises(PlaneError, match="exists already"):
        Plane(folder=tmp_path)


OWNER = """
import sys, threading
from pathlib import Path
from world.controlplane import Plane
plane = Plane(folder=Path(sys.argv[1]))
starter = threading.Thread(target=plane.start)   # a thread that ends while the plane runs on
starter.start(); starter.join()
print("ready", flush=True)
sys.stdin.read()
"""


def test_nothing_is_left_of_a_parent_that_was_killed(tmp_path):
    folder = tmp_path / "plane"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, folder],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout.readline() == b"ready\n"
        (record,) = [each for each in registry.records().values() if each.folder == folder]
        assert sorted(record.processes) == PROGRAMS
        assert all(process.alive() for process in record.processes.values())
        assert not record.abandoned()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    eventually(lambda: not any(process.alive() for process in record.processes.values()))
    assert folder in [gone.folder for gone in registry.remove_abandoned()]
    assert not folder.exists()
    assert folder not in [each.folder for each in registry.records().values()]


def test_a_person_starts_finds_and_stops_one(tmp_path):
    folder = tmp_path / "plane"

    def command(*words):
        line = [sys.executable, "-m", "world.controlplane", *words]
        done = subprocess.run(line, cwd=TESTS, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    try:
        code, said = command("start", str(folder))
        assert code == 0
        assert said.splitlines()[0] == f"export KUBECONFIG={folder}/admin.kubeconfig"
        running = [line for line in command("status")[1].splitlines() if str(folder) in line]
        assert len(running) == 1
        assert running[0].endswith(", ".join(PROGRAMS))
    finally:
        code, said = command("stop", str(folder))
    assert (code, said.splitlines()[-1]) == (0, f"stopped {folder}")
    assert not folder.exists()
    assert command("stop", str(folder))[0] == 1


def test_a_pid_given_to_another_process_is_not_ours():
    ours = Identity.of(os.getpid())
    assert ours.alive()
    assert not Identity(ours.pid, ours.start_ticks - 1).alive()
