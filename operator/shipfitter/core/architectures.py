"""Model classes by name: which layers they have, how their weights look. No others are sized."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from shipfitter.core.text_config import TextConfig
from shipfitter.errors import UnknownArchitectureError

ALWAYS, NEVER = "always", "never"  # or the config key that decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What a class does that its config.json does not say.

    `pattern` names how layer kinds follow where config.json has no `layer_types`. Switches that
    are strings are ALWAYS, NEVER or the config key that turns them on.
    """

    pattern: str = "full"
    attention: str = "gqa"  # gqa | mla | compressed
    qkv_bias: str = NEVER
    out_bias: str = NEVER
    qk_norm: str = ""  # "" | head: one head wide | width: all heads | heads: a row per head
    qk_norm_key: str = ALWAYS
    output_gate: bool = False  # q_proj also makes a gate: twice as wide
    sinks: bool = False  # one learned number per head
    gated_mlp: bool = True
    mlp_bias: str = NEVER
    norms: int = 2  # per layer, hidden_size wide
    norm_bias: bool = False
    final_norm: bool = True
    head_bias: bool = False
    router_bias: bool = False
    shared_expert_gate: bool = False
    expert_bias: bool = False
    score_correction: bool = False
    expert_size_key: str = "moe_intermediate_size"
    positions_offset: int | None = None  # learned positions: max_position_embeddings + offset rows
    rotary: bool = True
    float32_rope: bool = False
    mixer: str = "self_attn"  # the attention's name in the checkpoint
    mlp: str = "mlp"
    tied: bool = False  # where config.json is silent
    pipeline: bool = True
    own_layer: str = ""  # family whose layers are built by their own rule (`special_modules`)


_LLAMA = Architecture(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
_QWEN2 = Architecture(qkv_bias=ALWAYS)
_QWEN3 = Architecture(qk_norm="head", qkv_bias="attention_bias")
_GEMMA = Architecture(tied=True, qkv_bias="attention_bias")
_GEMMA2 = replace(_GEMMA, pattern="alternate", norms=4)
_GEMMA3 = replace(_GEMMA, pattern="gemma3", norms=4, qk_norm="head")
_QWEN_GDN = Architecture(
    pattern="gdn", qk_norm="head", output_gate=True, shared_expert_gate=True, own_layer="gdn"
)
_DEEPSEEK = Architecture(attention="mla", score_correction=True)
_MAMBA2 = Architecture(pattern="mamba2", own_layer="mamba2", tied=True)
_BIASED = Architecture(
    qkv_bias=ALWAYS, out_bias=ALWAYS, mlp_bias=ALWAYS, gated_mlp=False, norm_bias=True
)
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
_BLOCK_SPARSE = "block_sparse_moe"

# Source: vLLM vllm/model_executor/models/registry.py and the module of each class, releases 0.8
# to 0.33; classes it serves through transformers: transformers models/*/modeling_*.py.
_TEXT_CLASSES: Mapping[str, Architecture] = MappingProxyType(
    {
        # Llama and the classes that are Llama in all that weighs something
        "LlamaForCausalLM": _LLAMA,
        "LLaMAForCausalLM": _LLAMA,
        "InternLM3ForCausalLM": replace(_LLAMA, qkv_bias="qkv_bias", out_bias="bias"),
        "SmolLM3ForCausalLM": replace(_LLAMA, tied=True),
        "SeedOssForCausalLM": replace(_LLAMA, out_bias="attention_out_bias"),
        "MistralForCausalLM": replace(_LLAMA, pattern="window"),
        "Ministral3ForCausalLM": replace(_LLAMA, pattern="window"),
        "GraniteForCausalLM": replace(_LLAMA, tied=True),
        "MiniCPMForCausalLM": replace(_LLAMA, tied=True),
        "InternLM2ForCausalLM": replace(_LLAMA, qkv_bias="bias", out_bias="bias"),
        "BaichuanForCausalLM": Architecture(),
        "ExaoneForCausalLM": Architecture(),
        "Ernie4_5ForCausalLM": replace(
            _LLAMA, qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", tied=True
        ),
        "DeciLMForCausalLM": replace(_LLAMA, pattern="blocks"),
        "Exaone4ForCausalLM": Architecture(pattern="exaone4", qk_norm="head"),
        "Phi3ForCausalLM": Architecture(pattern="window"),
        # Qwen
        "Qwen2ForCausalLM": _QWEN2,
        "Qwen3ForCausalLM": _QWEN3,
        "Qwen2MoeForCausalLM": replace(_QWEN2, shared_expert_gate=True),
        "Qwen3MoeForCausalLM": _QWEN3,
        "Qwen3NextForCausalLM": _QWEN_GDN,
        "Qwen3_5ForCausalLM": _QWEN_GDN,
        "Qwen3_5MoeForCausalLM": _QWEN_GDN,
        # Gemma
        "GemmaForCausalLM": _GEMMA,
        "Gemma2ForCausalLM": _GEMMA2,
        "Gemma3ForCausalLM": _GEMMA3,
        "Gemma4ForCausalLM": replace(
            _GEMMA3, pattern="gemma4", own_layer="gemma4", expert_size_key="moe_intermediate_size"
        ),
        # GLM
        "GlmForCausalLM": replace(_LLAMA, out_bias=NEVER, mlp_bias=NEVER),
        "Glm4ForCausalLM": replace(_LLAMA, norms=4, out_bias=NEVER, mlp_bias=NEVER),
        "Glm4MoeForCausalLM": Architecture(
            qkv_bias="attention_bias",
            qk_norm="head",
            qk_norm_key="use_qk_norm",
            score_correction=True,
        ),
        "Glm4MoeLiteForCausalLM": _DEEPSEEK,
        "GlmMoeDsaForCausalLM": _DEEPSEEK,
        # DeepSeek and Kimi
        "DeepseekV2ForCausalLM": replace(_DEEPSEEK, score_correction=False),
        "DeepseekV3ForCausalLM": _DEEPSEEK,
        "DeepseekV32ForCausalLM": _DEEPSEEK,
        "DeepseekV4ForCausalLM": Architecture(
            attention="compressed", score_correction=True, mixer="attn", mlp="ffn"
        ),
        "MistralLarge3ForCausalLM": replace(_DEEPSEEK, score_correction=False),
        "Mistral4ForCausalLM": replace(_DEEPSEEK, score_correction=False),
        "KimiLinearForCausalLM": replace(
            _DEEPSEEK, pattern="kda", own_layer="kda", rotary=False, mlp=_BLOCK_SPARSE
        ),
        # Other mixtures of experts
        "MixtralForCausalLM": Architecture(
            pattern="window", expert_size_key="intermediate_size", mlp=_BLOCK_SPARSE
        ),
        "GraniteMoeForCausalLM": Architecture(
            expert_size_key="intermediate_size", tied=True, mlp=_BLOCK_SPARSE
        ),
        "OlmoeForCausalLM": Architecture(qk_norm="width", expert_size_key="intermediate_size"),
        "GptOssForCausalLM": _GPT_OSS,
        "MiniMaxM2ForCausalLM": Architecture(
            qk_norm="width",
            qk_norm_key="use_qk_norm",
            score_correction=True,
            expert_size_key="intermediate_size",
            mlp=_BLOCK_SPARSE,
        ),
        "Llama4ForCausalLM": Architecture(
            pattern="llama4", mlp="feed_forward", expert_size_key="intermediate_size"
        ),
        "Ernie4_5_MoeForCausalLM": Architecture(score_correction=True, tied=True),
        # Cohere and OLMo
        "CohereForCausalLM": Architecture(
            norms=1, tied=True, qk_norm="heads", qk_norm_key="use_qk_norm"
        ),
        "Cohere2ForCausalLM": Architecture(pattern="cohere2", norms=1, tied=True),
        "Olmo2ForCausalLM": Architecture(qk_norm="width"),
        "Olmo3ForCausalLM": Architecture(pattern="cohere2", qk_norm="width"),
        # Hybrids
        "NemotronHForCausalLM": replace(
            _MAMBA2, pattern="nemotron_h", own_layer="nemotron_h", rotary=False, tied=False
        ),
        "BambaForCausalLM": replace(_MAMBA2, pattern="bamba", tied=False),
        "GraniteMoeHybridForCausalLM": replace(
            _MAMBA2, mlp=_BLOCK_SPARSE, expert_size_key="intermediate_size"
        ),
        "FalconH1ForCausalLM": replace(
            _MAMBA2, pattern="falcon_h1", tied=False, mlp="feed_forward", own_layer="falcon_h1"
        ),
        "JambaForCausalLM": Architecture(
            pattern="jamba",
            own_layer="mamba1",
            rotary=False,
            mlp="feed_forward",
            expert_size_key="intermediate_size",
        ),
        "Lfm2ForCausalLM": Architecture(
            pattern="lfm2", own_layer="short_conv", qk_norm="head", tied=True, mlp="feed_forward"
        ),
        "Lfm2MoeForCausalLM": Architecture(
            pattern="lfm2",
            own_layer="short_conv",
            qk_norm="head",
            tied=True,
            mlp="feed_forward",
            score_correction=True,
        ),
        "MiniMaxText01ForCausalLM": Architecture(
            pattern="minimax",
            own_layer="linear",
            mlp=_BLOCK_SPARSE,
            expert_size_key="intermediate_size",
        ),
        # Simple classes with plain MLPs
        "OPTForCausalLM": replace(_BIASED, tied=True, positions_offset=2, rotary=False),
        "PhiForCausalLM": replace(_BIASED, norms=1, head_bias=True),
        "GPT2LMHeadModel": replace(_BIASED, tied=True, positions_offset=0, rotary=False),
        "GPTBigCodeForCausalLM": replace(_BIASED, tied=True, positions_offset=0, rotary=False),
        "Starcoder2ForCausalLM": replace(
            _BIASED,
            pattern="window",
            qkv_bias="use_bias",
            out_bias="use_bias",
            mlp_bias="use_bias",
            tied=True,
        ),
        "GPTNeoXForCausalLM": _BIASED,
        "FalconForCausalLM": replace(
            _BIASED, qkv_bias="bias", out_bias="bias", mlp_bias="bias", norms=1, tied=True
        ),
        "NemotronForCausalLM": Architecture(gated_mlp=False, norm_bias=True),
        "ArceeForCausalLM": replace(_LLAMA, gated_mlp=False),
        "ApertusForCausalLM": Architecture(gated_mlp=False, qk_norm="head"),
        "StableLmForCausalLM": Architecture(qkv_bias="use_qkv_bias", norm_bias=True),
        # Window layers with heads of their own
        "MiMoV2ForCausalLM": Architecture(pattern="mimo_v2", score_correction=True),
        "MiMoV2FlashForCausalLM": Architecture(pattern="mimo_v2", score_correction=True),
    }
)


def architecture_of(config: TextConfig) -> Architecture:
    """The class's entry. Raises UnknownArchitectureError for a class not listed here by name."""
    found = _TEXT_CLASSES.get(config.architecture)
    if found is None:
        raise UnknownArchitectureError(
            f"model {config.model}: nothing is known of the cache and weights of class "
            f"{config.architecture}; name a supported class in spec.model.facts, or pin the sizing "
            "flags in spec.engine.args"
        )
    return found
