"""A model as flags change it, in bytes that can be checked by hand."""

from dataclasses import replace

import pytest

from builders_core import attention, model
from builders_plan import facts as known
from shipfitter.core.additions import (
    AdapterSlots,
    with_adapter_slots,
    with_redundant_experts,
    with_weights_in_host_memory,
    without_windows,
)
from shipfitter.core.lengths import derived_max_model_len
from shipfitter.core.model import LayerKind
from shipfitter.core.versions import NEWEST_KNOWN
from shipfitter.core.weights import ParallelLayout, weights_bytes
from shipfitter.units import GIB

ALONE = ParallelLayout()


def llama_8b():
    return known("meta-llama/Llama-3.1-8B-Instruct")


def qwen3_30b_a3b():
    return known("Qwen/Qwen3-30B-A3B")


def held(facts, **layout):
    return weights_bytes(facts, ParallelLayout(**layout))


# One layer of Llama 8B, elements for rank 1: q, k, v, o and gate, up, down.
LLAMA_WHOLE = (3 + 1) * 4096 + (2 + 1) * 4096
LLAMA_DIVIDED = (4096 + 2 * 1024) + 4096 + 3 * 14336


@pytest.mark.parametrize(
    ("slots", "ranks", "want"),
    [
        pytest.param(AdapterSlots(max_rank=16), 1, 16 * (LLAMA_WHOLE + LLAMA_DIVIDED) * 2,
                     id="one adapter"),
        pytest.param(AdapterSlots(max_rank=16, max_loras=4), 1,
                     64 * (LLAMA_WHOLE + LLAMA_DIVIDED) * 2, id="four take four times as much"),
        pytest.param(AdapterSlots(max_rank=16), 2, 16 * (LLAMA_WHOLE + LLAMA_DIVIDED // 2) * 2,
                     id="ranks share the divided half"),
        pytest.param(AdapterSlots(max_rank=16, fully_sharded=True), 2,
                     8 * (LLAMA_WHOLE + LLAMA_DIVIDED) * 2, id="fully sharded they share it all"),
    ],
)  # fmt: skip
def test_adapter_slots(slots, ranks, want):
    facts = llama_8b()
    more = held(with_adapter_slots(facts, slots), tensor_parallel_size=ranks)
    assert more - held(facts, tensor_parallel_size=ranks) == 32 * want


def test_adapters_on_experts_only_where_the_release_puts_them():
    facts = qwen3_30b_a3b()
    without = held(with_adapter_slots(facts, AdapterSlots(on_experts=False)))
    assert held(with_adapter_slots(facts, AdapterSlots())) > without > held(facts)


def test_weights_in_host_memory_leave_the_card():
    facts = llama_8b()
    assert held(with_weights_in_host_memory(facts, ALONE, 2 * GIB)) == held(facts) - 2 * GIB


def test_no_more_leaves_than_there_is():
    facts = llama_8b()
    left = held(with_weights_in_host_memory(facts, ALONE, 500 * GIB))
    assert 0 < left < held(facts)


def test_each_stage_leaves_its_own():
    facts, layout = llama_8b(), ParallelLayout(pipeline_parallel_size=2)
    moved = with_weights_in_host_memory(facts, layout, GIB)
    for stage in (0, 1):
        before = weights_bytes(facts, layout, stage=stage)
        assert weights_bytes(moved, layout, stage=stage) == before - GIB


def test_copies_of_experts_take_their_share():
    facts = qwen3_30b_a3b()
    doubled = with_redundant_experts(facts, 128)
    assert held(facts) < held(doubled) < 2 * held(facts)
    assert with_redundant_experts(llama_8b(), 8) == llama_8b()


def test_without_windows_every_layer_is_full_and_no_request_longer_than_one():
    sliding = attention(LayerKind.SLIDING, heads=8, kv_heads=8, head_dim=64, window_tokens=4096)
    full = attention(heads=8, kv_heads=8, head_dim=64)
    facts = without_windows(model([sliding, full]))
    assert [layer.kind for layer in facts.layers] == [LayerKind.FULL, LayerKind.FULL]
    assert derived_max_model_len(facts, NEWEST_KNOWN) == 4096
    assert without_windows(replace(facts)) == facts
