"""Laws of capacity and plans over 300 clusters of every kind."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from builders_clusters import LIES, Machine, capacities, cluster, lying
from builders_plan import LLAMA_70B, wish
from shipfitter.core.inventory import NodeCapacity, pools
from shipfitter.core.node_classes import is_available, usable_devices
from shipfitter.core.plan import Plan, solve
from shipfitter.core.robust import close

SEEDS = range(300)
CHUNKS = [SEEDS[start : start + 50] for start in range(0, len(SEEDS), 50)]
MODELS = ("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", LLAMA_70B)

over_all = pytest.mark.parametrize(
    "seeds", CHUNKS, ids=lambda seeds: f"clusters {seeds[0]} to {seeds[-1]}"
)


def views(machines: tuple[Machine, ...]) -> list[tuple[NodeCapacity, ...]]:
    """What a deployment by resource sees, and one by claim."""
    seen = capacities(machines)
    return [tuple(each for each in seen if each.by_claim is by_claim) for by_claim in (False, True)]


def test_the_clusters_are_of_every_kind():
    seen = [each for seed in SEEDS for each in capacities(cluster(seed))]
    assert {each.sharing for each in seen} == {"none", "time-slicing"}
    assert {str(each.source) for each in seen} >= {"Measured", "Label", "ResourceSlice"}
    assert any(device.mig_profile for each in seen for device in each.devices)
    assert any(len({device.product for device in each.devices}) > 1 for each in seen)
    assert any(not each.ready for each in seen)
    assert any(not each.schedulable for each in seen)
    assert any(each.taints for each in seen)
    assert any(0 < each.used_gpus < each.allocatable_gpus for each in seen)


@over_all
def test_every_gpu_is_counted_once(seeds):
    for seed in seeds:
        for nodes in views(cluster(seed)):
            members = Counter(
                (node.name, pool.resource_name) for pool in pools(nodes) for node in pool.nodes
            )
            offered = {
                (node.name, node.resource_name): free_gpus(node)
                for node in nodes
                if is_available(node) and usable_devices(node)
            }
            assert set(members.values()) <= {1}, seed
            assert set(members) == set(offered), seed
            counted = {
                (node.name, pool.resource_name): node.free_gpus
                for pool in pools(nodes)
                for node in pool.nodes
            }
            assert counted == offered, seed


def free_gpus(node: NodeCapacity) -> int:
    healthy = sum(device.healthy and device.total_bytes > 0 for device in node.devices)
    return max(0, min(node.allocatable_gpus, healthy * node.replicas_per_gpu) - node.used_gpus)


@over_all
def test_a_node_that_lies_moves_no_other_pools_bytes(seeds):
    """They are as with its true word, or as without it, but for what driver branches differ by."""
    for seed in seeds:
        chance = Random(-seed)
        honest = cluster(seed)
        liars = [each for each in honest if each.gpu_node and kin(each, honest) >= 3]
        if not liars:
            continue
        liar = chance.choice(liars)
        told = lying(liar, chance.choice(LIES))
        lied = tuple(told if each is liar else each for each in honest)
        others = tuple(each for each in honest if each is not liar)
        for with_it, without, told_so in zip(
            views(honest), views(others), views(lied), strict=True
        ):
            truths = [bytes_of_others(nodes, liar) for nodes in (with_it, without)]
            for place, found in bytes_of_others(told_so, liar).items():
                assert any(close(found, truth[place]) for truth in truths), (seed, place)


def kin(machine: Machine, machines: tuple[Machine, ...]) -> int:
    """Nodes of the same kind whose agents tell; of two, nobody knows which lies."""
    kind, _, _ = machine.name.partition("-")
    return sum(
        each.name.startswith(f"{kind}-") and each.gpu_node is not None and is_up(each)
        for each in machines
    )


def is_up(machine: Machine) -> bool:
    return all(is_available(each) for each in capacities((machine,)))


def bytes_of_others(nodes: tuple[NodeCapacity, ...], liar: Machine) -> dict[tuple[str, str], int]:
    return {
        (node.name, pool.resource_name): pool.total_bytes
        for pool in pools(nodes)
        for node in pool.nodes
        if node.name != liar.name
    }


@over_all
def test_more_free_gpus_never_turn_a_plan_into_none(seeds):
    for seed in seeds:
        chance = Random(seed + 1_000)
        intent = wish(chance.choice(MODELS), allow_shared=chance.random() < 0.3)
        machines = cluster(seed)
        (nodes, by_claim) = views(machines)
        for seen in (nodes, by_claim):
            if not isinstance(solve(intent, pools(seen)), Plan):
                continue
            freed = tuple(replace(node, used_gpus=0) for node in seen)
            assert isinstance(solve(intent, pools(freed)), Plan), seed
            more = (*seen, *(twin(node) for node in seen if node.ready and node.schedulable))
            assert isinstance(solve(intent, pools(more)), Plan), seed


def twin(node: NodeCapacity) -> NodeCapacity:
    """Another node of the same kind, idle."""
    return replace(node, name=f"{node.name}-twin", used_gpus=0)
