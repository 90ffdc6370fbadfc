"""Weights on one rank, against what engines logged; tolerances are the rounding of the log."""

from dataclasses import replace

import pytest

from builders_families import tiny_llama
from builders_models import facts_from, facts_of
from shipfitter.core.layout import ParallelLayout, pipeline_stages
from shipfitter.core.loading import loaded_as
from shipfitter.core.weights import allocated_bytes, weights_bytes
from shipfitter.errors import InvalidSpecError
from shipfitter.units import GIB, MIB


def ranks(tensor=1, pipeline=1, **more):
    return ParallelLayout(tensor_parallel_size=tensor, pipeline_parallel_size=pipeline, **more)


# Source: "Model loading took" lines in public issues, posts and benchmark archives of releases
# 0.6 to 0.20, which split big blocks.
@pytest.mark.parametrize(
    ("name", "layout", "want_gib"),
    [
        pytest.param("Llama-3.1-8B-Instruct", ranks(), 14.9888, id="Llama-3.1-8B"),
        pytest.param("Llama-3.1-8B-Instruct", ranks(2), 7.51, id="Llama-3.1-8B over two"),
        pytest.param("Llama-3.1-8B-Instruct", ranks(4), 3.77, id="Llama-3.1-8B over four"),
        pytest.param("Llama-3.1-8B-Instruct", ranks(1, 2), 7.51, id="Llama-3.1-8B in two stages"),
        pytest.param("Llama-3.1-8B-Instruct", ranks(1, 4), 4.26, id="Llama-3.1-8B in four stages"),
        pytest.param("Qwen2.5-7B", ranks(), 14.2717, id="Qwen2.5-7B: odd matrices round up"),
        pytest.param("Qwen2.5-7B", ranks(2), 7.1441, id="Qwen2.5-7B over two"),
        pytest.param("Qwen2.5-7B-Instruct", ranks(), 14.25, id="Qwen2.5-7B-Instruct: short rope"),
        pytest.param("Qwen2.5-7B-Instruct-FP8-dynamic", ranks(), 8.14, id="fp8 per channel"),
        pytest.param("Qwen3-235B-A22B", ranks(8), 54.9206, id="Qwen3-235B bf16 over eight"),
        pytest.param(
            "Qwen3-235B-A22B-Instruct-2507-FP8", ranks(4), 55.19, id="Qwen3-235B fp8 over four"
        ),
        pytest.param(
            "Qwen3-235B-A22B-Instruct-2507-FP8",
            ranks(8, enable_expert_parallel=True),
            27.72,
            id="Qwen3-235B fp8, whole experts",
        ),
        pytest.param("Qwen3-Next-80B-A3B-Instruct", ranks(2), 74.2812, id="Qwen3-Next over two"),
        pytest.param("Qwen3-Next-80B-A3B-Instruct", ranks(4), 37.22, id="Qwen3-Next over four"),
        pytest.param("Llama-3.3-70B-Instruct-quantized.w8a8", ranks(), 67.7229, id="70B w8a8"),
        pytest.param("Llama-3.3-70B-Instruct-quantized.w8a8", ranks(4), 16.96, id="70B over four"),
        pytest.param("gemma-2-27b-it", ranks(), 50.72, id="Gemma 2"),
        pytest.param("gemma-3-12b-it", ranks(), 23.31, id="Gemma 3: two rope tables, one huge"),
        pytest.param("gemma-3-1b-it", ranks(), 1.9148, id="Gemma 3 1B"),
        pytest.param("Llama-4-Scout-17B-16E-Instruct", ranks(4), 53.12, id="Llama 4: rope of 10M"),
        pytest.param("Mixtral-8x7B-Instruct-v0.1", ranks(2), 43.51, id="Mixtral over two"),
        pytest.param("Mixtral-8x7B-Instruct-v0.1", ranks(4), 21.76, id="Mixtral over four"),
        pytest.param("Qwen2-VL-72B-Instruct", ranks(2), 68.5, id="Qwen2-VL: tower divided"),
        pytest.param("Qwen2.5-VL-72B-Instruct", ranks(4), 34.43, id="Qwen2.5-VL over four"),
        pytest.param("granite-3.3-8b-instruct", ranks(2), 7.64, id="Granite 3 over two"),
        pytest.param("phi-4", ranks(), 27.39, id="Phi-4: odd matrices"),
        pytest.param("phi-4", ranks(2), 13.77, id="Phi-4 over two"),
        pytest.param("EXAONE-4.0-32B-FP8", ranks(), 30.9891, id="EXAONE 4 block fp8"),
        pytest.param("Qwen3-32B-AWQ", ranks(2), 9.06, id="AWQ over two"),
        pytest.param(
            "Mistral-Small-3.1-24B-Instruct-2503-quantized.w8a8",
            ranks(),
            24.07,
            id="Mistral 3 w8a8",
        ),
    ],
)
def test_weights_equal_what_the_engine_logged(name, layout, want_gib):
    got = weights_bytes(facts_of(name), layout, whole_blocks=False) / GIB
    assert got == pytest.approx(want_gib, rel=5e-4, abs=0.005)


# The same with big blocks kept whole, as later releases load.
@pytest.mark.parametrize(
    ("name", "want_gib"),
    [
        pytest.param("Qwen2.5-7B-Instruct", 14.29, id="Qwen2.5-7B on 0.22 and 0.24"),
        pytest.param("Qwen3-8B", 15.27, id="Qwen3-8B on 0.23: even matrices, as before"),
        pytest.param("Qwen3.8-27B-FP8", 28.51, id="Qwen3.8-27B fp8 on 0.26"),
        pytest.param("Qwen3-30B-A3B-NVFP4", 16.86, id="Qwen3-30B nvfp4 on 0.23"),
    ],
)
def test_weights_of_releases_that_keep_blocks_whole(name, want_gib):
    got = weights_bytes(facts_of(name), ranks()) / GIB
    assert got == pytest.approx(want_gib, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "layout", "want_gib"),
    [
        pytest.param("gpt-oss-120b", ranks(), 65.9651, id="gpt-oss-120b: experts padded"),
        pytest.param("gpt-oss-20b", ranks(), 13.64, id="gpt-oss-20b"),
        pytest.param("gpt-oss-20b", ranks(2), 7.01, id="gpt-oss-20b over two: padded more"),
        pytest.param(
            "NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", ranks(2), 9.8291, id="nvfp4 experts padded"
        ),
    ],
)
def test_padded_experts_come_near_the_log(name, layout, want_gib):
    """Kernels differ in what they pad; the widest is assumed."""
    got = weights_bytes(facts_of(name), layout, whole_blocks=False) / GIB
    assert got == pytest.approx(want_gib, rel=0.015)


@pytest.mark.parametrize(
    ("size_mib", "whole_blocks", "want_mib"),
    [
        pytest.param(0.25, False, 0.25, id="small tensors as they are"),
        pytest.param(9.5, True, 9.5, id="below ten MiB as they are"),
        pytest.param(31.5, False, 32, id="half a MiB of rest stays"),
        pytest.param(259, False, 260, id="a whole MiB of rest stays"),
        pytest.param(24.5, False, 24.5, id="more is split off"),
        pytest.param(24.5, True, 26, id="unless blocks stay whole"),
        pytest.param(12.25, True, 12.25, id="which only blocks from twenty MiB do"),
    ],
)
def test_allocated_bytes(size_mib, whole_blocks, want_mib):
    assert allocated_bytes(int(size_mib * MIB), whole_blocks=whole_blocks) == want_mib * MIB


@pytest.mark.parametrize(
    ("layers", "stages", "want"),
    [
        pytest.param(32, 4, [8, 8, 8, 8], id="even"),
        pytest.param(61, 4, [15, 15, 16, 15], id="one over: the last but one"),
        pytest.param(62, 4, [15, 16, 16, 15], id="two over: the middle"),
        pytest.param(63, 4, [16, 16, 16, 15], id="three over: all but the last"),
        pytest.param(33, 2, [17, 16], id="two stages: the first"),
        pytest.param(5, 1, [5], id="one stage"),
    ],
)
def test_pipeline_stages(layers, stages, want):
    assert [len(stage) for stage in pipeline_stages(layers, stages)] == want


def test_a_tied_embedding_is_on_the_first_and_the_last_stage():
    tied = facts_from(tiny_llama(tie_word_embeddings=True))
    embedding = 1024 * 64 * 2
    first, last = (weights_bytes(tied, ranks(1, 2), stage=stage) for stage in (0, 1))
    assert first == last - 64 * 2  # the final norm
    assert first > embedding


def test_key_value_heads_are_repeated_beyond_their_number():
    facts = facts_from(tiny_llama())
    key_values = 2 * 16 * 64 * 2 * 2  # K and V of two layers
    two, eight = (weights_bytes(facts, ranks(size)) for size in (2, 8))
    fixed = facts.rotary_bytes + sum(
        g.loaded_bytes for g in facts.weight_groups if g.shard == "replicated"
    )
    assert two - fixed == pytest.approx((eight - fixed - key_values // 2) * 4 + key_values // 2)


def test_prediction_layers_load_only_for_speculation():
    facts = facts_of("DeepSeek-V3")
    layout = ranks(8)
    difference = weights_bytes(facts, layout, with_prediction=True) - weights_bytes(facts, layout)
    assert difference / GIB == pytest.approx(10.86 / 8, rel=0.05)  # one layer of experts


def test_towers_are_left_out_of_language_only_engines():
    facts = facts_of("Qwen2.5-VL-72B-Instruct")
    tower = weights_bytes(facts, ranks()) - weights_bytes(facts, ranks(), with_towers=False)
    assert tower / GIB == pytest.approx(1.31, abs=0.01)


def test_each_rank_has_the_whole_tower_under_encoder_data_parallelism():
    facts = facts_of("Kimi-K2.5")
    divided = weights_bytes(facts, ranks(8))
    whole = weights_bytes(facts, ranks(8, encoder_data_parallel=True))
    assert (whole - divided) / GIB == pytest.approx(0.878 * 7 / 8, rel=0.01)


def test_data_parallel_ranks_share_the_experts():
    facts = facts_of("Qwen3-235B-A22B-Instruct-2507-FP8")
    alone = weights_bytes(facts, ranks(4))
    spread = weights_bytes(facts, ranks(4, data_parallel_size=2, enable_expert_parallel=True))
    experts = sum(g.loaded_bytes for g in facts.weight_groups if g.shard == "experts")
    assert alone - spread == pytest.approx(experts / 8, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "want_gib"),
    [
        pytest.param({"quantization": "fp8"}, 8.49, id="--quantization fp8"),
        pytest.param({"dtype": "float32"}, 29.98, id="--dtype float32"),
        pytest.param({}, 14.99, id="no flag"),
    ],
)
def test_flags_that_change_what_is_loaded(arguments, want_gib):
    facts = loaded_as(facts_of("Llama-3.1-8B-Instruct"), **arguments)
    got = weights_bytes(facts, ranks(), whole_blocks=False) / GIB
    assert got == pytest.approx(want_gib, abs=0.005)


def test_a_quantised_checkpoint_stays_as_it_is():
    facts = facts_of("Qwen3-32B-AWQ")
    assert loaded_as(facts, quantization="fp8") == facts


def test_a_method_that_needs_its_own_checkpoint_is_refused():
    with pytest.raises(InvalidSpecError, match="'awq'"):
        loaded_as(facts_of("Qwen3-8B"), quantization="awq")


def test_rope_tables_count_on_every_rank():
    facts = facts_of("Llama-3.1-8B-Instruct")
    assert facts.rotary_bytes == 131_072 * 128 * 2
    bare = replace(facts, rotary_bytes=0)
    assert weights_bytes(facts, ranks(8)) - weights_bytes(bare, ranks(8)) == facts.rotary_bytes


@pytest.mark.parametrize(
    ("name", "want_mib"),
    [
        pytest.param(
            "gemma-3-12b-it", 512 + 64, id="Gemma 3: linear scaling by 8, and a local one"
        ),
        pytest.param(
            "gpt-oss-120b", 32, id="gpt-oss: YaRN, original length times factor, in float32"
        ),
        pytest.param("DeepSeek-V3", 20, id="YaRN, the rotated part of a latent row"),
        pytest.param("Qwen2.5-VL-72B-Instruct", 125, id="multimodal rope: four times the rows"),
        pytest.param("Qwen3.8-27B-FP8", 128, id="a quarter of the head is rotated"),
        pytest.param("NVIDIA-Nemotron-Nano-9B-v2", 0, id="Nemotron-H has no positions"),
        pytest.param("opt-2.7b", 0, id="learned positions are weights"),
    ],
)
def test_rope_tables(name, want_mib):
    assert facts_of(name).rotary_bytes / MIB == pytest.approx(want_mib)
