"""The API server, its store and the operator itself fail: the end is as if nothing had happened."""

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import pytest

from e2e.sequences import figures
from e2e.stories import (
    L40S,
    LLAMA_8B,
    flag,
    measured,
    model_deployment,
    serve,
    stays,
    uids,
)
from world.controlplane.faults import Faults
from world.stage import CONTROL_NODE, NAMESPACE, QUICK, Stage, is_ready

pytestmark = [pytest.mark.plane, pytest.mark.timeout(600)]

OWNER = "shipfitter.dev/modeldeployment"
KINDS = ("deployments", "services", "configmaps", "poddisruptionbudgets", "replicasets", "pods")
MOST_LIVES = 18


@pytest.fixture(scope="module")
def world():
    """One behind a proxy that fails as told; what dies is started again at once."""
    with Stage(timing=replace(QUICK, backoff_seconds=0.02), faulty=True) as started:
        started.eventually(started.operator_ready, what="the operator is ready")
        yield started


@pytest.fixture
def stage(world):
    """Nothing fails yet; two GPUs and one to spare."""
    world.faulty.well()
    world.clear()
    world.add_gpu_node("l40s-1", L40S, 3)
    measured(world, "l40s-1")
    yield world
    world.faulty.well()


@contextmanager
def going_wrong(stage, **how):
    stage.faulty.faults = Faults(**how)
    try:
        yield stage.faulty.faults
    finally:
        stage.faulty.well()


def operator_pid(stage):
    """The operator's process, without asking the API server."""
    running = (
        pod.containers[0].pid
        for pod in stage.emulator.pods_on(CONTROL_NODE)
        if pod.path.startswith(f"/api/v1/namespaces/{NAMESPACE}/pods/shipfitter-operator")
    )
    return next(running, None)


def runs_as(stage, name, seqs, *, replicas=1):
    """All replicas serve with so many sequences, and nothing else is left."""
    pods = stage.pods(name)
    return (
        len(pods) == replicas
        and all(is_ready(pod) and flag(pod, "max-num-seqs") == str(seqs) for pod in pods)
        and stage.ready(name)
    )


def shape(stage, name):
    """What exists of a deployment, without names of pods, times and counters."""
    found = {}
    for kind in KINDS[:4]:
        for body in stage.objects(kind, selector=f"{OWNER}={name}"):
            metadata = body["metadata"]
            spec = dict(body.get("spec") or {})
            for given_by_the_server in ("clusterIP", "clusterIPs"):
                spec.pop(given_by_the_server, None)
            if "template" in spec:
                spec["template"]["metadata"].pop("annotations")  # a digest of the rest
            known = {"labels": metadata["labels"], "spec": spec, "data": body.get("data")}
            found[f"{kind}/{metadata['name']}"] = json.dumps(known, sort_keys=True)
    status = stage.status(name)
    found["plan"] = figures(
        status["plan"]
    )  # what an observation lost with its operator cannot move
    for each in status["conditions"]:
        found[each["type"]] = f"{each['status']} {each['reason']} {each['message']}"
    return {
        key.replace(name, "NAME"): text.replace(name, "NAME") for key, text in found.items()
    } | {"replicasets": len(stage.objects("replicasets", selector=f"{OWNER}={name}"))}


WISH = {"workload": {"maxNumSeqs": {"preferred": 48}}}
OTHER = {"workload": {"maxNumSeqs": {"preferred": 32}}, "replicas": 2}


def live_through(stage, name):
    """The whole of a life: made, changed while it serves, scaled."""
    # An argument of its own: otherwise the second one would be planned with what the first taught.
    stage.apply(
        model_deployment(name, LLAMA_8B, engine={"args": [f"--chat-template={name}"]}, **WISH)
    )
    stage.eventually(lambda: runs_as(stage, name, 48), what=f"{name} serves", seconds=600)
    stage.change(name, OTHER)
    stage.eventually(
        lambda: runs_as(stage, name, 32, replicas=2), what=f"{name} is changed", seconds=600
    )


@pytest.mark.timeout(1500)
def test_killed_after_every_single_write_it_ends_the_same(stage):
    """Each life of the operator makes one step; the answer to it never comes back."""
    live_through(stage, "unharmed")
    stage.eventually(lambda: calibrated(stage, "unharmed"))
    want = shape(stage, "unharmed")
    stage.delete("modeldeployment", "unharmed")
    stage.eventually(lambda: not left(stage, "unharmed"), what="the first one is gone")
    steps = []

    def die(request):
        pid = operator_pid(stage)
        if pid is None or len(steps) >= MOST_LIVES:
            return False
        steps.append(request)
        os.kill(pid, signal.SIGKILL)
        return True

    with going_wrong(stage, after_step=die):
        live_through(stage, "harmed")
    stage.eventually(stage.operator_ready, what="the operator is back")
    stage.eventually(lambda: calibrated(stage, "harmed"))
    written = {request.path.rpartition("/")[0].rpartition("/")[2] for request in steps}
    assert len(steps) >= 8, steps
    assert {"deployments", "services", "configmaps"} <= written
    found = shape(stage, "harmed")
    assert {key: (found[key], want[key]) for key in want if found.get(key) != want[key]} == {}


def calibrated(stage, name):
    """The last thing that is written of a rollout."""
    return (
        stage.condition(name, "Calibrated")
        and stage.condition(name, "Reconciling").get("status") == "False"
    )


def left(stage, name):
    """Objects of a deployment that still exist."""
    return [body for kind in KINDS for body in stage.objects(kind, selector=f"{OWNER}={name}")]


def test_requests_that_fail_by_chance_only_take_longer(stage):
    chance = Random(7)

    def refuse(request):
        if request.watches or chance.random() > 0.08:
            return None
        return chance.choice((409, 429, 500, 503))

    with going_wrong(stage, refuse=refuse) as faults:
        live_through(stage, "llama")
        assert len(faults.seen) > 20
    assert len(stage.objects("replicasets")) == 2, "it rolled more than once"
    assert stays(lambda: uids(stage.pods("llama")))


def test_a_slow_server_and_watches_that_end_at_every_turn_hide_nothing(stage):
    serve(stage, "llama", LLAMA_8B, **WISH)
    with going_wrong(stage, delay_seconds=0.3):
        assert stage.faulty.cut_watches() > 5
        stage.change("llama", OTHER)
        stage.eventually(lambda: runs_as(stage, "llama", 32, replicas=2), what="it is changed")
    gone = iter(range(12))

    def expired(request):
        return 410 if request.watches and next(gone, None) is not None else None

    before = uids(stage.pods("llama"))
    with going_wrong(stage, refuse=expired):
        stage.faulty.cut_watches()
        stage.eventually(lambda: next(gone, None) is None, what="all were told to list again")
    assert stays(lambda: uids(stage.pods("llama"))) == before
    stage.plane.kubectl("scale", "mdl", "llama", "--replicas=1")
    stage.eventually(lambda: runs_as(stage, "llama", 32), what="what came after is seen")


def test_a_store_that_hangs_and_a_server_that_restarts_end_no_pod(stage):
    serve(stage, "llama", LLAMA_8B, **WISH)
    before, operator = uids(stage.pods("llama")), operator_pid(stage)
    with stage.plane.paused("etcd", seconds=20):
        pass
    stage.plane.restart("kube-apiserver")
    stage.eventually(stage.operator_ready, what="the operator acts again")
    assert uids(stage.pods("llama")) == before
    assert operator_pid(stage) == operator, "weather is no reason to end"
    stage.change("llama", OTHER)
    stage.eventually(lambda: runs_as(stage, "llama", 32, replicas=2), what="it is changed")


def test_of_two_operators_one_acts_and_one_that_hung_ends(stage):
    serve(stage, "llama", LLAMA_8B, **WISH)
    pods, first = uids(stage.pods("llama")), operator_pid(stage)
    scale = ("scale", "deployment/shipfitter-operator", "-n", NAMESPACE)
    selector = "app.kubernetes.io/component=operator"
    try:
        stage.plane.kubectl(*scale, "--replicas=2")

        def states():
            operators = stage.objects("pods", NAMESPACE, selector=selector)
            return sorted(is_ready(each) for each in operators)

        stage.eventually(lambda: states() == [False, True], what="one acts, one waits")
        os.kill(first, signal.SIGSTOP)
        holder = lease_holder(stage)
        stage.eventually(lambda: lease_holder(stage) != holder, what="the other one takes over")
        stage.change("llama", OTHER)
        stage.eventually(lambda: runs_as(stage, "llama", 32, replicas=2), what="it is changed")
        os.kill(first, signal.SIGCONT)
        stage.eventually(lambda: not alive(first), what="the first one sees that, and ends")
    finally:
        if alive(first):
            os.kill(first, signal.SIGCONT)
        stage.plane.kubectl(*scale, "--replicas=1")
    stage.eventually(stage.operator_ready, what="one operator is left")
    assert len(stage.objects("replicasets")) == 2, "both acted"
    assert not pods & uids(stage.pods("llama"))


def lease_holder(stage):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/shipfitter-operator"
    return stage.api.get(path)["spec"]["holderIdentity"]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_deleted_in_the_middle_of_everything_nothing_is_left_and_nobody_else_is_touched(stage):
    serve(stage, "stays", LLAMA_8B)
    before = uids(left(stage, "stays"))
    chance = Random(3)

    def refuse(request):
        return 500 if request.writes and chance.random() < 0.3 else None

    namespace = "goes-whole"
    stage.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    with going_wrong(stage, refuse=refuse):
        stage.apply(model_deployment("goes", LLAMA_8B, replicas=2))
        stage.apply(model_deployment("goes-too", LLAMA_8B), namespace)
        stage.eventually(lambda: stage.pods("goes"), what="it is being made")
        stage.delete("modeldeployment", "goes")
        stage.api.delete(f"/api/v1/namespaces/{namespace}")
        stage.kill_operator()
        stage.eventually(lambda: not left(stage, "goes"), what="nothing of it is left")
    stage.eventually(
        lambda: (
            not any(
                each["metadata"]["name"] == namespace
                for each in stage.api.get("/api/v1/namespaces")["items"]
            )
        ),
        what="the namespace is gone",
    )
    stage.eventually(stage.operator_ready, what="the operator is back")
    assert stays(lambda: uids(left(stage, "stays"))) == before
    assert "a mistake of ours" not in stage.operator_log(400)
