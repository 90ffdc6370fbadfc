"""Laws of weights under any layout."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders_families import tiny_llama
from builders_models import MODELS, facts_from, facts_of
from shipfitter.core.layout import ParallelLayout, pipeline_stages
from shipfitter.core.model import ModelFacts
from shipfitter.core.weights import weights_bytes

REFUSED = {"DeepSeek-V4-Flash"}
NAMES = sorted(path.stem for path in MODELS.glob("*.json") if path.stem not in REFUSED)

models = st.sampled_from(NAMES).map(facts_of)
powers = st.sampled_from((1, 2, 4, 8, 16))
flags = st.booleans()


def sizes(facts: ModelFacts, layout: ParallelLayout, *, whole_blocks: bool) -> list[int]:
    stages = range(layout.pipeline_parallel_size)
    return [weights_bytes(facts, layout, stage=s, whole_blocks=whole_blocks) for s in stages]


@given(models, powers, flags, flags)
def test_more_tensor_ranks_never_load_more_each(facts, ranks, whole_blocks, experts):
    experts = experts and facts.moe is not None
    half, full = (
        ParallelLayout(tensor_parallel_size=size, enable_expert_parallel=experts)
        for size in (ranks, 2 * ranks)
    )
    (before,) = sizes(facts, half, whole_blocks=whole_blocks)
    (after,) = sizes(facts, full, whole_blocks=whole_blocks)
    assert after <= before


@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_partition_the_layers(layers, stages):
    parts = pipeline_stages(layers, stages)
    assert [layer for part in parts for layer in part] == list(range(layers))
    assert len(parts) == stages
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(models, st.sampled_from((2, 4, 8)), powers, flags)
def test_stages_together_hold_at_least_the_whole(facts, stages, ranks, whole_blocks):
    whole = ParallelLayout(tensor_parallel_size=ranks)
    staged = ParallelLayout(tensor_parallel_size=ranks, pipeline_parallel_size=stages)
    (alone,) = sizes(facts, whole, whole_blocks=whole_blocks)
    assert sum(sizes(facts, staged, whole_blocks=whole_blocks)) >= alone
    assert max(sizes(facts, staged, whole_blocks=whole_blocks)) <= alone


@given(models, powers, flags)
def test_ranks_together_hold_at_least_what_is_loaded(facts, ranks, whole_blocks):
    (each,) = sizes(facts, ParallelLayout(tensor_parallel_size=ranks), whole_blocks=whole_blocks)
    loaded = sum(g.loaded_bytes for g in facts.weight_groups if g.place != "prediction")
    assert ranks * each >= loaded


@given(models, powers, flags)
def test_what_is_left_out_never_adds(facts, ranks, whole_blocks):
    layout = ParallelLayout(tensor_parallel_size=ranks)
    sizes = [
        weights_bytes(
            facts,
            layout,
            whole_blocks=whole_blocks,
            with_prediction=prediction,
            with_towers=towers,
        )
        for prediction, towers in ((False, False), (False, True), (True, True))
    ]
    assert sizes == sorted(sizes)


@given(
    hidden=st.sampled_from((64, 128, 256)),
    layers=st.integers(1, 6),
    heads=st.sampled_from((4, 8)),
    factor=st.sampled_from((1, 2, 4)),
    total=st.integers(10**5, 10**9),
)
def test_any_total_leaves_positive_groups(hidden, layers, heads, factor, total):
    config = tiny_llama(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // factor,
    )
    facts = facts_from(config, checkpoint_bytes=total)
    assert all(group.loaded_bytes > 0 for group in facts.weight_groups)
    assert facts.checkpoint_bytes == total


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.json")), ids=lambda path: path.stem)
def test_every_config_file_says_where_it_is_from(path: Path):
    assert json.loads(path.read_text())["source"]
