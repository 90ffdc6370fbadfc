"""The config's arithmetic against what the files really hold."""

import pytest

import builders_families as families
from builders_families import tiny_llama
from builders_models import config_of, facts_from, facts_of, stored_bytes_of
from shipfitter.core.model import Shard


@pytest.mark.parametrize(
    ("config", "want_parameters"),
    [
        pytest.param(families.JAMBA_V01, 51_570_323_328, id="Jamba: Mamba-1, experts every second"),
        pytest.param(families.LFM2_1_2B, 1_170_340_608, id="LFM2: short convolutions"),
        pytest.param(families.STARCODER2_3B, 3_030_371_328, id="StarCoder2: biases everywhere"),
        pytest.param(families.COMMAND_R7B, 8_028_033_024, id="Cohere 2: one norm, tied"),
        pytest.param(families.GLM_4_9B, 9_400_279_040, id="GLM-4: four norms, biased QKV"),
        pytest.param(families.GLM_4_5_AIR, 110_468_824_832, id="GLM-4.5: dense first, MTP last"),
        pytest.param(families.GRANITE_4_H_TINY, 6_939_037_248, id="Granite 4: Mamba-2 and experts"),
        pytest.param(families.BAMBA_9B, 9_780_235_392, id="Bamba: three attention layers"),
        pytest.param(families.MINIMAX_TEXT_01, 456_089_655_296, id="MiniMax-01: linear attention"),
        pytest.param(families.OLMO_2_7B, 7_298_617_344, id="OLMo 2: wide query and key norms"),
        pytest.param(families.GRANITE_3_1_3B_A800M, 3_298_793_472, id="Granite MoE"),
    ],
)
def test_every_parameter_of_a_family_is_counted(config, want_parameters):
    assert facts_from(config).checkpoint_bytes == 2 * want_parameters


EXACT = (
    "Llama-3.1-8B-Instruct",
    "Qwen2.5-7B-Instruct",
    "Qwen3-8B",
    "Qwen3-235B-A22B",
    "Qwen3-Next-80B-A3B-Instruct",
    "Qwen1.5-MoE-A2.7B",
    "gpt-oss-120b",
    "gpt-oss-20b",
    "Llama-3.3-70B-Instruct-quantized.w8a8",
    "gemma-2-9b",
    "gemma-2-27b-it",
    "gemma-3-1b-it",
    "gemma-7b",
    "DeepSeek-V3",
    "DeepSeek-V2-Lite-Chat",
    "NVIDIA-Nemotron-Nano-9B-v2",
    "Falcon-H1-3B-Base",
    "Mixtral-8x7B-Instruct-v0.1",
    "phi-2",
    "phi-4",
    "opt-2.7b",
    "Mistral-7B-Instruct-v0.2-GPTQ",
    "Qwen2.5-32B-Instruct-AWQ",
    "Qwen3-32B-AWQ",
    "EXAONE-4.0-32B-FP8",
    "granite-3.3-8b-instruct",
)


@pytest.mark.parametrize("name", EXACT)
def test_the_config_alone_gives_the_bytes_of_the_files(name):
    got = facts_from(config_of(name)).checkpoint_bytes
    assert got == pytest.approx(stored_bytes_of(name), rel=1e-5)


NEARLY = (
    "Qwen2-VL-72B-Instruct",
    "Qwen2.5-VL-72B-Instruct",
    "Qwen3-VL-30B-A3B-Instruct",
    "Qwen3.8-27B-FP8",
    "gemma-3-12b-it",
    "gemma-4-26B-A4B-it",
    "gemma-4-12B-it",
    "llava-v1.6-mistral-7b-hf",
    "InternVL3-78B",
    "Kimi-K2.5",
    "Mistral-Small-3.1-24B-Instruct-2503-quantized.w8a8",
    "MiniMax-M2",
    "GLM-5.1-FP8",
)


@pytest.mark.parametrize("name", NEARLY)
def test_towers_and_scales_from_the_config_come_within_a_quarter_percent(name):
    got = facts_from(config_of(name)).checkpoint_bytes
    assert got == pytest.approx(stored_bytes_of(name), rel=0.0025)


def test_a_stored_copy_of_a_tied_head_is_not_loaded():
    facts = facts_of("Qwen3-0.6B")
    head_bytes = 151_936 * 1024 * 2
    loaded = sum(group.loaded_bytes for group in facts.weight_groups)
    assert facts.tie_word_embeddings
    assert loaded == pytest.approx(stored_bytes_of("Qwen3-0.6B") - head_bytes, rel=1e-3)


def test_a_float32_file_is_loaded_as_two_bytes():
    config = config_of("gemma-2-9b")
    loaded = sum(g.loaded_bytes for g in facts_of("gemma-2-9b").weight_groups)
    assert config["torch_dtype"] == "float32"
    assert loaded == pytest.approx(stored_bytes_of("gemma-2-9b") / 2, rel=1e-3)


def test_a_float32_file_is_recognised_by_its_size_too():
    plain = facts_from(tiny_llama())
    doubled = facts_from(tiny_llama(), checkpoint_bytes=2 * plain.checkpoint_bytes)
    assert doubled.weight_groups == plain.weight_groups


def test_the_total_corrects_the_quantised_part_and_leaves_the_rest():
    name = "Qwen2.5-32B-Instruct-AWQ"
    plain = facts_from(config_of(name))
    grown = facts_from(config_of(name), checkpoint_bytes=plain.checkpoint_bytes + 10**9)
    vocabulary = {Shard.VOCAB: 0, Shard.REPLICATED: 0}
    for shard in vocabulary:
        before = sum(g.loaded_bytes for g in plain.weight_groups if g.shard is shard)
        after = sum(g.loaded_bytes for g in grown.weight_groups if g.shard is shard)
        assert before == after
    loaded = [sum(g.loaded_bytes for g in facts.weight_groups) for facts in (plain, grown)]
    assert loaded[1] - loaded[0] == pytest.approx(10**9, rel=1e-3)


def test_the_rest_of_a_multimodal_checkpoint_is_the_tower():
    name = "Llama-4-Scout-17B-16E-Instruct"
    silent = config_of(name)
    del silent["vision_config"]
    total = stored_bytes_of(name)
    facts = facts_from(silent, checkpoint_bytes=total)
    tower = sum(g.loaded_bytes for g in facts.weight_groups if g.shard is Shard.TOWER)
    assert tower == total - facts_from(silent).checkpoint_bytes


def test_prediction_layers_left_in_bf16_are_told_from_the_total():
    """4-bit builds of Qwen3.8 keep the prediction layer whole; it is stored, not loaded."""
    facts = facts_of("Qwen3.8-27B-INT4")
    prediction = sum(g.loaded_bytes for g in facts.weight_groups if g.place == "prediction")
    assert prediction == pytest.approx(0.79 * 1024**3, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param({}, "config", id="the config alone"),
        pytest.param({"checkpoint_bytes": 10**6}, "config and total bytes", id="with a total"),
    ],
)
def test_the_source_of_the_weights_is_said(arguments, want):
    assert facts_from(tiny_llama(), **arguments).weights_source == want
