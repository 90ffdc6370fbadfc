"""The node emulator on the real control plane: its pods are processes, everything else is real."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest

from world.controlplane import FAST_NODE_LOSS, ApiError, CommandError, Plane
from world.nodes import Api, Emulator, Image, NodeSpec, Program, ProgramMap, Timing

pytestmark = pytest.mark.plane
TESTS = Path(__file__).parents[1]
ACTOR = Program(argv=(sys.executable, str(TESTS / "world" / "nodes" / "actor.py")))
PODS = "/api/v1/namespaces/default/pods"
FAST = Timing(backoff_seconds=0.4, probe_factor=0.2, refresh_seconds=1.0)


@pytest.fixture(scope="module")
def plane():
    with Plane(FAST_NODE_LOSS) as started:
        yield started


@pytest.fixture(scope="module")
def programs(plane):
    kubectl = Program(argv=(str(plane.bin / "kubectl"),))
    return ProgramMap(
        {
            "actor": Image(entrypoint=ACTOR, commands={"actor": ACTOR}),
            "kubectl": Image(entrypoint=kubectl),
        }
    )


def emulator_of(plane, programs, **options):
    api = Api(plane.url, plane.ca, plane.token)
    return Emulator(api=api, programs=programs, **{"timing": FAST, **options})


@pytest.fixture(scope="module")
def emulator(plane, programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    with emulator_of(plane, programs, folder=folder) as started:
        yield started


@pytest.fixture
def node(emulator, tmp_path):
    """A node of the test's own, with two GPUs and a host path to give signals by."""
    name = f"n-{uuid.uuid4().hex[:6]}"
    paths = {"/signals": str(tmp_path)}
    emulator.add_node(NodeSpec(name=name, gpus=2, host_paths=paths))
    yield name
    with contextlib.suppress(KeyError):
        emulator.remove_node(name)


def eventually(check, *, within_seconds=30.0):
    """The first true answer."""
    deadline = time.monotonic() + within_seconds
    while True:
        got = check()
        if got:
            return got
        assert time.monotonic() < deadline, f"it did not come true in time, last: {got!r}"
        time.sleep(0.05)


def pod(node, *args, name=None, gpus=0, spec=None, **container):
    """A pod of one actor on this node; keywords are fields of the container."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    main = {"name": "c", "image": "actor:1", "args": list(args), **limits, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name or f"p-{uuid.uuid4().hex[:6]}", "namespace": "default"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 3,
            "containers": [main],
            **(spec or {}),
        },
    }


SIGNALS = {
    "volumes": [{"name": "signals", "hostPath": {"path": "/signals"}}],
    "mounts": [{"name": "signals", "mountPath": "/signals"}],
}


class Cluster:
    """What the tests ask of the API."""

    def __init__(self, plane):
        self.plane = plane

    def create(self, body):
        namespace = body["metadata"].get("namespace", "default")
        group = body["apiVersion"]
        root = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        path = f"{root}/namespaces/{namespace}/{body['kind'].lower()}s"
        return self.plane.request("POST", path, body)["metadata"]["name"]

    def read(self, name):
        return self.plane.request("GET", f"{PODS}/{name}")

    def status(self, name, index=0):
        """The first container's status; empty before there is one."""
        return (self.read(name)["status"].get("containerStatuses") or [{}])[index]

    def condition(self, name, kind="Ready"):
        conditions = self.read(name)["status"].get("conditions") or ()
        return next((c["status"] for c in conditions if c["type"] == kind), None)

    def is_ready(self, name):
        return self.condition(name) == "True"

    def phase(self, name):
        return self.read(name)["status"]["phase"]

    def exists(self, name):
        try:
            return bool(self.read(name))
        except ApiError as error:
            if error.code != 404:
                raise
            return False

    def delete(self, name, *args):
        self.plane.kubectl("delete", "pod", name, "--wait=false", *args)


@pytest.fixture(scope="module")
def cluster(plane):
    return Cluster(plane)


def fetch(emulator, url):
    """Through the emulator's proxy, as a pod would."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": emulator.proxy_url}))
    with opener.open(url, timeout=5) as answer:
        return answer.read().decode()


def variables(emulator, cluster, name):
    ip = cluster.read(name)["status"]["podIP"]
    return json.loads(fetch(emulator, f"http://{ip}:8000/env"))


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


LISTENS = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}


def running(cluster, body):
    """The name of a pod that serves by now."""
    body["spec"]["containers"][0].setdefault("readinessProbe", LISTENS)
    name = cluster.create(body)
    eventually(lambda: cluster.is_ready(name))
    return name


def deployment(node, name, replicas, *args, **container):
    template = pod(node, *args, **container)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def test_a_service_leads_to_the_pods_of_a_deployment(emulator, plane, cluster, node):
    probe = {"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1}
    ports = [{"name": "web", "containerPort": 8000}]
    cluster.create(deployment(node, "web", 2, ports=ports, readinessProbe=probe))
    plane.kubectl("expose", "deployment", "web", "--port=80", "--target-port=web")
    plane.kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    url = "http://web.default.svc/env"
    eventually(lambda: len({json.loads(fetch(emulator, url))["HOSTNAME"] for _ in range(4)}) == 2)
    address = plane.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    assert "web-" in json.loads(fetch(emulator, f"http://{address}/env"))["HOSTNAME"]
    plane.kubectl("scale", "deployment", "web", "--replicas=0")

    def nobody_answers():
        try:
            return not fetch(emulator, url)
        except urllib.error.HTTPError as error:
            return error.code == 503 and "no ready endpoint" in error.read().decode()
        except (ConnectionError, urllib.error.URLError):  # of a pod that ended while it was asked
            return False

    eventually(nobody_answers)
    plane.kubectl("delete", "deployment,service", "web")


def test_a_crash_is_told_and_repeated_with_growing_delay(cluster, node):
    words = ["--say=log line", "--message=the last words", "--exit=3"]
    args = [*words, "--message-file=/dev/own-words"]
    name = cluster.create(pod(node, *args, terminationMessagePath="/dev/own-words"))

    def loops():
        status = cluster.status(name)
        waiting = status.get("state", {}).get("waiting", {})
        return (
            waiting.get("reason") == "CrashLoopBackOff" and status["restartCount"] >= 2 and status
        )

    status = eventually(loops)
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert last["message"] == "the last words"
    assert last["startedAt"] <= last["finishedAt"]
    assert "restarting failed container=c" in status["state"]["waiting"]["message"]
    assert cluster.phase(name) == "Running"
    assert not status["ready"]


@pytest.mark.parametrize(
    ("args", "want_reason", "want_message"),
    [
        pytest.param(["--say=cause", "--exit=1"], "Error", "cause\n", id="the log tells the cause"),
        pytest.param(["--exit=137"], "OOMKilled", "", id="137 plays the kernel's verdict"),
        pytest.param(["--say=fine", "--exit=0"], "Completed", "", id="all went well"),
    ],
)
def test_last_words_of_a_pod_that_runs_once(cluster, node, args, want_reason, want_message):
    once = {"restartPolicy": "Never"}
    policy = "FallbackToLogsOnError"
    name = cluster.create(pod(node, *args, spec=once, terminationMessagePolicy=policy))
    want_phase = "Succeeded" if want_reason == "Completed" else "Failed"
    eventually(lambda: cluster.phase(name) == want_phase)
    ended = cluster.status(name)["state"]["terminated"]
    assert (ended["reason"], ended.get("message", "")) == (want_reason, want_message)


def test_a_program_that_is_not_there(cluster, node):
    name = cluster.create(pod(node, command=["no-such-program"], spec={"restartPolicy": "Never"}))
    eventually(lambda: cluster.phase(name) == "Failed")
    ended = cluster.status(name)["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert "no-such-program" in ended["message"]


def test_readiness_comes_and_goes(cluster, node, tmp_path):
    body = pod(
        node,
        "--ready-file=/signals/ready",
        spec={"volumes": SIGNALS["volumes"]},
        volumeMounts=SIGNALS["mounts"],
        readinessProbe={"httpGet": {"path": "/ready", "port": 8000}, "periodSeconds": 1},
    )
    name = cluster.create(body)
    eventually(lambda: "running" in cluster.status(name).get("state", {}))
    assert not cluster.is_ready(name)
    (tmp_path / "ready").touch()
    eventually(lambda: cluster.is_ready(name))
    (tmp_path / "ready").unlink()
    eventually(lambda: not cluster.is_ready(name))
    assert cluster.status(name)["restartCount"] == 0


@pytest.mark.parametrize(
    ("args", "want_code"),
    [
        pytest.param([], 0, id="one that ends on SIGTERM"),
        pytest.param(["--deaf"], 137, id="one that does not, by SIGKILL"),
    ],
)
def test_a_container_that_is_ill_is_restarted(cluster, node, args, want_code):
    ill = {"httpGet": {"path": "/healthz", "port": 8000}, "periodSeconds": 1, "failureThreshold": 2}
    begun = {**LISTENS, "failureThreshold": 1000}
    body = pod(node, "--ill-after=0.5", *args, livenessProbe=ill, startupProbe=begun)
    body["spec"]["terminationGracePeriodSeconds"] = 1
    name = cluster.create(body)
    last = eventually(lambda: cluster.status(name).get("lastState", {}).get("terminated"))
    assert last["exitCode"] == want_code
    assert last["reason"] == ("Completed" if want_code == 0 else "Error"), "not OOMKilled: our kill"
    assert cluster.status(name)["restartCount"] >= 1


def test_nothing_else_is_probed_before_the_startup_probe_succeeds(cluster, node, tmp_path):
    begun = {"exec": {"command": ["test", "-e", "/signals/begun"]}}
    body = pod(
        node,
        "--ill-after=0",
        spec={"volumes": SIGNALS["volumes"]},
        volumeMounts=SIGNALS["mounts"],
        startupProbe={**begun, "periodSeconds": 1, "failureThreshold": 1000},
        livenessProbe=LISTENS,
        readinessProbe=LISTENS,
    )
    name = cluster.create(body)
    eventually(lambda: "running" in cluster.status(name).get("state", {}))
    assert (cluster.status(name)["started"], cluster.is_ready(name)) == (False, False)
    (tmp_path / "begun").touch()
    eventually(lambda: cluster.status(name)["started"] and cluster.is_ready(name))


def test_a_deleted_pod_ends_in_order(cluster, plane, node, emulator, tmp_path):
    body = pod(
        node,
        "--say=up",
        gpus=2,
        spec={"volumes": SIGNALS["volumes"]},
        volumeMounts=SIGNALS["mounts"],
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "cat /signals/go"]}}},
    )
    body["spec"]["terminationGracePeriodSeconds"] = 20
    os.mkfifo(tmp_path / "go")  # the hook waits until somebody writes
    name = running(cluster, body)
    follow = [plane.bin / "kubectl", "--kubeconfig", plane.kubeconfig, "logs", "-f", name]
    with ending(subprocess.Popen(follow, stdout=subprocess.PIPE)) as following:
        assert following.stdout.readline() == b"up\n"
        cluster.delete(name)
        waiting = cluster.create(pod(node, gpus=1))
        eventually(lambda: cluster.condition(waiting, "PodScheduled") == "False")
        held = emulator.nodes[node].devices.held()
        assert len(held) == 2, "a pod that ends keeps its GPUs"
        (tmp_path / "go").write_text("")
        assert following.stdout.read() == b"bye\n"
    eventually(lambda: not cluster.exists(name))
    eventually(lambda: cluster.is_ready(waiting))


def test_a_deaf_program_is_killed_after_its_grace_period(cluster, node):
    body = pod(node, "--deaf")
    body["spec"]["terminationGracePeriodSeconds"] = 2
    name = running(cluster, body)
    began = time.monotonic()
    cluster.delete(name)
    eventually(lambda: not cluster.exists(name))
    assert 1.8 < time.monotonic() - began < 8


def test_a_pod_deleted_by_force_leaves_no_process(cluster, node, emulator):
    body = pod(node, "--deaf")
    body["spec"]["terminationGracePeriodSeconds"] = 60
    name = running(cluster, body)
    (own,) = emulator.pods_on(node)
    cluster.delete(name, "--force", "--grace-period=0")
    eventually(lambda: not emulator.pods_on(node))
    own.join()
    assert not own.folder.exists()


def test_logs(cluster, plane, node):
    name = cluster.create(pod(node, "--say=one", "--say=two", "--exit=1"))
    eventually(lambda: cluster.status(name).get("restartCount", 0) >= 1)
    eventually(lambda: plane.kubectl("logs", name) == "one\ntwo\n")
    assert plane.kubectl("logs", name, "--previous", "--tail=1") == "two\n"
    assert "Z two" in plane.kubectl("logs", name, "--previous", "--timestamps")
    with pytest.raises(CommandError, match="is not valid for pod"):
        plane.kubectl("logs", name, "-c", "other")


def test_a_pod_has_its_own_identity(cluster, plane, node):
    once = {"restartPolicy": "Never", "serviceAccountName": "reader"}
    plane.kubectl("create", "serviceaccount", "reader")
    ask = pod(node, "auth", "whoami", "-o", "json", spec=once, image="kubectl")
    read = pod(node, "get", "configmaps", "-o", "name", spec=once, image="kubectl")
    name = cluster.create(ask)
    eventually(lambda: cluster.phase(name) == "Succeeded")
    who = json.loads(plane.kubectl("logs", name))["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:reader"
    assert who["extra"]["authentication.kubernetes.io/node-name"] == [node]
    assert who["extra"]["authentication.kubernetes.io/pod-name"] == [name]
    refused = cluster.create(read)
    eventually(lambda: cluster.phase(refused) == "Failed")
    assert "cannot list resource" in plane.kubectl("logs", refused)
    plane.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps")
    plane.kubectl(
        *("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader")
    )
    read["metadata"]["name"] = "allowed"
    eventually(lambda: cluster.phase(cluster.create(read)) and True)
    eventually(lambda: cluster.phase("allowed") == "Succeeded")
    assert "configmap/kube-root-ca.crt" in plane.kubectl("logs", "allowed")


def test_a_pod_without_a_token_has_no_identity(cluster, node, emulator):
    spec = {"automountServiceAccountToken": False, "enableServiceLinks": False}
    own = variables(emulator, cluster, running(cluster, pod(node, spec=spec)))
    assert "KUBECONFIG" not in own
    assert "KUBERNETES_PORT" not in own, "there are no service links"


def test_what_a_container_is_given(cluster, plane, node, emulator):
    plane.kubectl("create", "configmap", "given", "--from-literal=log.json=to /dev/termination-log")
    plane.kubectl("create", "secret", "generic", "hf", "--from-literal=token=s3cret")
    volumes = [
        {"name": "conf", "configMap": {"name": "given"}},
        {
            "name": "about",
            "downwardAPI": {
                "items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
            },
        },
        {"name": "scratch", "emptyDir": {}},
    ]
    mounts = [
        {"name": "conf", "mountPath": "/etc/conf"},
        {"name": "about", "mountPath": "/about"},
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    env = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CACHE", "value": "/scratch/$(NODE)"},
        {"name": "CONF", "value": "/etc/conf/log.json"},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    name = running(
        cluster,
        pod(
            node,
            *("--say=$(CACHE)", "--message=$(TOKEN)"),
            env=env,
            volumeMounts=mounts,
            spec={"volumes": volumes},
        ),
    )
    ip = cluster.read(name)["status"]["podIP"]
    own = variables(emulator, cluster, name)
    assert ip.startswith("198.18.")
    assert own["POD_LISTEN_ADDRESS"] == ip.replace("198.", "127.", 1)
    assert (own["TOKEN"], own["NODE"], own["CPUS"]) == ("s3cret", node, "64")
    assert own["CACHE"].endswith(f"volumes/scratch/{node}")
    assert json.loads(own["ARGV"])[0] == f"--say={own['CACHE']}"
    conf = fetch(emulator, f"http://{ip}:8000/read?{own['CONF']}")
    (launched,) = emulator.pods_on(node)
    assert conf == f"to {launched.containers[0].launch.message_file}"
    plane.kubectl("patch", "configmap", "given", "-p", '{"data": {"log.json": "newer"}}')
    eventually(lambda: fetch(emulator, f"http://{ip}:8000/read?{own['CONF']}") == "newer")


def test_a_container_waits_for_what_it_refers_to(cluster, plane, node):
    reference = {"secretKeyRef": {"name": "later", "key": "k"}}
    name = cluster.create(pod(node, env=[{"name": "K", "valueFrom": reference}]))

    def waits():
        waiting = cluster.status(name).get("state", {}).get("waiting", {})
        return waiting.get("reason") == "CreateContainerConfigError" and waiting

    assert eventually(waits)["message"] == 'secret "later" not found'
    plane.kubectl("create", "secret", "generic", "later", "--from-literal=k=v")
    eventually(lambda: cluster.is_ready(name))


def test_an_image_that_nobody_plays(cluster, node, emulator):
    name = cluster.create(pod(node, image="unknown:1"))
    seen = set()

    def both():
        seen.add(cluster.status(name).get("state", {}).get("waiting", {}).get("reason"))
        return {"ErrImagePull", "ImagePullBackOff"} <= seen

    eventually(both)
    assert cluster.phase(name) == "Pending"
    emulator.programs.images["unknown"] = Image(entrypoint=ACTOR)
    eventually(lambda: cluster.is_ready(name))


def test_init_containers_run_in_order(cluster, plane, node):
    steps = [
        {"name": f"step{n}", "image": "actor:1", "command": ["sh", "-c", script]}
        for n, script in enumerate(("echo 1 > /s/f", "test $(cat /s/f) = 1 && echo 2 > /s/f"))
    ]
    mount = [{"name": "s", "mountPath": "/s"}]
    spec = {
        "initContainers": [{**step, "volumeMounts": mount} for step in steps],
        "volumes": [{"name": "s", "emptyDir": {}}],
    }
    body = pod(node, command=["cat", "/s/f"], spec=spec, volumeMounts=mount)
    body["spec"]["restartPolicy"] = "Never"
    name = cluster.create(body)
    eventually(lambda: cluster.phase(name) == "Succeeded")
    assert plane.kubectl("logs", name) == "2\n"


def test_every_pod_has_gpus_of_its_own(cluster, node, emulator):
    names = [running(cluster, pod(node, gpus=1)) for _ in range(2)]
    seen = [variables(emulator, cluster, name)["NVIDIA_VISIBLE_DEVICES"] for name in names]
    assert len(set(seen)) == 2
    refused = pod(node, gpus=1)
    refused["spec"]["nodeName"] = node  # past the scheduler, which knows better
    name = cluster.create(refused)
    eventually(lambda: cluster.phase(name) == "Failed")
    status = cluster.read(name)["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "Requested: 1, Available: 0" in status["message"]


def test_a_node_gets_more_gpus(cluster, node, emulator):
    running(cluster, pod(node, gpus=2))
    name = cluster.create(pod(node, gpus=2))
    eventually(lambda: cluster.condition(name, "PodScheduled") == "False")
    emulator.nodes[node].set_gpus(4)
    eventually(lambda: cluster.is_ready(name))


def test_a_removed_node_takes_its_pods_along(cluster, plane, emulator):
    specs = [NodeSpec(name=f"pair-{n}", labels={"pair": "yes"}) for n in range(2)]
    for spec in specs:
        emulator.add_node(spec)
    body = deployment("", "moving", 1)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"pair": "yes"}
    cluster.create(body)
    plane.kubectl("rollout", "status", "deployment/moving", "--timeout=30s")
    (before,) = plane.request("GET", f"{PODS}?labelSelector=app=moving")["items"]
    removed = before["spec"]["nodeName"]
    (pod_of_it,) = emulator.pods_on(removed)
    emulator.remove_node(removed)
    assert not pod_of_it.folder.exists()
    plane.kubectl("rollout", "status", "deployment/moving", "--timeout=30s")
    (after,) = plane.request("GET", f"{PODS}?labelSelector=app=moving")["items"]
    assert after["spec"]["nodeName"] != removed
    assert removed not in plane.kubectl("get", "nodes", "-o", "name")
    plane.kubectl("delete", "deployment", "moving")
    emulator.remove_node(after["spec"]["nodeName"])


def test_a_cordoned_node_gets_no_pods(cluster, node, emulator):
    emulator.cordon(node)
    name = cluster.create(pod(node))
    eventually(lambda: cluster.condition(name, "PodScheduled") == "False")
    emulator.cordon(node, unschedulable=False)
    eventually(lambda: cluster.is_ready(name))


def test_a_silent_node_is_lost_and_comes_back(cluster, plane, node, emulator):
    emulator.add_node(NodeSpec(name="cut-off"))
    name, other = running(cluster, pod(node)), running(cluster, pod("cut-off"))
    emulator.silence(node, power_off=True)
    emulator.silence("cut-off")

    def ready():
        body = plane.request("GET", f"/api/v1/nodes/{node}")
        return next(c["status"] for c in body["status"]["conditions"] if c["type"] == "Ready")

    eventually(lambda: ready() == "Unknown", within_seconds=60)
    eventually(lambda: not cluster.is_ready(name) and not cluster.is_ready(other))
    emulator.resume("cut-off")
    eventually(lambda: cluster.is_ready(other))
    assert cluster.status(other)["restartCount"] == 0
    emulator.remove_node("cut-off")
    emulator.resume(node)
    eventually(lambda: ready() == "True")
    eventually(lambda: cluster.is_ready(name))
    status = cluster.status(name)
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_the_api_server_restarts(cluster, plane, node, emulator):
    name = running(cluster, pod(node))
    plane.restart("kube-apiserver")
    later = running(cluster, pod(node))
    assert cluster.status(name)["restartCount"] == 0
    cluster.delete(name)
    cluster.delete(later)
    eventually(lambda: not cluster.exists(name) and not cluster.exists(later))


SPEC_FILE = """
nodes: [{{name: {node}, environment: {{MARK: "{mark}"}}}}]
images: {{actor: {{entrypoint: {{argv: ["{{python}}", "{actor}"]}}}}}}
"""


@pytest.mark.parametrize(
    "how", [pytest.param(signal.SIGKILL, id="killed"), pytest.param(signal.SIGTERM, id="asked")]
)
def test_nothing_is_left_of_an_emulator(cluster, plane, tmp_path, how):
    mark = f"mark-{uuid.uuid4().hex}"
    node = mark[:10]
    spec = tmp_path / "nodes.yaml"
    spec.write_text(SPEC_FILE.format(mark=mark, node=node, actor=ACTOR.argv[1]))
    command = [sys.executable, "-m", "world.nodes", "--spec", spec, "--kubeconfig"]
    env = {**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(tmp_path)}
    with ending(
        subprocess.Popen([*command, plane.kubeconfig], env=env, stdout=subprocess.PIPE)
    ) as master:
        assert f"node {node}: 0".encode() in master.stdout.readline()
        name = running(cluster, pod(node, "--child"))
        eventually(lambda: len(processes_with(mark)) == 2)  # the actor and its child
        master.send_signal(how)
        eventually(lambda: not processes_with(mark))
        code = master.wait()
    if how == signal.SIGTERM:
        assert code == 0
        assert not cluster.exists(name)
        assert not list(tmp_path.glob("nodes-*")), "the folder is gone too"
    else:
        cluster.delete(name, "--force", "--grace-period=0")
        plane.kubectl("delete", "node", node)


@contextlib.contextmanager
def ending(process):
    """It has ended afterwards, also when the test failed."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def processes_with(mark):
    """The processes whose environment holds it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if is_alive(pid)]
