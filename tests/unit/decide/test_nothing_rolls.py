"""Nothing rolls without a reason: what happens around a deployment that leaves its pods alone."""

from dataclasses import replace

import pytest

from builders_plan import LLAMA_8B, facts, node
from miniature import Cluster
from shipfitter.core.calibrate import Learning, key_for
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.estimate import Estimate, sum_of
from shipfitter.core.inventory import CapacitySource
from shipfitter.decide import choice, keeping
from shipfitter.render import deployment, labels
from shipfitter.units import GIB

EXPLICIT = {  # what is assumed anyway
    "gpus": {"kvCacheDtype": "auto", "allowShared": False, "perReplica": {"max": 8}},
    "workload": {"prefer": "Balanced", "sizeFor": "Typical"},
    "rollout": {"mode": "Auto"},
    "template": {},
}


def other_constants(patch, cluster):
    """A release that counts on 200 MB more for the engine."""
    del cluster
    solve = choice.solve_bare

    def pessimistic(intent, pools):
        more = sum_of((intent.engine.extra_bytes, Estimate.exactly(200_000_000)))
        return solve(replace(intent, engine=replace(intent.engine, extra_bytes=more)), pools)

    patch.setattr(choice, "solve_bare", pessimistic)


def plans_refused(patch, cluster):
    """A release by whose arithmetic the engines that serve could not have started."""
    del cluster
    patch.setattr(keeping, "holds", lambda sizing, pool: None)


def other_renderer(patch, cluster):
    """A release that writes pods in another way."""
    del cluster
    template = deployment.pod_template

    def newer(*args, **more):
        made = template(*args, **more)
        made["metadata"]["labels"]["release"] = "newer"
        return made

    patch.setattr(deployment, "pod_template", newer)
    patch.setattr(labels, "QUEUE_LABELS", ("another",))


def defaults_written_out(patch, cluster):
    """A newer CRD stores defaults that were absent."""
    del patch
    cluster.spec |= EXPLICIT


def lists_in_another_order(patch, cluster):
    """Whoever applies the object sorts its lists; the API server lists nodes as it likes."""
    del patch
    cluster.nodes.reverse()
    cluster.spec["gpus"] = {"products": cluster.spec["gpus"]["products"][::-1]}


def calibration_noise(patch, cluster):
    """Engines of other deployments taught that there is 1 % less."""
    del patch
    for variant, pool in zip(cluster.variants, ("NVIDIA-L40S", "NVIDIA-A100"), strict=True):
        learning = Learning(residual_bytes=-GIB // 3, spread_bytes=GIB // 20, observations=9)
        assert variant["gpuProduct"].startswith(pool)
        engine = EngineSettings(version=EngineVersion.parse("0.33.0"))
        cluster.learnt[key_for(facts(LLAMA_8B), engine, variant["gpuProduct"])] = learning


def status_lost(patch, cluster):
    """The object was restored from a backup, which holds no status."""
    del patch
    cluster.lose_status()


def agents_fall_silent(patch, cluster):
    """Labels tell now what was measured before."""
    del patch
    cluster.nodes = [replace(n, source=CapacitySource.STALE) for n in cluster.nodes]


def a_driver_reserves_more(patch, cluster):
    """An upgraded driver leaves half a per cent less."""
    del patch
    cluster.nodes = [
        replace(
            n,
            devices=tuple(replace(d, total_bytes=d.total_bytes * 995 // 1000) for d in n.devices),
        )
        for n in cluster.nodes
    ]


EVENTS = (
    other_constants, plans_refused, other_renderer, defaults_written_out, lists_in_another_order,
    calibration_noise, status_lost, agents_fall_silent, a_driver_reserves_more,
)  # fmt: skip


@pytest.mark.parametrize("happens", EVENTS, ids=lambda event: event.__doc__.strip(" ."))
def test_no_pod_changes(happens, monkeypatch):
    cluster = Cluster(
        [node("a", "L40S", 2), node("b", "A100-80GB", 1)],
        {
            "replicas": 3,
            "gpus": {"products": ["NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB"]},
            "resize": {"stabilizationSeconds": 60},
        },
    )
    cluster.settle()
    assert cluster.split == {"L40S": 2, "A100": 1}
    pods, bodies = cluster.pod_names(), dict(cluster.bodies)
    happens(monkeypatch, cluster)
    cluster.wait(10_000)
    assert cluster.pod_names() == pods
    assert {n: b["spec"]["template"] for n, b in cluster.bodies.items()} == {
        n: b["spec"]["template"] for n, b in bodies.items()
    }
    assert not cluster.events, "and nothing is said to have changed"


def test_an_autoscaler_that_changes_its_mind_under_another_renderer_rolls_nobody(monkeypatch):
    cluster = Cluster([node("a", "L40S", 2), node("b", "A100-80GB", 2)], {"replicas": 2})
    cluster.settle()
    pods = cluster.pod_names()
    other_renderer(monkeypatch, cluster)
    for replicas in (4, 3, 2, 4, 2):
        cluster.scale(replicas)
        cluster.settle()
        assert pods <= cluster.pod_names()
    assert cluster.pod_names() == pods


def test_what_changed_and_why_is_said():
    cluster = Cluster([node("a", "L40S", 2)], {"replicas": 1})
    cluster.settle()
    seqs = cluster.variants[0]["maxNumSeqs"]
    cluster.spec["workload"] = {"maxNumSeqs": {"preferred": 32}}
    cluster.settle()
    (told,) = cluster.events
    assert f"max_num_seqs {seqs} → 32" in told
    assert told.endswith(": the spec or its model changed")
    assert cluster.status["plan"]["reason"] == told
