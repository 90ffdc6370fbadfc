"""Plans for generated clusters, with their pods placed by the real scheduler."""

import json
import time
from functools import cache
from itertools import count, islice
from random import Random
from typing import Any

import pytest

from builders_clusters import Machine, capacities, cluster
from builders_decide import mdl, world
from builders_plan import facts
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.inventory import NodeCapacity, Pool
from shipfitter.core.node_classes import usable_bytes
from shipfitter.decide import Outcome, decide
from shipfitter.decide.capacity import pools_for
from world.controlplane import Plane

pytestmark = pytest.mark.plane
MODELS = ("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B")
CLUSTERS = 20


@cache
def story(seed: int) -> tuple[tuple[Machine, ...], dict[str, Any], Outcome]:
    """A cluster by resources, a wish for one or two replicas, and what was decided."""
    # Nodes of other names than before: of a name it knows the controller takes the old heartbeat.
    machines = tuple(each for each in cluster(seed, prefix=f"s{seed}-") if not each.slices)
    chance = Random(seed)
    model = chance.choice(MODELS)
    body = mdl(
        model={"uri": f"hf://{model}"},
        replicas=chance.choice((1, 2)),
        gpus={"allowShared": chance.random() < 0.3},
    )
    seen = world(*capacities(machines), models={f"hf://{model}": facts(model)})
    return machines, body, decide(body, seen)


@cache
def sample() -> tuple[int, ...]:
    """The first clusters with a plan that has room for a replica now."""
    return tuple(islice((seed for seed in count() if has_room(seed)), CLUSTERS))


def has_room(seed: int) -> bool:
    machines, body, outcome = story(seed)
    return bool(outcome.applies) and fitting(machines, body, outcome)[1] > 0


def fitting(
    machines: tuple[Machine, ...], body: dict[str, Any], outcome: Outcome
) -> tuple[Pool, int]:
    """The planned pool, and how many of the replicas it has room for."""
    assert outcome.status is not None
    planned = outcome.status["plan"]["variants"][0]
    found = pools_for(ModelDeployment.parse(body), world(*capacities(machines)))
    (pool,) = (pool for pool in found if pool.name == planned["pool"])
    replicas = pool.replicas_that_fit(planned["gpusPerReplica"])
    return pool, min(body["spec"]["replicas"], replicas)


@pytest.fixture(scope="module")
def plane():
    with Plane() as started:
        yield started


@pytest.mark.parametrize("number", range(CLUSTERS), ids=lambda number: f"cluster {number}")
def test_a_plans_pods_are_scheduled_where_the_plan_says(plane, number):
    seed = sample()[number]
    machines, body, outcome = story(seed)
    place = f"c{number}"
    try:
        furnish(plane, place, machines)
        apply(plane, place, outcome)
        check(plane, place, machines, body, outcome)
    finally:
        clear(plane, place, machines)


def furnish(plane: Plane, place: str, machines: tuple[Machine, ...]) -> None:
    """Nodes as they are, and pods that hold what is used."""
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": place}})
    account = f"/api/v1/namespaces/{place}/serviceaccounts/default"
    eventually(lambda: exists(plane, account))
    for machine in machines:
        raw = machine.node
        metadata = {"name": machine.name, "labels": raw["metadata"]["labels"]}
        spec = {key: value for key, value in raw["spec"].items() if value}
        plane.request("POST", "/api/v1/nodes", {"metadata": metadata, "spec": spec})
        sizes = {**raw["status"]["allocatable"], "pods": "110", "ephemeral-storage": "2Ti"}
        status = {
            "allocatable": sizes,
            "capacity": sizes,
            "conditions": raw["status"]["conditions"],
        }
        plane.kubectl(
            *("patch", "node", machine.name, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": status})),
        )
        for resource, held in machine.used.items():
            if held:
                occupy(plane, place, machine.name, resource, held)


def occupy(plane: Plane, place: str, node: str, resource: str, held: int) -> None:
    name = f"{node}-{resource.rpartition('/')[2].replace('.', '-')}"
    container = {"name": "c", "image": "c", "resources": {"limits": {resource: str(held)}}}
    pod = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}
    plane.request("POST", f"/api/v1/namespaces/{place}/pods", pod)


def apply(plane: Plane, place: str, outcome: Outcome) -> None:
    """As the operator would, but that nobody owns it: there is no ModelDeployment here."""
    whole: dict[str, Any] = {}
    for each in outcome.applies:
        manifest = dict(each.manifest)
        metadata = {k: v for k, v in manifest["metadata"].items() if k != "ownerReferences"}
        manifest["metadata"] = {**metadata, "namespace": place}
        if each.manager == "shipfitter":
            whole[manifest["kind"]] = manifest
    text = "\n---\n".join(json.dumps(manifest) for manifest in whole.values())
    plane.kubectl("apply", "--server-side", "-n", place, "-f", "-", stdin=text)


def check(
    plane: Plane,
    place: str,
    machines: tuple[Machine, ...],
    body: dict[str, Any],
    outcome: Outcome,
) -> None:
    pool, replicas = fitting(machines, body, outcome)
    bound = eventually(lambda: placed(plane, place, replicas), else_say=lambda: why(plane, place))
    members = {node.name for node in pool.nodes}
    if pool.selector_is_exact:
        assert set(bound) <= members
    for name in bound:
        assert offered(capacities(machines), name, pool.resource_name) >= pool.total_bytes


def offered(nodes: tuple[NodeCapacity, ...], name: str, resource: str) -> int:
    (node,) = (n for n in nodes if (n.name, n.resource_name) == (name, resource))
    return usable_bytes(node)


def placed(plane: Plane, place: str, wanted: int) -> list[str]:
    """The nodes of the engine's pods, once as many as are wanted have one."""
    selector = "labelSelector=shipfitter.dev%2Fserves%3Dtrue"
    items = plane.request("GET", f"/api/v1/namespaces/{place}/pods?{selector}")["items"]
    bound = [pod["spec"]["nodeName"] for pod in items if pod["spec"].get("nodeName")]
    return bound if len(bound) >= wanted else []


def why(plane: Plane, place: str) -> str:
    """What the scheduler says of pods without a node."""
    messages = "{.items[*].status.conditions[*].message}"
    return plane.kubectl("get", "pods", "-n", place, "-o", f"jsonpath={messages}")


def clear(plane: Plane, place: str, machines: tuple[Machine, ...]) -> None:
    path = f"/api/v1/namespaces/{place}"
    plane.kubectl("delete", "deployment", "--all", "-n", place, "--wait=false")
    plane.kubectl("delete", "pods", "--all", "-n", place, "--force", "--grace-period=0")
    plane.request("DELETE", path)
    for machine in machines:
        plane.request("DELETE", f"/api/v1/nodes/{machine.name}")


def exists(plane: Plane, path: str) -> bool:
    try:
        return bool(plane.request("GET", path))
    except Exception:
        return False


def eventually(look, *, else_say=str, within_seconds: float = 30.0):
    deadline = time.monotonic() + within_seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not in time: {else_say()}"
        time.sleep(0.1)
