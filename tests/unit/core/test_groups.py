"""Replicas over several nodes: when they are planned, how they are laid out, what is in the way."""

from dataclasses import replace

import pytest

from builders_plan import LLAMA_8B, LLAMA_70B, pool, wish
from shipfitter.core.inventory import PoolNode
from shipfitter.core.layout import ParallelLayout
from shipfitter.core.plan import NoFit, Plan, solve

QWEN_235B = "Qwen/Qwen3-235B-A22B"


def spanning(*models, **changes):
    return wish(*models, **{"spans_nodes": True, **changes})


def with_layout(intent, **changes):
    return replace(intent, engine=replace(intent.engine, layout=ParallelLayout(**changes)))


def layout_of(planned):
    assert isinstance(planned, Plan), str(planned)
    layout = planned.variants[0].sizing.settings.layout
    return (layout.nodes, layout.tensor_parallel_size, layout.pipeline_parallel_size)


def only_free(count, a_pool):
    nodes = tuple(
        PoolNode(name=node.name, free_gpus=node.free_gpus if number < count else 0)
        for number, node in enumerate(a_pool.nodes)
    )
    return replace(a_pool, nodes=nodes)


LAYOUTS = {  # wish, pool, (nodes, tensor parallel, pipeline parallel)
    "tensor parallel fills the node, stages go over nodes": (
        spanning(LLAMA_70B), pool("L40S", 2, nodes=2), (2, 2, 2),
    ),
    "one node that holds it is enough, however many there are": (
        spanning(LLAMA_70B), pool("L40S", 4, nodes=4), (1, 4, 1),
    ),
    "as many nodes as it takes, and no more": (
        spanning(LLAMA_70B), pool("L40S", 1, nodes=8), (4, 1, 4),
    ),
    "a larger maximum allows more": (
        spanning(QWEN_235B, max_gpus_per_replica=16), pool("L40S", 8, nodes=3), (2, 8, 2),
    ),
    "of six GPUs the four that heads divide by": (
        spanning(QWEN_235B, max_gpus_per_replica=8), pool("A100-80GB", 6, nodes=2), (2, 4, 2),
    ),
    "a pinned size inside a node leaves the rest to stages": (
        spanning(LLAMA_70B, tensor_parallel_size=1), pool("L40S", 2, nodes=2), (2, 1, 4),
    ),
    "a pinned size that no node has goes over nodes": (
        spanning(LLAMA_70B, tensor_parallel_size=8), pool("L40S", 4, nodes=2), (2, 8, 1),
    ),
    "pinned stages and ranks together": (
        with_layout(spanning(LLAMA_8B, tensor_parallel_size=2), pipeline_parallel_size=2),
        pool("L40S", 2, nodes=2),
        (2, 2, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYOUTS)
def test_the_layout_over_nodes(case):
    intent, offered, want = LAYOUTS[case]
    assert layout_of(solve(intent, (offered,))) == want


def test_a_single_node_of_another_pool_wins_over_a_group_of_fewer_gpus():
    planned = solve(spanning(LLAMA_70B), (pool("H100", 1, nodes=4), pool("L40S", 8)))
    assert layout_of(planned)[0] == 1


def test_the_first_model_over_nodes_wins_over_a_later_one_on_a_node():
    planned = solve(spanning(LLAMA_70B, LLAMA_8B), (pool("L40S", 2, nodes=2),))
    assert layout_of(planned) == (2, 2, 2)


def test_the_weights_of_a_group_are_those_of_its_heaviest_stage():
    two = solve(spanning(LLAMA_70B), (pool("L40S", 2, nodes=2),))
    four = solve(wish(LLAMA_70B), (pool("L40S", 4),))
    assert isinstance(two, Plan)
    assert isinstance(four, Plan)
    grouped, alone = (each.variants[0].sizing for each in (two, four))
    assert grouped.budget.weights_bytes == pytest.approx(alone.budget.weights_bytes, rel=0.05)
    assert "over 2 nodes" in two.why


def test_a_replica_of_whole_nodes_counts_nodes():
    planned = solve(spanning(LLAMA_70B), (pool("L40S", 2, nodes=5),))
    assert isinstance(planned, Plan)
    assert planned.variants[0].sizing.replicas_now == 2


REFUSED = {  # wish, pool, reason, words
    "more GPUs than the user allows": (
        spanning(QWEN_235B), pool("L40S", 8, nodes=2),
        "DoesNotFit", "gpus.perReplica.max 16: Qwen3-235B-A22B on 16 × NVIDIA-L40S over 2 nodes",
    ),
    "no LeaderWorkerSet in the cluster": (
        wish(LLAMA_70B), pool("L40S", 2, nodes=2),
        "LeaderWorkerSetMissing", "leaderworkerset.x-k8s.io/v1",
    ),
    "a claim that one node can mount": (
        wish(LLAMA_70B, one_node_because="the claim is ReadWriteOnce"), pool("L40S", 2, nodes=2),
        "DoesNotFit", "the claim is ReadWriteOnce",
    ),
    "too few whole nodes free": (
        spanning(LLAMA_70B), only_free(1, pool("L40S", 2, nodes=3)),
        "WaitingForGpu", "2 nodes of pool nvidia-l40s-2 with 2 free GPUs each at the same time",
    ),
    "too few nodes at all": (
        spanning(LLAMA_70B), pool("L40S", 2, nodes=1), "DoesNotFit", "does not fit",
    ),
    "an engine that cannot join nodes": (
        spanning(LLAMA_70B, version="0.11.0"), pool("L40S", 2, nodes=2),
        "DoesNotFit", "does not fit",
    ),
    "no LeaderWorkerSet, and two nodes would not be enough": (
        wish("deepseek-ai/DeepSeek-V3"), pool("L40S", 2, nodes=2), "DoesNotFit", "does not fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_in_the_way_of_a_group(case):
    intent, offered, reason, words = REFUSED[case]
    refused = solve(intent, (offered,))
    assert isinstance(refused, NoFit)
    assert refused.reason == reason
    assert words in str(refused)


def test_data_parallel_ranks_take_their_gpus():
    intent = with_layout(wish(LLAMA_8B), data_parallel_size=2)
    planned = solve(intent, (pool("L40S", 4),))
    assert isinstance(planned, Plan)
    sizing = planned.variants[0].sizing
    assert (sizing.gpus_per_replica, sizing.settings.layout.tensor_parallel_size) == (2, 1)
    assert sizing.max_model_len == 131_072


DEEPSEEK = "deepseek-ai/DeepSeek-V3"
H200 = pool("H200", 8)


def test_ranks_of_data_parallelism_hold_the_cache_that_tensor_parallel_ranks_repeat():
    copies = with_layout(wish(DEEPSEEK), data_parallel_size=8, enable_expert_parallel=True)
    shared, apart = solve(wish(DEEPSEEK), (H200,)), solve(copies, (H200,))
    assert isinstance(shared, Plan)
    assert isinstance(apart, Plan)
    one, eight = shared.variants[0].sizing, apart.variants[0].sizing
    assert one.gpus_per_replica == eight.gpus_per_replica == 8
    assert eight.budget.weights_bytes > one.budget.weights_bytes, "attention is whole on each"
    assert 8 * eight.kv_cache_tokens > 4 * one.kv_cache_tokens


PINNED = {  # layout, pool, words of the refusal
    "more ranks than a node has GPUs": (
        {"data_parallel_size": 8}, pool("L40S", 4), "NVIDIA-L40S has 4 GPUs per node",
    ),
    "experts of a model that has none": (
        {"enable_expert_parallel": True}, pool("L40S", 4), "needs experts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PINNED)
def test_a_pinned_layout_that_cannot_start_is_refused_in_words(case):
    layout, offered, words = PINNED[case]
    refused = solve(with_layout(wish(LLAMA_8B), **layout), (offered,))
    assert isinstance(refused, NoFit)
    assert words in str(refused)
