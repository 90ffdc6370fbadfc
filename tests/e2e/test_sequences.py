"""Forty generated sequences of cluster events, all at once: what holds whatever happens.

The figures are printed as a table at the end of the run.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import pytest

from e2e.sequences import MODEL, NAME, Sequence, Witness, figures
from shipfitter.cluster.client import Client
from shipfitter.cluster.connection import load_configuration
from shipfitter.cluster.observe import live_pod, live_workload
from shipfitter.cluster.survey import survey
from shipfitter.cluster.trim import own_pod
from shipfitter.decide import World, decide
from shipfitter.decide.recovery import MOST_ATTEMPTS
from shipfitter.hub import fetch_model_facts
from world.nodes.api import Watch
from world.stage import QUICK, Stage

pytestmark = [pytest.mark.plane, pytest.mark.timeout(1800)]  # all is done before the first test

SEQUENCES = 40
ROUNDS = 5
KILLED_IN = (1, 3)  # rounds in whose middle the operator is killed
ROUND_SECONDS = 8.0  # at most: what is still moving then is met by the next event
QUIET_SECONDS = 1.5
HANDS = 8
# Gaps: Ready pods that went with none Ready beside them; unexplained: those that nothing asked for.
TABLE = "Forty sequences of cluster events: a plan came back at most once, no gap is unexplained"
COLUMNS = (
    "seed", "plans", "came back", "gaps", "unexplained", "attempts", "in the end", "events",
)  # fmt: skip
# Events that end pods by themselves, or at the user's word.
TAKES_PODS = {"leave", "drain", "scale", "edit", "refusal", "dead GPU"}
WAITS = ("WaitingForGpu", "NoGpuCapacity", "DoesNotFit", "ScaledToZero", "BackedOff")


@dataclass(frozen=True)
class Ended:
    """How a sequence ended."""

    sequence: Sequence
    witness: Witness
    final: str  # "as fresh", or why it differs

    @property
    def place(self) -> str:
        return self.sequence.place

    def unexplained(self) -> list[str]:
        """Ready pods that went with nobody beside them and nothing that says why."""
        reasons = self.witness.reasons.get(self.place, set())
        return [
            pod
            for number, pod in self.witness.removed.get(self.place, [])
            if not TAKES_PODS & set(self.sequence.story[max(0, number - 1) : number + 1])
            and not reasons & {number - 1, number}
        ]


@pytest.fixture(scope="module")
def ended() -> dict[int, Ended]:
    """All sequences, from beginning to rest."""
    with Stage(timing=replace(QUICK, heartbeat_seconds=10.0)) as stage:
        stage.eventually(stage.operator_ready, what="the operator is ready")
        witness = Witness()
        group = "/apis/shipfitter.dev/v1alpha1/modeldeployments"
        engines = {"labelSelector": "shipfitter.dev/modeldeployment"}
        watches = (
            Watch(stage.api, group, witness.on_deployment),
            Watch(stage.api, "/api/v1/pods", witness.on_pod, **engines),
        )
        for watch in watches:
            watch.start()
        sequences = [Sequence(stage, seed) for seed in range(SEQUENCES)]
        try:
            play(stage, sequences, witness)
            client = Client(lambda: load_configuration({"KUBECONFIG": str(stage.plane.kubeconfig)}))
            done = {
                each.seed: Ended(each, witness, at_rest(each, witness, client))
                for each in sequences
            }
            client.close()
        finally:
            for watch in watches:
                watch.stop()
    return done


def play(stage: Stage, sequences: list[Sequence], witness: Witness) -> None:
    """Everybody begins, then one event each, round by round."""
    with ThreadPoolExecutor(HANDS) as hands:
        list(hands.map(Sequence.begin, sequences))
        calm(sequences, witness)
        for number in range(ROUNDS):
            witness.round = number
            list(hands.map(Sequence.happen, sequences))
            if number in KILLED_IN:
                stage.kill_operator()
            calm(sequences, witness)


def calm(sequences: list[Sequence], witness: Witness) -> None:
    """Everybody is at rest, or the time is over."""
    end = time.monotonic() + ROUND_SECONDS
    while time.monotonic() < end:
        if all(witness.rests(each.place, QUIET_SECONDS) for each in sequences):
            return
        time.sleep(0.2)


def at_rest(sequence: Sequence, witness: Witness, client: Client) -> str:
    """Why what runs is not what a fresh operator would decide, once nothing moves any more."""

    def said() -> str:
        return witness.rests(sequence.place, QUIET_SECONDS) and verdict(sequence, client)

    found: str = sequence.stage.eventually(said, what=f"{sequence.place} is at rest", seconds=180)
    return found


def verdict(sequence: Sequence, client: Client) -> str:
    """Empty while it is still on its way."""
    stage, place = sequence.stage, sequence.place
    body = stage.get("modeldeployment", NAME, place)
    status = body.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    if ready.get("status") != "True" and ready.get("reason") not in WAITS:
        return ""
    world = World(
        now_seconds=time.time(),
        nodes=survey(client),
        models={MODEL: model_facts(stage.hub.endpoint)},
        pods=tuple(live_pod(own_pod(raw)) for raw in stage.objects("pods", place)),
        workloads=tuple(
            live_workload("apps/v1", "Deployment", raw)
            for raw in stage.objects("deployments", place)
        ),
    )
    plan = status.get("plan")
    fresh = decide({**body, "status": {}}, replace(world, workloads=())).status.get("plan")
    if plan is None:
        return "" if fresh else "as fresh: nothing fits"
    if figures(decide(body, world).status["plan"]) != figures(plan):
        return ""  # it will change yet
    return why_kept(body, plan, fresh, world)


@cache
def model_facts(hub: str):
    """As the operator reads them."""
    return fetch_model_facts(MODEL, endpoint=hub)


def why_kept(body: dict, plan: dict, fresh: dict | None, world: World) -> str:
    """What a fresh operator would do differently, and why this one does not."""
    drifted = next(c for c in body["status"]["conditions"] if c["type"] == "Drifted")
    reasons = {
        "kept: nothing fits now": fresh is None,
        "as fresh": fresh is not None and figures(fresh) == figures(plan),
        "kept: what a refusal taught": bool(body["status"].get("recovery")),
        f"kept: {drifted['reason']}": drifted["status"] == "True",
    }
    return next((said for said, holds in reasons.items() if holds), None) or kept_because(
        body, world
    )


def kept_because(body: dict, world: World) -> str:
    """Whether it is the hysteresis: without it the gain would be taken."""
    eager = {"minimumGainPercent": 1, "stabilizationSeconds": 0}
    wish = {**body, "spec": {**body["spec"], "resize": eager}}
    changed = decide(wish, world).status["plan"]["decidedAt"] != body["status"]["plan"]["decidedAt"]
    return "kept: it would gain less than 15 %" if changed else "kept: it would gain nothing"


def row(each: Ended) -> tuple[str, ...]:
    """One line of the table."""
    witness = each.witness
    return (
        str(each.sequence.seed),
        str(len(witness.plans.get(each.place, []))),
        str(witness.alternations(each.place)),
        str(len(witness.removed.get(each.place, []))),
        str(len(each.unexplained())),
        str(witness.attempts.get(each.place, 0)),
        each.final,
        ", ".join(each.sequence.story),
    )


@pytest.mark.parametrize("seed", range(SEQUENCES), ids=lambda seed: f"sequence {seed}")
def test_whatever_happens(ended, seed, record_property):
    each = ended[seed]
    record_property(TABLE, dict(zip(COLUMNS, row(each), strict=True)))
    assert each.witness.alternations(each.place) <= 1, each.witness.plans[each.place]
    assert not each.unexplained(), f"{each.sequence.story}: {each.witness.removed[each.place]}"
    assert each.witness.attempts.get(each.place, 0) <= MOST_ATTEMPTS
    assert each.final
