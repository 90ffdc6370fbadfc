"""Checkpoint tensors by name: what is divided, what is repeated, what is never loaded."""

from collections import Counter

import pytest

from builders_families import tiny_llama
from builders_models import config_of, facts_from, header
from shipfitter.core.model import Shard
from shipfitter.core.tensors import tensor_role
from shipfitter.core.weights import ParallelLayout, weights_bytes

DIVIDED, EXPERTS, REPLICATED = Shard.DIVIDED, Shard.EXPERTS, Shard.REPLICATED


@pytest.mark.parametrize(
    ("name", "want_shard", "want_place"),
    [
        pytest.param("model.embed_tokens.weight", Shard.VOCAB, "embedding", id="embedding"),
        pytest.param("transformer.wte.weight", Shard.VOCAB, "embedding", id="GPT-2's embedding"),
        pytest.param("lm_head.weight", Shard.VOCAB, "head", id="head"),
        pytest.param("model.norm.weight", REPLICATED, "head", id="final norm"),
        pytest.param("model.layers.3.self_attn.q_proj.weight", DIVIDED, "layer", id="queries"),
        pytest.param(
            "transformer.h.3.mlp.c_proj.bias", REPLICATED, "layer", id="row-parallel bias"
        ),
        pytest.param(
            "model.layers.3.mlp.up_proj.bias", DIVIDED, "layer", id="column-parallel bias"
        ),
        pytest.param("model.layers.3.input_layernorm.weight", REPLICATED, "layer", id="norm"),
        pytest.param("model.layers.3.mlp.gate.weight", REPLICATED, "layer", id="router"),
        pytest.param(
            "model.layers.3.mlp.gate_proj.weight", DIVIDED, "layer", id="gate is no router"
        ),
        pytest.param("model.layers.3.mlp.experts.7.up_proj.weight", EXPERTS, "layer", id="expert"),
        pytest.param(
            "model.layers.3.mlp.experts.gate_up_proj_blocks", EXPERTS, "layer", id="mxfp4"
        ),
        pytest.param(
            "model.layers.3.mlp.shared_experts.up_proj.weight", DIVIDED, "layer", id="shared expert"
        ),
        pytest.param(
            "model.layers.3.mlp.shared_expert_gate.weight", REPLICATED, "layer", id="its gate"
        ),
        pytest.param(
            "model.layers.3.self_attn.q_a_proj.weight", REPLICATED, "layer", id="latent down"
        ),
        pytest.param("model.layers.3.self_attn.kv_b_proj.weight", DIVIDED, "layer", id="latent up"),
        pytest.param(
            "model.layers.3.self_attn.indexer.wk.weight", REPLICATED, "layer", id="indexer"
        ),
        pytest.param("backbone.layers.3.mixer.conv1d.weight", DIVIDED, "layer", id="convolution"),
        pytest.param("backbone.layers.3.mixer.A_log", DIVIDED, "layer", id="a bare parameter"),
        pytest.param("model.layers.3.mlp.up_proj.input_scale", REPLICATED, "layer", id="one scale"),
        pytest.param("visual.blocks.3.attn.qkv.weight", Shard.TOWER, "other", id="Qwen's tower"),
        pytest.param(
            "vision_tower.encoder.layers.3.self_attn.q_proj.weight",
            Shard.TOWER,
            "other",
            id="a tower has layers too",
        ),
        pytest.param("multi_modal_projector.linear_1.weight", Shard.TOWER, "other", id="projector"),
        pytest.param(
            "model.language_model.layers.3.mlp.up_proj.weight",
            DIVIDED,
            "layer",
            id="under a wrapper",
        ),
        pytest.param(
            "model.layers.9.mlp.up_proj.weight", DIVIDED, "prediction", id="beyond the last"
        ),
        pytest.param("mtp.layers.0.mlp.up_proj.weight", DIVIDED, "prediction", id="mtp"),
        pytest.param(
            "backbone.embeddings.weight", Shard.VOCAB, "embedding", id="Nemotron's embedding"
        ),
        pytest.param(
            "model.layers.3.mlp.gate.e_score_correction_bias", REPLICATED, "layer", id="correction"
        ),
        pytest.param(
            "model.layers.3.router.proj.weight", REPLICATED, "layer", id="Gemma 4's router"
        ),
        pytest.param("vision_language_adapter.w_in.weight", Shard.TOWER, "other", id="an adapter"),
        pytest.param(
            "visual.patch_embed.proj.weight", REPLICATED, "other", id="a tower's patch embedding"
        ),
        pytest.param(
            "vision_tower.vision_model.embeddings.position_embedding.weight",
            REPLICATED,
            "other",
            id="a tower's positions",
        ),
        pytest.param(
            "multi_modal_projector.patch_merger.merging_layer.weight",
            REPLICATED,
            "other",
            id="Mistral 3's merging layer",
        ),
        pytest.param("visual.blocks.3.norm1.weight", REPLICATED, "other", id="a tower's norm"),
        pytest.param(
            "model.vision_embedder.patch_dense.weight",
            Shard.TOWER,
            "other",
            id="Gemma 4's patches without a tower",
        ),
        pytest.param("mtp.fc.weight", REPLICATED, "prediction", id="mtp outside layers"),
    ],
)
def test_roles(name, want_shard, want_place):
    role = tensor_role(name, num_hidden_layers=9)
    assert (role.shard, role.place) == (want_shard, want_place)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("model.layers.0.self_attn.rotary_emb.inv_freq", id="frequencies"),
        pytest.param("model.layers.0.self_attn.k_scale", id="a cache scale"),
        pytest.param("h.0.attn.bias", id="GPT-2's mask"),
        pytest.param("talker.model.layers.0.mlp.up_proj.weight", id="a talker"),
        pytest.param("model.layers.9.embed_tokens.weight", id="a prediction layer's embedding"),
        pytest.param("model.layers.9.shared_head.head.weight", id="a prediction layer's head"),
        pytest.param("model.layers.0.mlp.up_proj.weight_shape", id="a shape"),
    ],
)
def test_what_is_never_loaded(name):
    assert tensor_role(name, num_hidden_layers=9) is None


def llama_tensors(*, layers=2, hidden=64, kv=16, inner=256, vocabulary=1000):
    """The tensors tiny_llama's checkpoint would have."""
    outside = (
        header("model.embed_tokens.weight", vocabulary, hidden),
        header("model.norm.weight", hidden),
        header("lm_head.weight", vocabulary, hidden),
    )
    inside = tuple(
        header(f"model.layers.{index}.{module}.weight", *shape)
        for index in range(layers)
        for module, shape in {
            "self_attn.q_proj": (hidden, hidden),
            "self_attn.k_proj": (kv, hidden),
            "self_attn.v_proj": (kv, hidden),
            "self_attn.o_proj": (hidden, hidden),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }.items()
    )
    return (*outside, *inside)


def sizes(facts):
    """Bytes per way of dividing and place, whatever the order."""
    sums = Counter()
    for group in facts.weight_groups:
        sums[group.shard, group.place, group.layer, group.kv_heads] += group.loaded_bytes
    return sums


def test_headers_and_config_agree():
    config = tiny_llama()
    from_headers = facts_from(config, tensors=llama_tensors())
    assert from_headers.weights_source == "safetensors headers"
    assert sizes(from_headers) == sizes(facts_from(config))
    assert from_headers.checkpoint_bytes == facts_from(config).checkpoint_bytes


def test_a_fused_qkv_tensor_is_split_by_heads():
    config = tiny_llama(architectures=["Phi3ForCausalLM"])
    fused = tuple(
        header(t.name.replace("q_proj", "qkv_proj"), 96, 64) if "q_proj" in t.name else t
        for t in llama_tensors()
        if "k_proj" not in t.name and "v_proj" not in t.name
    )
    assert sizes(facts_from(config, tensors=fused)) == sizes(facts_from(config))


def test_single_experts_add_up_to_the_stacked_ones():
    config = tiny_llama(
        architectures=["MixtralForCausalLM"], num_local_experts=4, num_experts_per_tok=2
    )
    dense = tuple(t for t in llama_tensors() if ".mlp." not in t.name)
    experts = tuple(
        header(f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}.weight", *shape)
        for layer in range(2)
        for expert in range(4)
        for name, shape in {"w1": (256, 64), "w2": (64, 256), "w3": (256, 64)}.items()
    )
    gates = tuple(header(f"model.layers.{i}.block_sparse_moe.gate.weight", 4, 64) for i in range(2))
    from_headers = facts_from(config, tensors=(*dense, *experts, *gates))
    assert sizes(from_headers) == sizes(facts_from(config))


def test_vocabulary_rows_are_padded_to_sixty_four():
    facts = facts_from(tiny_llama(), tensors=llama_tensors())
    (embedding,) = (g for g in facts.weight_groups if g.place == "embedding")
    assert embedding.loaded_bytes == 1024 * 64 * 2


def test_a_tied_head_in_the_file_is_not_loaded():
    config = tiny_llama(tie_word_embeddings=True)
    facts = facts_from(config, tensors=llama_tensors())
    assert not [g for g in facts.weight_groups if g.place == "head" and g.shard is Shard.VOCAB]


@pytest.mark.parametrize(
    ("dtype", "want_bytes"),
    [
        pytest.param("F32", 64 * 64 * 2, id="float32 is cast down"),
        pytest.param("F16", 64 * 64 * 2, id="float16"),
        pytest.param("F8_E4M3", 64 * 64, id="fp8 stays"),
        pytest.param("I32", 64 * 64 * 4, id="packed integers stay"),
    ],
)
def test_loaded_bytes_follow_the_header(dtype, want_bytes):
    tensor = header("model.layers.0.self_attn.o_proj.weight", 64, 64, dtype=dtype)
    (group,) = facts_from(tiny_llama(), tensors=(tensor,)).weight_groups
    assert group.loaded_bytes == want_bytes


def test_symmetric_gptq_drops_zero_points_and_order():
    block = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False}
    path = "model.layers.0.mlp.up_proj"
    tensors = (
        header(f"{path}.qweight", 8, 256, dtype="I32"),
        header(f"{path}.qzeros", 2, 32, dtype="I32"),
        header(f"{path}.g_idx", 64, dtype="I32"),
        header(f"{path}.scales", 2, 256, dtype="F16"),
    )
    facts = facts_from(tiny_llama(quantization_config=block), tensors=tensors)
    loaded = sum(group.loaded_bytes for group in facts.weight_groups)
    assert loaded == 8 * 256 * 4 + 2 * 256 * 2


def test_a_quantised_latent_up_projection_is_unpacked_beside():
    plain = {key: v for key, v in config_of("DeepSeek-V3").items() if key != "quantization_config"}
    unpacked = 128 * (128 + 128) * 512 * 2
    rank = ParallelLayout(tensor_parallel_size=8)
    path = "model.layers.0.self_attn.kv_b_proj.weight"
    fp8, bf16 = (
        facts_from(config, tensors=(header(path, 32768, 512, dtype=dtype),))
        for config, dtype in ((config_of("DeepSeek-V3"), "F8_E4M3"), (plain, "BF16"))
    )
    got = weights_bytes(fp8, rank) - fp8.rotary_bytes
    assert got == pytest.approx(32768 * 512 / 8 + 61 * unpacked / 8, rel=1e-3)
    assert weights_bytes(bf16, rank) - bf16.rotary_bytes == 32768 * 512 * 2 / 8
