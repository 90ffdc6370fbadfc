"""A runtime on the API server in memory, and a small `decide` for it."""

import threading
import time

from shipfitter.cluster.queue import Key
from shipfitter.decide.world import Outcome
from unit.cluster.builders import conditions, deployment, model_deployment, scale

KEY = Key("team", "llama")
FACTS = {"uri": "pvc://claim/model"}  # no hub is asked: what is not there is told, not fetched


def body_of(name="llama", **changes):
    return {**model_deployment(name, model=FACTS, replicas=1), **changes}


class Decider:
    """Gives each deployment one GPU where one is free; keeps every world it saw."""

    def __init__(self):
        self.worlds = []
        self.lock = threading.Lock()
        self.at_once = 0
        self.most_at_once = 0
        self.fails = 0

    def __call__(self, body, world):
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.worlds.append((body["metadata"]["name"], world))
            fails, self.fails = self.fails, max(0, self.fails - 1)
        try:
            if fails:
                raise RuntimeError("on purpose")
            return self.outcome(body, world)
        finally:
            with self.lock:
                self.at_once -= 1

    def outcome(self, body, world):
        name = body["metadata"]["name"]
        free = sum(node.allocatable_gpus - node.used_gpus for node in world.nodes)
        placed = any(workload.name == f"{name}-v" for workload in world.workloads)
        if not placed and not free:
            return Outcome(
                status={"conditions": conditions("DoesNotFit", "False")}, requeue_after_seconds=300
            )
        applies = (scale(body["spec"]["replicas"], name), deployment(owner=name))
        return Outcome(applies=applies, status={"conditions": conditions("Fits")})

    def seen(self, name="llama"):
        with self.lock:
            return [world for each, world in self.worlds if each == name]


def create(api, runtime, name="llama", **changes):
    body = api.put("modeldeployments", body_of(name, **changes))
    runtime.noticed(body, deleted=False)
    return body


def reason(api, name="llama"):
    status = api.get("modeldeployments", name, "team").get("status") or {}
    return status.get("conditions", [{"reason": ""}])[0]["reason"]


def at_rest(runtime, decider):
    """Nothing is due and nothing in work, and stays so for a moment."""
    calm = time.monotonic()
    seen = len(decider.worlds)
    while time.monotonic() - calm < 0.5:
        if runtime.queue.busy or runtime.queue.waiting or len(decider.worlds) != seen:
            calm, seen = time.monotonic(), len(decider.worlds)
        time.sleep(0.02)


def events(api):
    with api.lock:
        return [body for (plural, _, _), body in api.objects.items() if plural == "events"]
