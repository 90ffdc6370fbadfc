"""Layer kinds, heads and states, as each family's config says them."""

from collections import Counter

import pytest

import builders_families as families
from builders_families import tiny_llama
from builders_models import config_of, facts_from, facts_of
from shipfitter.core.model import LayerKind, StateShape


def kinds(facts):
    return Counter(layer.kind for layer in facts.layers)


def indices(facts, kind):
    return [index for index, layer in enumerate(facts.layers) if layer.kind is kind]


FULL, SLIDING, STATE, MLA = LayerKind.FULL, LayerKind.SLIDING, LayerKind.STATE, LayerKind.MLA


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("Llama-3.1-8B-Instruct", {FULL: 32}, id="Llama: full attention only"),
        pytest.param("gemma-2-27b-it", {SLIDING: 23, FULL: 23}, id="Gemma 2: every other"),
        pytest.param("gemma-3-12b-it", {SLIDING: 40, FULL: 8}, id="Gemma 3: five to one"),
        pytest.param("gemma-3-1b-it", {SLIDING: 22, FULL: 4}, id="Gemma 3 1B: a cut-off pattern"),
        pytest.param("gemma-4-26B-A4B-it", {SLIDING: 25, FULL: 5}, id="Gemma 4: by layer_types"),
        pytest.param("gpt-oss-120b", {SLIDING: 18, FULL: 18}, id="gpt-oss: every other"),
        pytest.param(
            "Llama-4-Scout-17B-16E-Instruct",
            {LayerKind.CHUNKED: 36, FULL: 12},
            id="Llama 4: three chunks to one",
        ),
        pytest.param("EXAONE-4.0-32B-FP8", {SLIDING: 48, FULL: 16}, id="EXAONE 4: three to one"),
        pytest.param("DeepSeek-V3", {MLA: 61}, id="DeepSeek-V3: latent attention"),
        pytest.param("Kimi-K2.5", {MLA: 61}, id="Kimi-K2.5: DeepSeek inside a wrapper"),
        pytest.param(
            "Kimi-Linear-48B-A3B-Instruct-AWQ-4bit", {STATE: 20, MLA: 7}, id="Kimi-Linear: KDA"
        ),
        pytest.param("Qwen3-Next-80B-A3B-Instruct", {STATE: 36, FULL: 12}, id="Qwen3-Next"),
        pytest.param("Qwen3.8-27B-FP8", {STATE: 48, FULL: 16}, id="Qwen3.8: nested text_config"),
        pytest.param(
            "NVIDIA-Nemotron-Nano-9B-v2",
            {STATE: 27, FULL: 4, LayerKind.NONE: 25},
            id="Nemotron-H: letters",
        ),
        pytest.param("Falcon-H1-3B-Base", {FULL: 32}, id="Falcon-H1: attention and state at once"),
        pytest.param("MiniMax-M2", {FULL: 62}, id="MiniMax-M2: full despite its type list"),
        pytest.param("Qwen2.5-7B-Instruct", {FULL: 28}, id="Qwen2: its window is switched off"),
    ],
)
def test_layer_kinds(name, want):
    assert kinds(facts_of(name)) == want


@pytest.mark.parametrize(
    ("config", "kind", "want"),
    [
        pytest.param(families.JAMBA_V01, FULL, [4, 12, 20, 28], id="Jamba: period and offset"),
        pytest.param(families.BAMBA_9B, FULL, [9, 18, 27], id="Bamba: listed"),
        pytest.param(families.LFM2_1_2B, FULL, [2, 5, 8, 10, 12, 14], id="LFM2: listed"),
        pytest.param(families.GRANITE_4_H_TINY, FULL, [5, 15, 25, 35], id="Granite 4: layer_types"),
        pytest.param(families.MINIMAX_TEXT_01, FULL, list(range(7, 80, 8)), id="MiniMax-01"),
        pytest.param(families.COMMAND_R7B, FULL, list(range(3, 32, 4)), id="Cohere 2: fourth"),
    ],
)
def test_where_the_full_layers_are(config, kind, want):
    assert indices(facts_from(config), kind) == want


@pytest.mark.parametrize(
    ("architecture", "window", "want"),
    [
        pytest.param("MistralForCausalLM", 4096, SLIDING, id="Mistral honours a window"),
        pytest.param("MistralForCausalLM", None, FULL, id="Mistral without one is full"),
        pytest.param("Phi3ForCausalLM", 2047, SLIDING, id="Phi-3 honours a window"),
        pytest.param("LlamaForCausalLM", 4096, FULL, id="Llama ignores one"),
        pytest.param("Qwen2ForCausalLM", 4096, FULL, id="Qwen2 ignores one"),
    ],
)
def test_a_window_counts_only_where_the_class_uses_it(architecture, window, want):
    config = tiny_llama(architectures=[architecture], sliding_window=window)
    assert {layer.kind for layer in facts_from(config).layers} == {want}


def test_a_window_layer_knows_its_window():
    windows = {layer.window_tokens for layer in facts_of("gpt-oss-20b").layers}
    assert windows == {0, 128}


def test_gemma_4_full_layers_have_wider_and_fewer_heads():
    by_kind = {layer.kind: layer for layer in facts_of("gemma-4-26B-A4B-it").layers}
    full, sliding = by_kind[FULL], by_kind[SLIDING]
    assert (full.num_key_value_heads, full.head_dim) == (2, 512)
    assert (sliding.num_key_value_heads, sliding.head_dim) == (8, 256)


def test_gemma_4_layers_that_share_a_cache_have_none_of_their_own():
    facts = facts_of("gemma-4-E2B-it")
    assert indices(facts, LayerKind.NONE) == list(range(15, 35))
    assert {layer.intermediate_size for layer in facts.layers} == {6144, 12288}


def test_a_latent_layer_keeps_rank_and_rope_together():
    layer = facts_of("DeepSeek-V3").layers[0]
    assert (layer.latent_dim, layer.head_dim, layer.v_head_dim) == (576, 192, 128)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("DeepSeek-V3", 0, id="DeepSeek-V3 has no sparse indexer"),
        pytest.param("GLM-5.1-FP8", 78, id="GLM-5.1 has one on every layer"),
        pytest.param("GLM-5.2-NVFP4", 21, id="GLM-5.2 shares one among four"),
    ],
)
def test_layers_with_an_indexer(name, want):
    facts = facts_of(name)
    assert sum(layer.indexer_bytes_per_token == 132 for layer in facts.layers) == want


@pytest.mark.parametrize(
    ("config", "want"),
    [
        pytest.param(
            config_of("Qwen3-Next-80B-A3B-Instruct"),
            StateShape(
                family="gdn",
                conv_channels=8192,
                conv_kernel=4,
                recurrent_heads=32,
                recurrent_elements_per_head=128 * 128,
                in_proj_width=8192 + 4096 + 64,
            ),
            id="gated DeltaNet, recurrent in the model's dtype",
        ),
        pytest.param(
            config_of("NVIDIA-Nemotron-Nano-9B-v2"),
            StateShape(
                family="mamba2",
                conv_channels=128 * 80 + 2 * 8 * 128,
                conv_kernel=4,
                recurrent_heads=128,
                recurrent_elements_per_head=80 * 128,
                n_groups=8,
                group_state_size=128,
                recurrent_dtype_bytes=4,
                in_proj_width=2 * 128 * 80 + 2 * 8 * 128 + 128,
            ),
            id="Mamba-2, float32 by default in Nemotron-H",
        ),
        pytest.param(
            families.JAMBA_V01,
            StateShape(
                family="mamba1",
                conv_channels=8192,
                conv_kernel=4,
                recurrent_heads=8192,
                recurrent_elements_per_head=16,
                in_proj_width=16384,
            ),
            id="Mamba-1",
        ),
        pytest.param(
            families.LFM2_1_2B,
            StateShape(
                family="short_conv",
                conv_channels=2048,
                conv_kernel=3,
                recurrent_heads=0,
                recurrent_elements_per_head=0,
                in_proj_width=6144,
            ),
            id="short convolution",
        ),
        pytest.param(
            config_of("Kimi-Linear-48B-A3B-Instruct-AWQ-4bit"),
            StateShape(
                family="kda",
                conv_channels=3 * 32 * 128,
                conv_kernel=4,
                recurrent_heads=32,
                recurrent_elements_per_head=128 * 128,
                recurrent_dtype_bytes=4,
                in_proj_width=3 * 32 * 128,
            ),
            id="Kimi delta attention, float32",
        ),
    ],
)
def test_state_shapes(config, want):
    facts = facts_from(config)
    assert next(layer.state for layer in facts.layers if layer.state) == want


def test_a_config_may_name_the_state_dtype():
    states = {layer.state.recurrent_dtype_bytes for layer in facts_of("Qwen3.8-27B-FP8").layers[:3]}
    assert states == {4}


@pytest.mark.parametrize(
    ("config", "want"),
    [
        pytest.param(families.JAMBA_V01, [0, 2, 4], id="Jamba: even layers are dense"),
        pytest.param(config_of("DeepSeek-V3"), [0, 1, 2], id="DeepSeek-V3: the first three"),
        pytest.param(families.GLM_4_5_AIR, [0], id="GLM-4.5: the first"),
        pytest.param(config_of("Qwen3-235B-A22B"), [], id="Qwen3-MoE: none"),
        pytest.param(config_of("Llama-4-Scout-17B-16E-Instruct"), [], id="Llama 4 Scout: none"),
    ],
)
def test_the_dense_layers_of_a_mixture(config, want):
    layers = facts_from(config).layers
    assert [i for i, layer in enumerate(layers) if layer.mlp == "dense"][:3] == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("DeepSeek-V3", (256, 8, 2048, 2048), id="one shared expert"),
        pytest.param(
            "Qwen3-Next-80B-A3B-Instruct", (512, 10, 512, 512), id="a shared expert's own key"
        ),
        pytest.param(
            "Mixtral-8x7B-Instruct-v0.1", (8, 2, 14336, 0), id="experts as wide as the MLP"
        ),
        pytest.param("gpt-oss-120b", (128, 4, 2880, 0), id="gpt-oss's own spelling"),
        pytest.param("Llama-4-Scout-17B-16E-Instruct", (16, 1, 8192, 8192), id="Llama 4 shares"),
    ],
)
def test_mixture_facts(name, want):
    moe = facts_of(name).moe
    got = (
        moe.num_experts,
        moe.num_experts_per_tok,
        moe.moe_intermediate_size,
        moe.shared_expert_intermediate_size,
    )
    assert got == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("Qwen3-Next-80B-A3B-Instruct", True, id="attention beside DeltaNet"),
        pytest.param("Falcon-H1-3B-Base", True, id="both in one layer"),
        pytest.param("gemma-3-12b-it", False, id="windows are not state"),
    ],
)
def test_hybrids_are_told_apart(name, want):
    assert facts_of(name).is_hybrid is want


def test_layers_of_nemotron_nas_differ_from_each_other():
    facts = facts_of("Llama-3_3-Nemotron-Super-49B-v1-GPTQ-4bit")
    assert kinds(facts) == {FULL: 49, LayerKind.NONE: 31}
    assert len({layer.intermediate_size for layer in facts.layers}) > 2


def test_what_the_longest_sequence_derives_from_is_kept():
    keys = facts_of("gpt-oss-120b").length_keys
    assert keys["max_position_embeddings"] == 131_072
    assert keys["rope_scaling"]["factor"] == 32.0
