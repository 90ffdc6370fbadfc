"""Model classes with one dense MLP in each layer, and full or window attention."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shipfitter.core.architecture import ALWAYS, NEVER, Architecture

LLAMA = Architecture(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
QWEN2 = Architecture(qkv_bias=ALWAYS)
QWEN3 = Architecture(qk_norm="head", qkv_bias="attention_bias")
GEMMA = Architecture(tied=True, qkv_bias="attention_bias")
GEMMA2 = replace(GEMMA, pattern="alternate", norms=4)
GEMMA3 = replace(GEMMA, pattern="gemma3", norms=4, qk_norm="head")
BIASED = Architecture(
    qkv_bias=ALWAYS, out_bias=ALWAYS, mlp_bias=ALWAYS, gated_mlp=False, norm_bias=True
)
_BIASED_LLAMA = replace(LLAMA, qkv_bias=ALWAYS, out_bias=ALWAYS, mlp_bias=ALWAYS)
_INTERNLM = replace(LLAMA, qkv_bias="bias", out_bias="bias")

# Source: vLLM vllm/model_executor/models/registry.py and the module of each class, releases 0.6
# to 0.33; classes it serves through transformers: transformers models/*/modeling_*.py.
DENSE: Mapping[str, Architecture] = MappingProxyType(
    {
        # Llama and the classes that are Llama in all that weighs something
        "LlamaForCausalLM": LLAMA,
        "InternLMForCausalLM": _INTERNLM,
        "InternLM2ForCausalLM": _INTERNLM,
        "InternLM3ForCausalLM": replace(LLAMA, qkv_bias="qkv_bias", out_bias="bias"),
        "SmolLM3ForCausalLM": replace(LLAMA, tied=True),
        "SeedOssForCausalLM": replace(LLAMA, out_bias="attention_out_bias"),
        "MistralForCausalLM": replace(LLAMA, pattern="window"),
        "Ministral3ForCausalLM": replace(LLAMA, pattern="window"),
        "GraniteForCausalLM": replace(LLAMA, tied=True),
        "MiniCPMForCausalLM": replace(LLAMA, tied=True),
        "MiniCPM3ForCausalLM": Architecture(attention="mla_expanded", tied=True),
        "BaichuanForCausalLM": Architecture(),
        "ExaoneForCausalLM": Architecture(),
        "Ernie4_5ForCausalLM": replace(
            LLAMA, qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", tied=True
        ),
        "DeciLMForCausalLM": replace(LLAMA, pattern="blocks"),
        "Exaone4ForCausalLM": Architecture(pattern="exaone4", qk_norm="head"),
        "Phi3ForCausalLM": Architecture(pattern="window"),
        "SolarForCausalLM": replace(LLAMA, pattern="window"),
        "TeleChat2ForCausalLM": replace(_BIASED_LLAMA, qkv_bias=NEVER),
        "TeleFLMForCausalLM": LLAMA,
        "XverseForCausalLM": LLAMA,
        "OrionForCausalLM": Architecture(norm_bias=True),
        "Step1ForCausalLM": replace(LLAMA, rotary=False),
        "HyperCLOVAXForCausalLM": replace(LLAMA, more_norms="use_post_norm"),
        "HunYuanDenseV1ForCausalLM": replace(
            LLAMA, qk_norm="head", qk_norm_key="use_qk_norm", tied=True
        ),
        "PanguEmbeddedForCausalLM": replace(LLAMA, qkv_bias="bias", out_bias="bias"),
        "Jais2ForCausalLM": replace(LLAMA, gated_mlp=False, norm_bias=True),
        "JAISLMHeadModel": replace(BIASED, gated_mlp=True, rotary=False, tied=True),
        "ChatGLMModel": Architecture(
            qkv_bias="add_bias_linear|add_qkv_bias",
            out_bias="add_bias_linear",
            mlp_bias="add_bias_linear",
            rotated_part=0.5,
        ),
        # Qwen
        "QWenLMHeadModel": Architecture(pattern="qwen", qkv_bias=ALWAYS),
        "Qwen2ForCausalLM": QWEN2,
        "Qwen3ForCausalLM": QWEN3,
        # Gemma
        "GemmaForCausalLM": GEMMA,
        "Gemma2ForCausalLM": GEMMA2,
        "VaultGemmaForCausalLM": replace(GEMMA, pattern="alternate"),
        "Gemma3ForCausalLM": GEMMA3,
        "Gemma3nForCausalLM": replace(GEMMA3, pattern="gemma3n", own_layer="gemma3n"),
        "Gemma4ForCausalLM": replace(
            GEMMA3, pattern="gemma4", own_layer="gemma4", expert_size_key="moe_intermediate_size"
        ),
        "Rnj1ForCausalLM": replace(GEMMA3, pattern="full"),
        "MuseGlimmerForCausalLM": Architecture(norms=4, attention_gate="width"),
        # GLM
        "GlmForCausalLM": replace(LLAMA, out_bias=NEVER, mlp_bias=NEVER),
        "Glm4ForCausalLM": replace(LLAMA, norms=4, out_bias=NEVER, mlp_bias=NEVER),
        # Cohere and OLMo
        "CohereForCausalLM": Architecture(
            norms=1, tied=True, qk_norm="heads", qk_norm_key="use_qk_norm"
        ),
        "Cohere2ForCausalLM": Architecture(pattern="cohere2", norms=1, tied=True),
        "OlmoForCausalLM": Architecture(norms=0, final_norm=False),
        "Olmo2ForCausalLM": Architecture(qk_norm="width"),
        "Olmo3ForCausalLM": Architecture(pattern="cohere2", qk_norm="width"),
        "Plamo3ForCausalLM": Architecture(pattern="plamo3", norms=4, qk_norm="head"),
        # Simple classes with plain MLPs
        "OPTForCausalLM": replace(BIASED, tied=True, positions_offset=2, rotary=False),
        "PhiForCausalLM": replace(BIASED, norms=1, head_bias=True, rotated_part=0.5),
        "GPT2LMHeadModel": replace(BIASED, tied=True, positions_offset=0, rotary=False),
        "GPTBigCodeForCausalLM": replace(BIASED, tied=True, positions_offset=0, rotary=False),
        "GPTJForCausalLM": replace(BIASED, qkv_bias=NEVER, out_bias=NEVER, norms=1, head_bias=True),
        "BloomForCausalLM": replace(BIASED, tied=True, rotary=False, embedding_norm=True),
        "MPTForCausalLM": Architecture(pattern="mpt", gated_mlp=False, tied=True, rotary=False),
        "PersimmonForCausalLM": replace(BIASED, qk_norm="head", rotated_part=0.5),
        "Starcoder2ForCausalLM": replace(
            BIASED,
            pattern="window",
            qkv_bias="use_bias",
            out_bias="use_bias",
            mlp_bias="use_bias",
            tied=True,
        ),
        "GPTNeoXForCausalLM": replace(BIASED, rotated_part=0.25),
        "FalconForCausalLM": replace(
            BIASED, qkv_bias="bias", out_bias="bias", mlp_bias="bias", norms=1, tied=True
        ),
        "NemotronForCausalLM": Architecture(gated_mlp=False, norm_bias=True, rotated_part=0.5),
        "ArceeForCausalLM": replace(LLAMA, gated_mlp=False),
        "ApertusForCausalLM": Architecture(gated_mlp=False, qk_norm="head"),
        "StableLmForCausalLM": Architecture(
            qkv_bias="use_qkv_bias", norm_bias=True, rotated_part=0.25
        ),
    }
)
