"""Budgets: parts that add up, what experts count on, and cache memory that engines logged."""

from dataclasses import replace

import pytest

from builders_core import (
    card,
    gemma3_27b,
    gpt_oss_20b,
    llama_8b,
    qwen3_32b,
    qwen3_next,
    qwen36_27b,
    resolved,
)
from shipfitter.core.budget import Budget, Estimate, budget, reserve_bytes, utilization_for
from shipfitter.core.graphs import charges_graphs, graph_bytes
from shipfitter.core.kvcache import cache_layout, plan_cache
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB, MIB


def planned(facts, gpu, **asked):
    """Settings with the utilization the planner would ask for, and their budget."""
    chosen = resolved(facts, gpu, **asked)
    chosen = replace(chosen, gpu_memory_utilization=utilization_for(facts, chosen, gpu))
    return chosen, budget(facts, chosen, gpu)


CASES = [
    pytest.param(llama_8b(), card("NVIDIA-L4"), {}, id="a dense model on a small card"),
    pytest.param(llama_8b(), card(), {"version": "0.19.0"}, id="graphs that are not charged"),
    pytest.param(llama_8b(), card(), {"version": "0.27.0"}, id="V2's estimate of nothing"),
    pytest.param(llama_8b(), card(), {"enforce_eager": True}, id="no graphs"),
    pytest.param(gpt_oss_20b(), card("NVIDIA-B200"), {}, id="experts on Blackwell"),
    pytest.param(qwen3_next(), card(), {"tensor_parallel_size": 2}, id="a hybrid on two GPUs"),
    pytest.param(gemma3_27b(is_multimodal=True), card("NVIDIA-L40S"), {}, id="images"),
    pytest.param(
        qwen3_32b(),
        card("NVIDIA-L40S"),
        {"layout": ParallelLayout(pipeline_parallel_size=2)},
        id="two pipeline stages",
    ),
    pytest.param(qwen3_32b(), card("NVIDIA-L4"), {}, id="weights that do not fit"),
    pytest.param(llama_8b(), card(), {"kv_cache_memory_bytes": GIB}, id="cache bytes as given"),
]


@pytest.mark.parametrize(("facts", "gpu", "asked"), CASES)
def test_parts_add_up(facts, gpu, asked):
    chosen, stages = planned(facts, gpu, **asked)
    assert len(stages) == chosen.layout.pipeline_parallel_size
    for stage in stages:
        assert stage.check()
        assert stage.total_bytes == gpu.total_bytes
        parts = [stage.weights_bytes, stage.overhead_bytes, stage.activation_bytes]
        assert min(*parts, stage.cuda_graph_bytes, stage.uncharged_cuda_graph_bytes) >= 0
        assert stage.load_peak_bytes >= stage.weights_bytes


def test_a_budget_that_does_not_add_up_is_told():
    (whole,) = budget(llama_8b(), resolved(llama_8b()), card())
    assert not replace(whole, overhead_bytes=whole.overhead_bytes + 1).check()
    assert not replace(whole, not_requested_bytes=0).check()
    upside_down = Estimate(low=2, point=whole.kv_cache_bytes.point, high=1)
    assert not replace(whole, kv_cache_bytes=upside_down).check()
    assert isinstance(whole, Budget)


@pytest.mark.parametrize(
    ("version", "facts", "want"),
    [
        pytest.param("0.19.0", llama_8b(), False, id="0.19 prints its estimate only"),
        pytest.param("0.20.0", llama_8b(), True, id="0.20 subtracts it"),
        pytest.param("0.25.0", llama_8b(), False, id="V2 estimates nothing before 0.29"),
        pytest.param("0.25.0", qwen3_next(), True, id="hybrids stay on V1 and pay"),
        pytest.param("0.29.0", llama_8b(), True, id="V2 measures from 0.29 on"),
    ],
)
def test_graphs_are_charged_or_come_out_of_the_rest(version, facts, want):
    chosen = resolved(facts, version=version)
    (got,) = budget(facts, chosen, card())
    graphs = graph_bytes(facts, chosen).point
    assert charges_graphs(chosen) is want
    charged, uncharged = (graphs, 0) if want else (0, graphs)
    assert (got.cuda_graph_bytes, got.uncharged_cuda_graph_bytes) == (charged, uncharged)
    if not want:
        assert reserve_bytes(facts, chosen, card()) >= graphs


@pytest.mark.parametrize(
    ("facts", "asked", "want_gib"),
    [
        pytest.param(llama_8b(), {"version": "0.19.0"}, 0.91, id="32 layers, 102 graphs"),
        pytest.param(qwen3_32b(), {"version": "0.19.0"}, 1.4, id="64 layers"),
        pytest.param(qwen3_next(), {"version": "0.10.2"}, 2.37, id="experts and states"),
        pytest.param(
            llama_8b(), {"version": "0.31.0", "max_num_seqs": 256}, 0.43, id="V2's estimate"
        ),
    ],
)
def test_graph_estimates_hold_what_was_measured(facts, asked, want_gib):
    asked = {"max_num_seqs": 1024, "max_num_batched_tokens": 8192, **asked}
    got = graph_bytes(facts, resolved(facts, **asked))
    assert got.low < want_gib * GIB < got.high
    assert got.point / GIB == pytest.approx(want_gib, rel=0.4)


@pytest.mark.parametrize(
    ("gpu", "asked", "want"),
    [
        pytest.param(card("NVIDIA-L40S"), {}, 0.95, id="never above 0.95"),
        pytest.param(
            card("NVIDIA-L4", free_bytes=20 * GIB), {"max_num_seqs": 16}, 0.88, id="as measured"
        ),
        pytest.param(
            card("NVIDIA-L4", foreign_used_bytes=4 * GIB),
            {"max_num_seqs": 16},
            0.77,
            id="less what other tenants hold",
        ),
        pytest.param(
            card("NVIDIA-L4"),
            {"tensor_parallel_size": 2, "max_num_seqs": 16},
            0.94,
            id="communication over PCIe takes little",
        ),
        pytest.param(card("NVIDIA-L4", free_bytes=0), {}, 0.0, id="nothing is free"),
    ],
)
def test_utilization_leaves_the_reserve(gpu, asked, want):
    chosen = resolved(llama_8b(), gpu, **asked)
    got = utilization_for(llama_8b(), chosen, gpu)
    assert got == want
    free = gpu.total_bytes if gpu.free_bytes is None else gpu.free_bytes
    assert got == 0 or free - got * gpu.total_bytes >= reserve_bytes(llama_8b(), chosen, gpu)


def test_where_nothing_is_free_nothing_is_requested():
    gpu = card("NVIDIA-L4", free_bytes=0)
    _, (got,) = planned(llama_8b(), gpu)
    assert got.requested_bytes == 0
    assert got.kv_cache_bytes.high < 0


def test_the_reserve_names_what_comes_after_profiling():
    facts, gpu = llama_8b(), card("NVIDIA-L4")
    few = resolved(facts, gpu, max_num_seqs=16)
    tables = 2 * 16 * (131072 // 16) * 4
    assert reserve_bytes(facts, few, gpu) == GIB // 2 + 4 * 16 * 128256 + tables
    blackwell = card("NVIDIA-B200")
    later = resolved(facts, blackwell, "0.28.0", max_num_seqs=16, model_runner="V1")
    earlier = resolved(facts, blackwell, "0.29.0", max_num_seqs=16, model_runner="V1")
    more = reserve_bytes(facts, later, blackwell) - reserve_bytes(facts, earlier, blackwell)
    assert more == 394 * MIB


@pytest.mark.parametrize(
    ("facts", "gpu", "asked", "want_tokens"),
    [
        pytest.param(
            llama_8b(),
            card("NVIDIA-L4"),
            {"max_num_seqs": 16, "max_num_batched_tokens": 2048},
            29_000,
            id="Llama 8B on L4",
        ),
        pytest.param(
            llama_8b(),
            card("NVIDIA-L40S"),
            {"max_num_seqs": 96, "max_num_batched_tokens": 2048},
            197_000,
            id="Llama 8B on L40S",
        ),
        pytest.param(
            llama_8b(),
            card(),
            {"max_num_seqs": 216, "max_num_batched_tokens": 8192},
            454_000,
            id="Llama 8B on H100",
        ),
        pytest.param(
            qwen3_32b(),
            card("NVIDIA-L40S"),
            {"tensor_parallel_size": 2, "max_num_seqs": 32, "max_num_batched_tokens": 2048},
            68_000,
            id="Qwen3 32B on two L40S",
        ),
        pytest.param(
            qwen3_32b(),
            card(),
            {"max_num_seqs": 16, "max_num_batched_tokens": 8192},
            35_000,
            id="Qwen3 32B on H100",
        ),
    ],
)
def test_the_pessimistic_end_still_holds_what_an_expert_counts_on(facts, gpu, asked, want_tokens):
    chosen, stages = planned(facts, gpu, **asked)
    layout = cache_layout(facts, chosen, gpu)
    low = plan_cache(layout, chosen, tuple(stage.kv_cache_bytes.low for stage in stages))
    assert low.kv_cache_tokens >= want_tokens


H100 = card()
A100 = card("NVIDIA-A100-SXM4-80GB")


def measured(facts, *, weights_gib, **more):
    """Facts whose only weights are what the log says was loaded on one rank."""
    group = replace(
        facts.weight_groups[0],
        place="other",
        loaded_bytes=int(weights_gib * GIB),
        shard="replicated",
    )
    return replace(facts, weight_groups=(group,), rotary_bytes=0, **more)


@pytest.mark.parametrize(
    ("facts", "gpu", "asked", "want_gib"),
    [
        pytest.param(
            measured(llama_8b(), weights_gib=14.99),
            H100,
            {"version": "0.19.0", "gpu_memory_utilization": 0.95, "max_model_len": 8192},
            58.11,
            id="Llama 8B, 0.19, H100",
        ),
        pytest.param(
            measured(llama_8b(), weights_gib=7.51),
            H100,
            {
                "version": "0.19.0",
                "gpu_memory_utilization": 0.95,
                "tensor_parallel_size": 2,
                "max_model_len": 8192,
            },
            63.76,
            id="Llama 8B, 0.19, two H100",
        ),
        pytest.param(
            measured(llama_8b(), weights_gib=15.0),
            A100,
            {"version": "0.31.0"},
            56.21,
            id="Llama 8B, 0.31, A100",
        ),
        pytest.param(
            measured(qwen3_32b(), weights_gib=27.52, hidden_size=5120, vocab_size=151936),
            H100,
            {"version": "0.16.0", "gpu_memory_utilization": 0.95},
            41.94,
            id="Qwen3 14B's shape, 0.16, H100",
        ),
        pytest.param(
            measured(qwen3_32b(), weights_gib=27.52),
            H100,
            {"version": "0.17.0", "gpu_memory_utilization": 0.95},
            45.34,
            id="Qwen3 14B's shape, 0.17, H100: nothing is sorted any more",
        ),
        pytest.param(
            measured(qwen3_32b(), weights_gib=67.82, vocab_size=152064, hidden_size=8192),
            H100,
            {"version": "0.19.0", "gpu_memory_utilization": 0.95, "tensor_parallel_size": 2},
            3.02,
            id="a 72B, 0.19, two H100",
        ),
    ],
)
def test_cache_memory_that_engines_logged(facts, gpu, asked, want_gib):
    (got,) = budget(facts, resolved(facts, gpu, **asked), gpu)
    cache = got.kv_cache_bytes
    assert cache.low / GIB <= want_gib <= cache.high / GIB
    assert cache.point / GIB == pytest.approx(want_gib, abs=0.2)


def test_a_tied_embedding_is_twice_on_the_card_while_loading():
    facts = gemma3_27b()
    gpu = card()
    (got,) = budget(facts, resolved(facts, gpu), gpu)
    assert (got.load_peak_bytes - got.weights_bytes) / GIB == pytest.approx(2.63, abs=0.01)


@pytest.mark.parametrize(
    ("version", "want_more"),
    [
        pytest.param("0.18.0", True, id="until 0.19 they do"),
        pytest.param("0.26.0", False, id="from 0.20 on they do not"),
    ],
)
def test_the_states_cost_graphs_more_than_attention_does(version, want_more):
    asked = {"version": version, "max_num_seqs": 16, "model_runner": "V1"}
    dense = graph_bytes(qwen3_32b(), resolved(qwen3_32b(), **asked))
    recurrent = graph_bytes(qwen36_27b(), resolved(qwen36_27b(), **asked))
    assert (recurrent.point > dense.point) is want_more
