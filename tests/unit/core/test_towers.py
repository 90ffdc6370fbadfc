"""Towers beside the language model: what each rank has of them, and what is never built."""

from dataclasses import replace

import pytest

from builders_models import config_of, facts_from, facts_of, header, stored_bytes_of
from shipfitter.core.weights import ParallelLayout, weights_bytes


def ranks(tensor=1):
    return ParallelLayout(tensor_parallel_size=tensor)


def exact_bytes(facts, layout):
    """Bytes of the tensors, before the allocator rounds each up."""
    groups = tuple(replace(group, tensor="") for group in facts.weight_groups)
    return weights_bytes(replace(facts, weight_groups=groups), layout)


# Source: bytes of the tensors of the engine's own classes, release 0.32 (tests/oracle).
@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("gemma-4-26B-A4B-it", 7_901_908_810, id="Gemma 4: the tower whole"),
        pytest.param(
            "gemma-4-12B-it", 3_498_125_602, id="Gemma 4 without a tower: patches divided"
        ),
        pytest.param("gemma-4-E2B-it", 1_769_001_086, id="Gemma 4 without the file's audio tower"),
        pytest.param("gemma-3-12b-it", 3_669_703_582, id="Gemma 3: positions and projector whole"),
        pytest.param(
            "Mistral-Small-3.1-24B-Instruct-2503-quantized.w8a8",
            3_269_951_056,
            id="Mistral 3: the merging layer whole",
        ),
    ],
)
def test_what_towers_do_not_divide_is_on_each_of_eight_ranks(name, want):
    assert exact_bytes(facts_of(name), ranks(8)) == pytest.approx(want, rel=0.001)


@pytest.mark.parametrize(
    ("feature_layer", "want_left_out"),
    [
        pytest.param(-1, 0, id="the last layer's output: all are built"),
        pytest.param(-2, 1, id="the last but one: the last is not"),
        pytest.param(-4, 3, id="the fourth from the end: three are not"),
        pytest.param([-2, -5], 1, id="several: what the class takes where nobody says"),
    ],
)
def test_llava_builds_no_layer_behind_the_one_it_reads(feature_layer, want_left_out):
    name = "llava-v1.6-mistral-7b-hf"
    config = config_of(name, vision_feature_layer=feature_layer)
    facts = facts_from(config, checkpoint_bytes=stored_bytes_of(name))
    left_out = stored_bytes_of(name) + facts.rotary_bytes - exact_bytes(facts, ranks())
    block_bytes = 2 * (12 * 1024 * 1024 + 4 * 1024)
    assert left_out == want_left_out * block_bytes


@pytest.mark.parametrize(
    ("name", "want_loaded"),
    [
        pytest.param("model.audio_tower.layers.0.norm_out.weight", False, id="the audio tower"),
        pytest.param("model.embed_audio.embedding_projection.weight", False, id="its projector"),
        pytest.param("model.embed_vision.embedding_projection.weight", True, id="of vision"),
        pytest.param(
            "model.language_model.layers.34.self_attn.k_proj.weight",
            False,
            id="keys of a layer that reads another's cache",
        ),
        pytest.param(
            "model.language_model.layers.34.self_attn.k_norm.weight", False, id="and their norm"
        ),
        pytest.param(
            "model.language_model.layers.34.self_attn.q_proj.weight", True, id="its queries"
        ),
        pytest.param(
            "model.language_model.layers.0.self_attn.k_proj.weight",
            True,
            id="keys of a layer with a cache of its own",
        ),
    ],
)
def test_gemma_4_leaves_out_of_the_file_what_it_does_not_build(name, want_loaded):
    facts = facts_from(config_of("gemma-4-E2B-it"), tensors=(header(name, 64, 64),))
    assert sum(g.loaded_bytes for g in facts.weight_groups) == (64 * 64 * 2 if want_loaded else 0)


def test_gemma_4_builds_the_audio_tower_that_the_config_describes():
    config = config_of("gemma-4-E2B-it", audio_config={"hidden_size": 1024})
    tensor = header("model.audio_tower.layers.0.norm_out.weight", 64, 64)
    facts = facts_from(config, tensors=(tensor,))
    assert [group.loaded_bytes for group in facts.weight_groups] == [64 * 64 * 2]
