"""Replicas over several nodes: what is written, what counts as a replica, what is in the way."""

from dataclasses import replace

from builders_decide import NOW, as_live, condition, manifests, mdl, serving, world
from builders_plan import LLAMA_8B, LLAMA_70B, facts, node
from shipfitter.decide import decide
from shipfitter.render.workload import template_of

MODELS = {f"hf://{name}": facts(name) for name in (LLAMA_70B, LLAMA_8B)}
PAIRS = tuple(node(f"pair-{number}", "L40S", 2) for number in (1, 2, 3, 4))
OUT_OF_MEMORY = (
    "ValueError: Free memory on device cuda:0 (36.0/44.39 GiB) on startup is less than desired GPU "
    "memory utilization (0.95, 42.17 GiB). Decrease GPU memory utilization or reduce GPU memory "
    "used by other processes."
)


def big(status=None, **spec):
    return mdl(status=status, **{"model": {"uri": f"hf://{LLAMA_70B}"}, **spec})


def seen(*nodes, **changes):
    return world(*nodes, models=MODELS, **{"leader_worker_sets": True, **changes})


class Group:
    """One that was applied and serves on the first two nodes."""

    def __init__(self, **spec):
        self.spec = spec
        first = decide(big(**spec), seen(*PAIRS))
        (written,) = manifests(first, "LeaderWorkerSet")
        self.workload = as_live(written, replicas=spec.get("replicas", 1))
        self.name = self.workload.name
        self.mark = template_of(self.workload.body)
        self.pods = self.of_group(0, "pair-1", "pair-2")
        self.status = self.decide(first.status).status

    def of_group(self, number, leader, worker, **changes):
        values = {"gpus": 2, "template_hash": self.mark, **changes}
        return (
            serving(f"{self.name}", leader, number=number, **values),
            replace(
                serving(self.name, worker, **{**values, "ready": False, "serves": False}),
                name=f"{self.name}-{number}-1",
            ),
        )

    def decide(self, status=None, spec=None, nodes=PAIRS, **changes):
        values = {"workloads": (self.workload,), "pods": self.pods, "now_seconds": NOW + 5}
        wish = big(status=status or self.status, **{**self.spec, **(spec or {})})
        return decide(wish, seen(*nodes, **{**values, **changes}))


def test_a_group_is_written_whole_with_its_scale_and_what_stands_beside_it():
    outcome = decide(big(replicas=2), seen(*PAIRS))
    (written,) = manifests(outcome, "LeaderWorkerSet")
    assert written["spec"]["leaderWorkerTemplate"]["size"] == 2
    assert written["spec"]["replicas"] == 2
    (scale,) = manifests(outcome, "LeaderWorkerSet", manager="shipfitter-scale")
    assert scale["spec"]["replicas"] == 2
    (budget,) = manifests(outcome, "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 2
    assert not manifests(outcome, "Deployment")
    assert outcome.status["summary"]["gpus"] == "2x2"


def test_a_group_at_rest_is_written_nothing():
    group = Group()
    outcome = group.decide()
    kinds = {apply.manifest["kind"] for apply in outcome.applies}
    assert "LeaderWorkerSet" in kinds, "its strategy is not there yet"
    (scale,) = manifests(outcome, "LeaderWorkerSet", manager="shipfitter-scale")
    body = {**group.workload.body, "spec": {**group.workload.body["spec"], **scale["spec"]}}
    quiet = group.decide(workloads=(replace(group.workload, body=body),))
    assert {apply.manifest["kind"] for apply in quiet.applies} == {"ConfigMap", "Service"}
    assert not quiet.deletes


def test_a_replica_is_its_leader():
    outcome = Group().decide()
    assert (outcome.status["replicas"], outcome.status["readyReplicas"]) == (1, 1)
    assert condition(outcome, "Ready")["reason"] == "Available"


def test_a_leader_that_waits_for_its_worker_is_no_replica_yet():
    group = Group()
    leader, worker = group.pods
    waiting = replace(worker, node="", gpus=0, waiting_for_gpu_since=NOW)
    outcome = group.decide(pods=(replace(leader, ready=False), waiting))
    assert outcome.status["readyReplicas"] == 0
    said = condition(outcome, "Ready")
    assert said["reason"] == "WaitingForGpu"
    assert "1 pod waits for 2 × NVIDIA-L40S" in said["message"]


def test_the_words_of_a_worker_that_is_gone_lead_to_a_smaller_plan():
    group = Group()
    leader, worker = group.pods
    gone = replace(worker, exit_code=1, termination_message=OUT_OF_MEMORY)
    outcome = group.decide(pods=(replace(leader, ready=False), worker), departed=(gone,))
    assert outcome.status["recovery"]["attempts"] == 1
    assert "Free memory on device" in outcome.status["recovery"]["lastError"]
    assert manifests(outcome, "LeaderWorkerSet")


def test_words_of_an_earlier_plan_are_not_heard_again():
    group = Group()
    leader, worker = group.pods
    gone = replace(worker, exit_code=1, termination_message=OUT_OF_MEMORY, template_hash="earlier")
    outcome = group.decide(pods=(replace(leader, ready=False), worker), departed=(gone,))
    assert "recovery" not in outcome.status


def test_words_of_a_group_that_serves_again_are_not_heard_again():
    group = Group()
    gone = replace(group.pods[1], exit_code=1, termination_message=OUT_OF_MEMORY)
    assert "recovery" not in group.decide(departed=(gone,)).status


def test_another_group_that_serves_hides_no_words():
    group = Group(replicas=2)
    (leader, worker), other = group.of_group(1, "pair-3", "pair-4"), group.pods
    gone = replace(worker, exit_code=1, termination_message=OUT_OF_MEMORY)
    outcome = group.decide(pods=(*other, replace(leader, ready=False)), departed=(gone,))
    assert outcome.status["recovery"]["attempts"] == 1


def test_without_the_kind_nothing_is_made_and_the_way_out_is_said():
    outcome = decide(big(), seen(*PAIRS, leader_worker_sets=False))
    assert outcome.applies == ()
    said = condition(outcome, "Ready")
    assert said["reason"] == "LeaderWorkerSetMissing"
    assert "install its controller" in said["message"]


def test_without_the_kind_a_later_model_serves_and_the_first_is_told_of():
    model = {"uri": f"hf://{LLAMA_70B}", "alternatives": [{"uri": f"hf://{LLAMA_8B}"}]}
    outcome = decide(big(model=model), seen(*PAIRS, leader_worker_sets=False))
    assert manifests(outcome, "Deployment")
    said = condition(outcome, "Planned")
    assert (said["status"], said["reason"]) == ("True", "LeaderWorkerSetMissing")
    assert "over 2 nodes is preferred" in said["message"]


def test_a_group_whose_kind_goes_away_is_kept_and_nothing_is_written():
    group = Group()
    outcome = group.decide(leader_worker_sets=False, workloads=())
    assert (outcome.applies, outcome.deletes) == ((), ())
    assert condition(outcome, "Planned")["reason"] == "LeaderWorkerSetMissing"
    assert outcome.status["plan"]["variants"][0]["nodesPerReplica"] == 2


def test_a_claim_that_one_node_mounts_keeps_a_replica_on_it():
    outcome = decide(
        big(storage={"cacheClaim": "hub"}), seen(*PAIRS, claim_access_modes=("ReadWriteOnce",))
    )
    said = condition(outcome, "Ready")
    assert said["reason"] == "DoesNotFit"
    assert "ReadWriteMany" in said["message"]


def test_nodes_that_are_not_free_are_waited_for_and_looked_at_again():
    busy = tuple(replace(each, used_gpus=1) for each in PAIRS[1:])
    outcome = decide(big(), seen(PAIRS[0], *busy))
    assert outcome.applies == ()
    assert condition(outcome, "Ready")["reason"] == "WaitingForGpu"
    assert outcome.requeue_after_seconds


def test_a_group_that_changes_is_rolling_until_its_pods_are_of_the_new_template():
    group = Group()
    old = tuple(replace(pod, template_hash="an earlier one") for pod in group.pods)
    assert condition(group.decide(pods=old), "Reconciling")["status"] == "True"
