"""Models with names, by hand: facts of published configs, used as they are or replaced."""

from dataclasses import replace

from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.model import (
    LayerFacts,
    LayerKind,
    MlaFacts,
    ModelFacts,
    MoeFacts,
    Quantization,
    Shard,
    StateShape,
    WeightGroup,
)
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB


def attention(kind=LayerKind.FULL, *, heads, kv_heads, head_dim, **more) -> LayerFacts:
    """An attention layer with a dense MLP unless said otherwise."""
    return LayerFacts(
        kind=kind,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        **more,
    )


def model(layers, *, name="test/model", architecture="LlamaForCausalLM", **more) -> ModelFacts:
    """Facts around a list of layers; the first attention layer speaks for the model."""
    spoken = next((layer for layer in layers if layer.num_attention_heads), LayerFacts(kind="none"))
    facts = {
        "name": name,
        "architecture": architecture,
        "model_type": "llama",
        "dtype": "bfloat16",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": len(layers),
        "num_attention_heads": spoken.num_attention_heads,
        "num_key_value_heads": spoken.num_key_value_heads,
        "head_dim": spoken.head_dim,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "layers": tuple(layers),
        "weight_groups": (),
        "checkpoint_bytes": 0,
        "weights_source": "config",
        "length_keys": {"max_position_embeddings": 131072},
    }
    return ModelFacts(**{**facts, **more})


def weights(*, layer_bytes, count, embedding_bytes, head_bytes) -> tuple[WeightGroup, ...]:
    """Weights of a dense model: embedding, equal layers, head."""
    layers = tuple(
        WeightGroup(shard=Shard.DIVIDED, loaded_bytes=layer_bytes, place="layer", layer=index)
        for index in range(count)
    )
    return (
        WeightGroup(shard=Shard.VOCAB, loaded_bytes=embedding_bytes, place="embedding"),
        *layers,
        WeightGroup(shard=Shard.VOCAB, loaded_bytes=head_bytes, place="head"),
    )


def llama_8b() -> ModelFacts:
    """meta-llama/Llama-3.1-8B-Instruct."""
    layer = attention(heads=32, kv_heads=8, head_dim=128, intermediate_size=14336)
    table = 128256 * 4096 * 2
    per_layer = (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336 + 2 * 4096) * 2
    return model(
        [layer] * 32,
        name="meta-llama/Llama-3.1-8B-Instruct",
        weight_groups=weights(
            layer_bytes=per_layer, count=32, embedding_bytes=table, head_bytes=table
        ),
        rotary_bytes=131072 * 128 * 2,
    )


def qwen25_7b(**more):
    """Qwen/Qwen2.5-7B-Instruct."""
    layer = attention(heads=28, kv_heads=4, head_dim=128, intermediate_size=18944)
    return model(
        [layer] * 28,
        architecture="Qwen2ForCausalLM",
        hidden_size=3584,
        intermediate_size=18944,
        vocab_size=152064,
        **more,
    )


def qwen3_32b() -> ModelFacts:
    """Qwen/Qwen3-32B."""
    layer = attention(heads=64, kv_heads=8, head_dim=128, intermediate_size=25600)
    table = 151936 * 5120 * 2
    per_layer = (5120 * 8192 * 2 + 5120 * 1024 * 2 + 3 * 5120 * 25600 + 2 * 5120 + 256) * 2
    return model(
        [layer] * 64,
        name="Qwen/Qwen3-32B",
        architecture="Qwen3ForCausalLM",
        model_type="qwen3",
        hidden_size=5120,
        intermediate_size=25600,
        vocab_size=151936,
        weight_groups=weights(
            layer_bytes=per_layer, count=64, embedding_bytes=table, head_bytes=table
        ),
        rotary_bytes=40960 * 128 * 2,
        length_keys={"max_position_embeddings": 40960},
    )


def deepseek_v3() -> ModelFacts:
    """deepseek-ai/DeepSeek-V3: latent attention, FP8 blocks, experts from the fourth layer on."""
    dense = latent(mlp="dense", intermediate_size=18432)
    experts = latent(mlp="moe", intermediate_size=18432)
    return model(
        [dense] * 3 + [experts] * 58,
        name="deepseek-ai/DeepSeek-V3",
        architecture="DeepseekV3ForCausalLM",
        model_type="deepseek_v3",
        hidden_size=7168,
        intermediate_size=18432,
        vocab_size=129280,
        mla=MlaFacts(
            kv_lora_rank=512,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
            q_lora_rank=1536,
        ),
        moe=MoeFacts(
            num_experts=256,
            num_experts_per_tok=8,
            moe_intermediate_size=2048,
            shared_expert_intermediate_size=2048,
        ),
        quantization=Quantization(method="fp8", weight_bits=8, weight_block=(128, 128)),
        length_keys={"max_position_embeddings": 163840},
    )


def latent(**more) -> LayerFacts:
    """A layer of DeepSeek's latent attention: 512 + 64 elements a token on every rank."""
    return LayerFacts(
        kind=LayerKind.MLA,
        num_attention_heads=128,
        num_key_value_heads=128,
        head_dim=192,
        v_head_dim=128,
        latent_dim=576,
        **more,
    )


def deepseek_v32() -> ModelFacts:
    """deepseek-ai/DeepSeek-V3.2: the same with a sparse indexer in every layer."""
    base = deepseek_v3()
    return replace(
        base,
        name="deepseek-ai/DeepSeek-V3.2",
        architecture="DeepseekV32ForCausalLM",
        model_type="deepseek_v32",
        layers=tuple(replace(layer, indexer_bytes_per_token=132) for layer in base.layers),
    )


def gpt_oss_120b() -> ModelFacts:
    """openai/gpt-oss-120b: window and full layers in turn."""
    shape = {"heads": 64, "kv_heads": 8, "head_dim": 64, "mlp": "moe"}
    pair = [
        attention(LayerKind.SLIDING, window_tokens=128, **shape),
        attention(LayerKind.FULL, **shape),
    ]
    return model(
        pair * 18,
        name="openai/gpt-oss-120b",
        architecture="GptOssForCausalLM",
        model_type="gpt_oss",
        hidden_size=2880,
        intermediate_size=2880,
        vocab_size=201088,
        moe=MoeFacts(num_experts=128, num_experts_per_tok=4, moe_intermediate_size=2880),
        quantization=Quantization(method="mxfp4", weight_bits=4.25, group_size=32),
    )


def gpt_oss_20b() -> ModelFacts:
    """openai/gpt-oss-20b."""
    base = gpt_oss_120b()
    return replace(
        base,
        name="openai/gpt-oss-20b",
        num_hidden_layers=24,
        layers=base.layers[:24],
        moe=MoeFacts(num_experts=32, num_experts_per_tok=4, moe_intermediate_size=2880),
    )


def gemma3_27b(*, is_multimodal=False) -> ModelFacts:
    """google/gemma-3-27b-it: five window layers, then a full one."""
    shape = {"heads": 32, "kv_heads": 16, "head_dim": 128, "intermediate_size": 21504}
    window = attention(LayerKind.SLIDING, window_tokens=1024, **shape)
    full = attention(LayerKind.FULL, **shape)
    return model(
        [full if (index + 1) % 6 == 0 else window for index in range(62)],
        name="google/gemma-3-27b-it",
        architecture="Gemma3ForConditionalGeneration",
        model_type="gemma3",
        hidden_size=5376,
        intermediate_size=21504,
        vocab_size=262208,
        tie_word_embeddings=True,
        is_multimodal=is_multimodal,
    )


def gated_delta_net(*, recurrent_dtype_bytes=2, key_heads=16, value_heads=32) -> StateShape:
    """Qwen's recurrent layer: heads of 128 x 128, a convolution of four."""
    channels = 2 * 128 * key_heads + 128 * value_heads
    return StateShape(
        family="gdn",
        conv_channels=channels,
        conv_kernel=4,
        recurrent_heads=value_heads,
        recurrent_elements_per_head=128 * 128,
        recurrent_dtype_bytes=recurrent_dtype_bytes,
        in_proj_width=channels + 128 * value_heads,
    )


def hybrid(*, full, state, count, **more) -> ModelFacts:
    """Three recurrent layers, then an attention layer."""
    recurrent = replace(full, kind=LayerKind.STATE, state=state, num_key_value_heads=0, head_dim=0)
    return model([full if (index + 1) % 4 == 0 else recurrent for index in range(count)], **more)


def qwen3_next() -> ModelFacts:
    """Qwen/Qwen3-Next-80B-A3B-Instruct."""
    return hybrid(
        full=attention(heads=16, kv_heads=2, head_dim=256, mlp="moe"),
        state=gated_delta_net(),
        count=48,
        name="Qwen/Qwen3-Next-80B-A3B-Instruct",
        architecture="Qwen3NextForCausalLM",
        model_type="qwen3_next",
        hidden_size=2048,
        intermediate_size=5120,
        vocab_size=151936,
        num_attention_heads=16,
        num_key_value_heads=2,
        head_dim=256,
        moe=MoeFacts(
            num_experts=512,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
        ),
        length_keys={"max_position_embeddings": 262144},
    )


def qwen36_27b(**more) -> ModelFacts:
    """Qwen/Qwen3.6-27B and 3.8: dense, three of four layers recurrent, state in fp32."""
    return hybrid(
        full=attention(heads=24, kv_heads=4, head_dim=256, intermediate_size=17408),
        state=gated_delta_net(recurrent_dtype_bytes=4, value_heads=48),
        count=64,
        name="Qwen/Qwen3.6-27B",
        architecture="Qwen3_5ForConditionalGeneration",
        model_type="qwen3_5",
        hidden_size=5120,
        intermediate_size=17408,
        vocab_size=248320,
        num_attention_heads=24,
        num_key_value_heads=4,
        head_dim=256,
        length_keys={"max_position_embeddings": 262144},
        **more,
    )


CARDS = {  # product -> total GiB as CUDA says, compute capability
    "NVIDIA-L4": (22.06, (8, 9)),
    "NVIDIA-L40S": (44.39, (8, 9)),
    "NVIDIA-A100-SXM4-80GB": (79.25, (8, 0)),
    "NVIDIA-H100-80GB-HBM3": (79.19, (9, 0)),
    "NVIDIA-H200": (139.81, (9, 0)),
    "NVIDIA-B200": (178.35, (10, 0)),
    "NVIDIA-RTX-PRO-6000": (94.97, (12, 0)),
}


def card(product="NVIDIA-H100-80GB-HBM3", **more) -> Gpu:
    """A card from the table."""
    total_gib, compute_capability = CARDS[product]
    facts = {
        "product": product,
        "total_bytes": round(total_gib * GIB),
        "compute_capability": compute_capability,
    }
    return Gpu(**{**facts, **more})


def settings(version="0.33.0", *, tensor_parallel_size=1, **more) -> EngineSettings:
    """Settings as asked; not resolved."""
    layout = more.pop("layout", ParallelLayout(tensor_parallel_size=tensor_parallel_size))
    return EngineSettings(version=EngineVersion.parse(version), layout=layout, **more)


def resolved(facts, gpu=None, version="0.33.0", **more) -> EngineSettings:
    """Settings as the engine completes them for a model on a card."""
    return resolve(settings(version, **more), facts, gpu or card())
