"""What only the real API server can tell: patches, ownership of fields, events, the process."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from shipfitter.cluster.apply import Applier
from shipfitter.cluster.caches import Caches
from shipfitter.cluster.client import Client
from shipfitter.cluster.connection import load_configuration
from shipfitter.cluster.events import EventPoster
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import DEPLOYMENT, EVENT, MODEL_DEPLOYMENT, SERVICE
from shipfitter.cluster.lease import LeaderLease
from shipfitter.cluster.queue import Key
from shipfitter.decide.world import Delete, Notice
from unit.cluster.builders import deployment, owned, scale, service
from unit.cluster.fake_api import eventually
from world.controlplane import Plane

pytestmark = pytest.mark.plane
ROOT = Path(__file__).parents[3]
KEY = Key("default", "llama")
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


@pytest.fixture(scope="module")
def plane():
    with Plane() as started:
        for crd in sorted((ROOT / "crds").glob("*.yaml")):
            started.kubectl("apply", "--server-side", "-f", crd)
        started.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield started


@pytest.fixture(scope="module")
def client(plane):
    made = Client(lambda: load_configuration({"KUBECONFIG": str(plane.kubeconfig)}))
    eventually(lambda: listed(made), within_seconds=30)
    yield made
    made.close()


def listed(client):
    """A kind that was just defined may answer 429 for a moment."""
    try:
        return client.request("GET", MODEL_DEPLOYMENT.path())
    except ApiError:
        return None


@pytest.fixture
def body(client):
    """A ModelDeployment that nobody looks after."""
    model = {"uri": "hf://org/model", "facts": {"config": CONFIG, "weightsBytes": 2_500_000_000}}
    sent = {
        "apiVersion": MODEL_DEPLOYMENT.api_version,
        "kind": MODEL_DEPLOYMENT.kind,
        "metadata": {"name": "llama", "namespace": "default"},
        "spec": {"model": model},
    }
    made = client.request("POST", MODEL_DEPLOYMENT.path("default"), body=sent)
    yield made
    client.delete(MODEL_DEPLOYMENT, "default", "llama", uid=made["metadata"]["uid"])
    for kind, name in ((DEPLOYMENT, "llama-v"), (SERVICE, "llama")):
        live = client.read(kind, "default", name)
        if live:
            client.delete(kind, "default", name, uid=live["metadata"]["uid"])
            eventually(lambda kind=kind, name=name: client.read(kind, "default", name) is None)


@pytest.fixture
def applier(client):
    return Applier(client, Caches(client))


def managed_by(live, manager):
    fields = [each["fieldsV1"] for each in live["metadata"]["managedFields"]]
    names = [each["manager"] for each in live["metadata"]["managedFields"]]
    return fields[names.index(manager)]["f:spec"] if manager in names else {}


def of(body, apply):
    """The manifest with the real owner's uid."""
    metadata = apply.manifest["metadata"]
    if "ownerReferences" in metadata:
        owner = {**metadata["ownerReferences"][0], "uid": body["metadata"]["uid"]}
        metadata = {**metadata, "ownerReferences": [owner]}
    return type(apply)(manifest={**apply.manifest, "metadata": metadata}, manager=apply.manager)


def test_the_scale_manager_ends_up_with_the_replicas(client, body, applier):
    applier.apply(KEY, (of(body, deployment()), scale(0)))
    live = client.read(DEPLOYMENT, "default", "llama-v")
    assert live["spec"]["replicas"] == 0, "never a pod that nobody wanted"
    applier.apply(KEY, (scale(3),))
    live = client.read(DEPLOYMENT, "default", "llama-v")
    assert live["spec"]["replicas"] == 3
    assert "f:replicas" in managed_by(live, "shipfitter-scale")
    assert "f:replicas" not in managed_by(live, "shipfitter")


def test_another_template_leaves_the_scale_alone(client, body):
    first = Applier(client, Caches(client))
    first.apply(KEY, (of(body, deployment()), scale(3)))
    # Written under the manager of templates alone, as every later template is.
    client.apply(
        {**of(body, deployment("vllm:2")).manifest, "metadata": {
            **of(body, deployment()).manifest["metadata"], "namespace": "default"}},
        manager="shipfitter",
    )  # fmt: skip
    live = client.read(DEPLOYMENT, "default", "llama-v")
    assert live["spec"]["replicas"] == 3
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm:2"


def test_status_is_replaced_whole_whatever_the_version(plane, client, body, applier):
    assert applier.write_status(body, {"replicas": 2, "observedGeneration": 1})
    plane.kubectl("annotate", "modeldeployment", "llama", "touched=1")
    assert applier.write_status(body, {"replicas": 3})
    live = client.read(MODEL_DEPLOYMENT, "default", "llama")
    assert live["status"] == {"replicas": 3}
    assert not applier.write_status(live, {"replicas": 3})


def test_status_of_another_incarnation_is_left_alone(client, body, applier):
    stale = {**body, "metadata": {**body["metadata"], "uid": "another"}}
    with pytest.raises(ApiError) as refused:
        applier.write_status(stale, {"replicas": 9})
    assert not refused.value.retryable
    assert "status" not in client.read(MODEL_DEPLOYMENT, "default", "llama")


def test_fields_that_an_older_definition_drops_are_told(client, body, applier, caplog):
    applier.write_status(body, {"replicas": 1, "fromTheFuture": {"a": 1}})
    assert "the API server dropped part of the status" in caplog.text


def test_deletion_needs_the_right_incarnation(client, body, applier):
    applier.apply(KEY, (of(body, deployment()), scale(0)))
    wrong = Delete(api_version="apps/v1", kind="Deployment", name="llama-v", uid="another")
    applier.delete(KEY, (wrong,))
    live = client.read(DEPLOYMENT, "default", "llama-v")
    assert live
    applier.delete(
        KEY,
        (
            Delete(
                api_version="apps/v1",
                kind="Deployment",
                name="llama-v",
                uid=live["metadata"]["uid"],
            ),
        ),
    )
    eventually(lambda: client.read(DEPLOYMENT, "default", "llama-v") is None)


def test_events_are_accepted_and_counted(client, body):
    poster = EventPoster(client, instance="operator-1")
    for _ in range(3):
        poster.post(body, Notice(type="Normal", reason="Fits", message="it fits"))
    found = [
        each
        for each in client.request("GET", EVENT.path("default"))["items"]
        if each.get("regarding", {}).get("uid") == body["metadata"]["uid"]
    ]
    assert [(each["reason"], each["series"]["count"]) for each in found] == [("Fits", 3)]


def test_the_lease_goes_from_hand_to_hand(client):
    first = LeaderLease(client, namespace="default", identity="one", name="tried")
    second = LeaderLease(client, namespace="default", identity="two", name="tried")
    assert first.try_acquire()
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()


def test_a_namespace_on_its_way_out_takes_nothing(plane, client):
    leaving = {"metadata": {"name": "leaving"}, "apiVersion": "v1", "kind": "Namespace"}
    client.request("POST", "/api/v1/namespaces", body=leaving)
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
    kept["metadata"] |= {"namespace": "leaving", "finalizers": ["example.com/hold"]}
    client.request("POST", "/api/v1/namespaces/leaving/configmaps", body=kept)
    client.request("DELETE", "/api/v1/namespaces/leaving")
    refused = {**service().manifest, "metadata": {**owned("late"), "namespace": "leaving"}}
    with pytest.raises(ApiError) as error:
        client.apply(refused, manager="shipfitter")
    assert error.value.namespace_terminating
    assert not error.value.retryable
    plane.kubectl("patch", "configmap", "kept", "-n", "leaving", "--type=merge",
                  "-p", '{"metadata": {"finalizers": null}}')  # fmt: skip


class Process:
    """The operator as people run it."""

    def __init__(self, plane, log, port, **environ):
        environ = {
            **os.environ,
            "KUBECONFIG": str(plane.kubeconfig),
            "SHIPFITTER_HEALTH_HOST": "127.0.0.1",
            "SHIPFITTER_HEALTH_PORT": str(port),
            "SHIPFITTER_SETTLE_SECONDS": "1",
            **environ,
        }
        self.port, self.log = port, log
        with log.open("ab") as stderr:
            command = [sys.executable, "-m", "shipfitter", "operator"]
            self.popen = subprocess.Popen(command, env=environ, stderr=stderr)

    def answers(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def end(self, number=signal.SIGTERM):
        """Exit code and seconds it took."""
        began = time.monotonic()
        self.popen.send_signal(number)
        return self.popen.wait(20), time.monotonic() - began


@pytest.fixture
def operators(plane, tmp_path):
    started = []

    def start(name):
        port = 18_300 + os.getpid() % 1000 + len(started)
        started.append(Process(plane, tmp_path / f"{name}.log", port, POD_NAME=name))
        return started[-1]

    yield start
    for process in started:
        if process.popen.poll() is None:
            process.end(signal.SIGKILL)
        print(process.log.read_text())  # pytest shows it with a failure


def test_one_acts_another_waits_and_takes_over(client, body, operators):
    first = operators("one")
    eventually(lambda: first.answers("/readyz") == 200, within_seconds=30)
    eventually(
        lambda: (client.read(MODEL_DEPLOYMENT, "default", "llama").get("status") or {}).get(
            "conditions"
        ),
        within_seconds=30,
    )
    live = client.read(MODEL_DEPLOYMENT, "default", "llama")
    assert "finalizers" not in live["metadata"]
    assert "annotations" not in live["metadata"]

    second = operators("two")
    eventually(lambda: second.answers("/healthz") == 200, within_seconds=30)
    assert second.answers("/readyz") == 503
    code, seconds = first.end()
    assert (code, seconds < 5.0) == (0, True)
    eventually(lambda: second.answers("/readyz") == 200, within_seconds=30)
    assert second.end()[0] == 0
    assert "Traceback" not in first.log.read_text() + second.log.read_text()


def test_an_api_server_that_comes_back_finds_the_operator_at_work(plane, client, body, operators):
    operator = operators("patient")
    eventually(lambda: operator.answers("/readyz") == 200, within_seconds=30)
    plane.kill("kube-apiserver")
    eventually(lambda: "nothing is written" in operator.log.read_text(), within_seconds=30)
    assert operator.answers("/healthz") == 200
    plane.launch("kube-apiserver")
    client.delete(MODEL_DEPLOYMENT, "default", "llama", uid=body["metadata"]["uid"])
    eventually(lambda: operator.answers("/readyz") == 200, within_seconds=60)
    assert operator.popen.poll() is None
    assert operator.end()[0] == 0
