"""Model classes with routed experts, latent attention, and both."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shipfitter.core.architecture import ALWAYS, Architecture
from shipfitter.core.architecture_rows_dense import LLAMA, QWEN2, QWEN3

BLOCK_SPARSE = "block_sparse_moe"
DEEPSEEK = Architecture(attention="mla", score_correction=True)
_GLM4_MOE = Architecture(
    qkv_bias="attention_bias", qk_norm="head", qk_norm_key="use_qk_norm", score_correction=True
)
_GRANITE_MOE = Architecture(expert_size_key="intermediate_size", tied=True, mlp=BLOCK_SPARSE)
_GPT_OSS = Architecture(
    pattern="alternate",
    qkv_bias=ALWAYS,
    out_bias=ALWAYS,
    sinks=True,
    float32_rope=True,
    router_bias=True,
    expert_bias=True,
    expert_size_key="intermediate_size",
)
_BAILING = Architecture(
    qkv_bias="use_bias|use_qkv_bias",
    out_bias="use_bias",
    mlp_bias="use_bias",
    qk_norm="head",
    qk_norm_key="use_qk_norm",
    score_correction=True,
)
_MIMO_V2 = Architecture(pattern="mimo_v2", score_correction=True)

# Source: vLLM vllm/model_executor/models/registry.py and the module of each class, releases 0.6
# to 0.33.
MIXTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Qwen2MoeForCausalLM": replace(QWEN2, shared_expert_gate=True),
        "Qwen3MoeForCausalLM": QWEN3,
        "Glm4MoeForCausalLM": _GLM4_MOE,
        "Dots1ForCausalLM": replace(_GLM4_MOE, qk_norm_key=ALWAYS),
        "ExaoneMoeForCausalLM": Architecture(
            pattern="exaone4", qk_norm="head", score_correction=True
        ),
        "AfmoeForCausalLM": Architecture(
            pattern="afmoe",
            norms=4,
            qk_norm="head",
            attention_gate="width",
            score_correction=True,
        ),
        "BailingMoeForCausalLM": _BAILING,
        "BailingMoeV2ForCausalLM": _BAILING,
        "SarvamMoEForCausalLM": _BAILING,
        "Param2MoEForCausalLM": _BAILING,
        # Latent attention
        "Glm4MoeLiteForCausalLM": DEEPSEEK,
        "GlmMoeDsaForCausalLM": DEEPSEEK,
        "DeepseekForCausalLM": replace(LLAMA, score_correction=False),
        "DeepseekV2ForCausalLM": replace(DEEPSEEK, score_correction=False),
        "DeepseekV3ForCausalLM": DEEPSEEK,
        "DeepseekV32ForCausalLM": DEEPSEEK,
        "DeepseekV4ForCausalLM": Architecture(
            attention="compressed", score_correction=True, mixer="attn", mlp="ffn"
        ),
        "MistralLarge3ForCausalLM": replace(DEEPSEEK, score_correction=False),
        "Mistral4ForCausalLM": replace(DEEPSEEK, score_correction=False),
        "PanguUltraMoEForCausalLM": replace(DEEPSEEK, more_norms="sandwich_norm"),
        "SarvamMLAForCausalLM": DEEPSEEK,
        "AXK1ForCausalLM": replace(DEEPSEEK, norms=3),
        # Mixtral and what followed it
        "MixtralForCausalLM": Architecture(
            pattern="window", expert_size_key="intermediate_size", mlp=BLOCK_SPARSE
        ),
        "PhiMoEForCausalLM": Architecture(
            pattern="window",
            qkv_bias="attention_bias",
            out_bias="attention_bias",
            norm_bias=True,
            head_bias=True,
            expert_size_key="intermediate_size",
            mlp=BLOCK_SPARSE,
        ),
        "DbrxForCausalLM": Architecture(
            norm_bias=True, expert_size_key="intermediate_size", mlp="ffn"
        ),
        "Grok1ModelForCausalLM": Architecture(pattern="grok", norms=4, mlp="moe_block"),
        "GraniteMoeForCausalLM": _GRANITE_MOE,
        "GraniteMoeSharedForCausalLM": _GRANITE_MOE,
        "OlmoeForCausalLM": Architecture(qk_norm="width", expert_size_key="intermediate_size"),
        "GptOssForCausalLM": _GPT_OSS,
        "MiniMaxM2ForCausalLM": Architecture(
            qk_norm="width",
            qk_norm_key="use_qk_norm",
            score_correction=True,
            expert_size_key="intermediate_size",
            mlp=BLOCK_SPARSE,
        ),
        "Llama4ForCausalLM": Architecture(
            pattern="llama4", mlp="feed_forward", expert_size_key="intermediate_size"
        ),
        "Ernie4_5_MoeForCausalLM": Architecture(score_correction=True, tied=True),
        "HunYuanMoEV1ForCausalLM": replace(
            LLAMA, qk_norm="head", qk_norm_key="use_qk_norm", tied=True
        ),
        "AriaForCausalLM": replace(LLAMA, expert_size_key="intermediate_size"),
        "HYV3ForCausalLM": Architecture(
            qk_norm="head",
            qk_norm_key="qk_norm",
            score_correction=True,
            expert_size_key="expert_hidden_dim",
        ),
        "Cohere2MoeForCausalLM": Architecture(
            pattern="cohere2", norms=1, tied=True, expert_size_key="intermediate_size"
        ),
        # Windows with heads of their own
        "MiMoV2ForCausalLM": _MIMO_V2,
        "MiMoV2FlashForCausalLM": _MIMO_V2,
        "Step3TextForCausalLM": Architecture(
            pattern="step3", own_layer="step3", mlp="moe", expert_size_key="moe_intermediate_size"
        ),
        "Step3p5ForCausalLM": Architecture(
            pattern="step3p5",
            qk_norm="head",
            qkv_bias="attention_bias",
            attention_gate="heads",
            attention_gate_key="use_head_wise_attn_gate",
            score_correction=True,
            mlp="moe",
        ),
        "LagunaForCausalLM": Architecture(
            pattern="laguna",
            qkv_bias="attention_bias",
            out_bias="attention_bias",
            qk_norm="head",
            attention_gate="heads",
            score_correction=True,
        ),
    }
)
