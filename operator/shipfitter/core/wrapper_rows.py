"""Multimodal classes by name, and the language models inside."""

from collections.abc import Mapping
from types import MappingProxyType

from shipfitter.core.wrapper import Wrapper

# Source: vLLM vllm/model_executor/models/<module of the class>: towers built of parallel linear
# layers are divided (unless --mm-encoder-tp-mode data), those made by transformers' AutoModel are
# whole on every rank. No class drops the tower on later pipeline stages.
WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Qwen2VLForConditionalGeneration": Wrapper(
            text_class="Qwen2ForCausalLM", multimodal_rope=True
        ),
        "Qwen2_5_VLForConditionalGeneration": Wrapper(
            text_class="Qwen2ForCausalLM", multimodal_rope=True
        ),
        "Qwen2_5OmniModel": Wrapper(text_class="Qwen2ForCausalLM", multimodal_rope=True),
        "Qwen2_5OmniForConditionalGeneration": Wrapper(
            text_class="Qwen2ForCausalLM", multimodal_rope=True
        ),
        "Qwen2AudioForConditionalGeneration": Wrapper(
            text_class="Qwen2ForCausalLM", tower_divided=False
        ),
        "Qwen3VLForConditionalGeneration": Wrapper(
            text_class="Qwen3ForCausalLM", multimodal_rope=True
        ),
        "Qwen3VLMoeForConditionalGeneration": Wrapper(
            text_class="Qwen3MoeForCausalLM", multimodal_rope=True
        ),
        "Qwen3OmniMoeForConditionalGeneration": Wrapper(
            text_class="Qwen3MoeForCausalLM", multimodal_rope=True
        ),
        "Qwen3_5ForConditionalGeneration": Wrapper(
            text_class="Qwen3_5ForCausalLM", multimodal_rope=True
        ),
        "Qwen3_5MoeForConditionalGeneration": Wrapper(
            text_class="Qwen3_5MoeForCausalLM", multimodal_rope=True
        ),
        "DotsOCRForCausalLM": Wrapper(text_class="Qwen2ForCausalLM"),
        "Gemma3ForConditionalGeneration": Wrapper(text_class="Gemma3ForCausalLM"),
        "Gemma4ForConditionalGeneration": Wrapper(
            text_class="Gemma4ForCausalLM", tower_divided=False, audio_by_config=True
        ),
        "Gemma4UnifiedForConditionalGeneration": Wrapper(text_class="Gemma4ForCausalLM"),
        "Llama4ForConditionalGeneration": Wrapper(text_class="Llama4ForCausalLM"),
        "KimiVLForConditionalGeneration": Wrapper(text_class="DeepseekV3ForCausalLM"),
        "KimiK25ForConditionalGeneration": Wrapper(text_class="DeepseekV3ForCausalLM"),
        "Glm4vForConditionalGeneration": Wrapper(text_class="Glm4ForCausalLM"),
        "Glm4vMoeForConditionalGeneration": Wrapper(text_class="Glm4MoeForCausalLM"),
        "Cohere2VisionForConditionalGeneration": Wrapper(text_class="Cohere2ForCausalLM"),
        "Lfm2VlForConditionalGeneration": Wrapper(text_class="Lfm2ForCausalLM"),
        "LlavaForConditionalGeneration": Wrapper(feature_layer=-2),
        "LlavaNextForConditionalGeneration": Wrapper(feature_layer=-2),
        "LlavaNextVideoForConditionalGeneration": Wrapper(feature_layer=-2),
        "LlavaOnevisionForConditionalGeneration": Wrapper(feature_layer=-1),
        "Mistral3ForConditionalGeneration": Wrapper(),
        "InternVLChatModel": Wrapper(),
        "InternVLForConditionalGeneration": Wrapper(),
        "SkyworkR1VChatModel": Wrapper(),
        "GLM4VForCausalLM": Wrapper(),
        "Granite4VisionForConditionalGeneration": Wrapper(),
        "UltravoxModel": Wrapper(tower_divided=False),
        # Text by the inner config's own class or type
        **dict.fromkeys(
            (
                "AriaForConditionalGeneration",
                "AyaVisionForConditionalGeneration",
                "BeeForConditionalGeneration",
                "Eagle2_5_VLForConditionalGeneration",
                "FuyuForCausalLM",
                "H2OVLChatModel",
                "HCXVisionForCausalLM",
                "HCXVisionV2ForCausalLM",
                "Idefics3ForConditionalGeneration",
                "InternS1ForConditionalGeneration",
                "InternVisionModel",
                "KananaVForConditionalGeneration",
                "LightOnOCRForConditionalGeneration",
                "LlavaOnevision2ForConditionalGeneration",
                "Llama_Nemotron_Nano_VL",
                "LlamaNemotronVLModel",
                "NVLM_D",
                "OpenCUAForConditionalGeneration",
                "Ovis",
                "Ovis2_5",
                "Ovis2_6ForCausalLM",
                "Ovis2_6_MoeForCausalLM",
                "PaliGemmaForConditionalGeneration",
                "PixtralForConditionalGeneration",
                "QianfanOCRForConditionalGeneration",
                "SmolVLMForConditionalGeneration",
                "VoxtralForConditionalGeneration",
            ),
            Wrapper(),
        ),
        "MantisForConditionalGeneration": Wrapper(feature_layer=-2),
        "TarsierForConditionalGeneration": Wrapper(feature_layer=-2),
        # Audio encoders that every rank has whole
        **dict.fromkeys(
            (
                "AudioFlamingo3ForConditionalGeneration",
                "MusicFlamingoForConditionalGeneration",
                "GlmAsrForConditionalGeneration",
                "GraniteSpeechForConditionalGeneration",
                "GraniteSpeechPlusForConditionalGeneration",
                "MoonshotKimiaForCausalLM",
            ),
            Wrapper(tower_divided=False),
        ),
        # Text whose class the inner config does not name
        **dict.fromkeys(
            ("Qwen3ASRForConditionalGeneration", "Qwen3ASRRealtimeGeneration"),
            Wrapper(text_class="Qwen3ForCausalLM", multimodal_rope=True),
        ),
        **dict.fromkeys(
            (
                "IsaacForConditionalGeneration",
                "RForConditionalGeneration",
                "KeyeForConditionalGeneration",
            ),
            Wrapper(text_class="Qwen3ForCausalLM"),
        ),
        "KeyeVL1_5ForConditionalGeneration": Wrapper(
            text_class="Qwen3ForCausalLM", multimodal_rope=True
        ),
        **dict.fromkeys(
            ("ColQwen3", "OpsColQwen3Model", "Qwen3VLNemotronEmbedModel"),
            Wrapper(text_class="Qwen3ForCausalLM", multimodal_rope=True),
        ),
        **dict.fromkeys(
            ("JinaVLForRanking", "Tarsier2ForConditionalGeneration"),
            Wrapper(text_class="Qwen2ForCausalLM", multimodal_rope=True),
        ),
        "MiDashengLMModel": Wrapper(text_class="Qwen2ForCausalLM", multimodal_rope=True),
        "ColPaliForRetrieval": Wrapper(text_class="GemmaForCausalLM"),
        "Exaone4_5_ForConditionalGeneration": Wrapper(text_class="Exaone4ForCausalLM"),
        "Gemma3nForConditionalGeneration": Wrapper(
            text_class="Gemma3nForCausalLM", tower_divided=False
        ),
        "GlmOcrForConditionalGeneration": Wrapper(text_class="Glm4ForCausalLM"),
        "HunYuanVLForConditionalGeneration": Wrapper(text_class="HunYuanDenseV1ForCausalLM"),
        "MiniMaxVL01ForConditionalGeneration": Wrapper(text_class="MiniMaxText01ForCausalLM"),
        "KimiK3ForConditionalGeneration": Wrapper(
            text_class="KimiLinearForCausalLM", tower_divided=False
        ),
        "PaddleOCRVLForConditionalGeneration": Wrapper(text_class="Ernie4_5ForCausalLM"),
        **dict.fromkeys(
            ("Phi3VForCausalLM", "Phi4MMForCausalLM", "Phi4ForCausalLMV"),
            Wrapper(text_class="Phi3ForCausalLM", tower_divided=False),
        ),
        "QwenVLForConditionalGeneration": Wrapper(text_class="QWenLMHeadModel"),
        "Step3VLForConditionalGeneration": Wrapper(text_class="Step3TextForCausalLM"),
        "StepVLForConditionalGeneration": Wrapper(text_class="Qwen3ForCausalLM"),
        **dict.fromkeys(
            (
                "NemotronH_Nano_VL_V2",
                "NemotronH_Nano_Omni_Reasoning_V3",
                "NemotronH_Super_Omni_Reasoning_V3",
                "NemotronH_Omni_Reasoning_V3",
            ),
            Wrapper(text_class="NemotronHForCausalLM", tower_divided=False),
        ),
        **dict.fromkeys(
            (
                "DeepseekVLV2ForCausalLM",
                "DeepseekOCRForCausalLM",
                "DeepseekOCR2ForCausalLM",
                "UnlimitedOCRForCausalLM",
            ),
            Wrapper(text_class="DeepseekV2ForCausalLM", tower_divided=False),
        ),
        # Text by the version in config.json: see `unwrap`
        "MiniCPMV": Wrapper(),
        "MiniCPMO": Wrapper(),
    }
)

# The language model inside, by its model_type. Source: transformers models/auto/modeling_auto.py.
TEXT_CLASS_OF_TYPE: Mapping[str, str] = MappingProxyType(
    {
        "llama": "LlamaForCausalLM",
        "mistral": "MistralForCausalLM",
        "ministral3": "Ministral3ForCausalLM",
        "mistral4": "Mistral4ForCausalLM",
        "mixtral": "MixtralForCausalLM",
        "qwen2": "Qwen2ForCausalLM",
        "qwen3": "Qwen3ForCausalLM",
        "qwen3_moe": "Qwen3MoeForCausalLM",
        "gemma": "GemmaForCausalLM",
        "gemma2": "Gemma2ForCausalLM",
        "gemma3_text": "Gemma3ForCausalLM",
        "phi3": "Phi3ForCausalLM",
        "internlm2": "InternLM2ForCausalLM",
        "granite": "GraniteForCausalLM",
        "granitemoehybrid": "GraniteMoeHybridForCausalLM",
        "gpt_oss": "GptOssForCausalLM",
        "deepseek_v2": "DeepseekV2ForCausalLM",
        "deepseek_v3": "DeepseekV3ForCausalLM",
        "kimi_k2": "DeepseekV3ForCausalLM",
        "aria_text": "AriaForCausalLM",
        "cohere": "CohereForCausalLM",
        "cohere2": "Cohere2ForCausalLM",
        "ernie4_5": "Ernie4_5ForCausalLM",
        "exaone4": "Exaone4ForCausalLM",
        "glm": "GlmForCausalLM",
        "glm4": "Glm4ForCausalLM",
        "hunyuan_v1_dense": "HunYuanDenseV1ForCausalLM",
        "hyperclovax": "HyperCLOVAXForCausalLM",
        "internlm3": "InternLM3ForCausalLM",
        "lfm2": "Lfm2ForCausalLM",
        "minicpm": "MiniCPMForCausalLM",
        "nemotron_h": "NemotronHForCausalLM",
        "olmo2": "Olmo2ForCausalLM",
        "opt": "OPTForCausalLM",
        "persimmon": "PersimmonForCausalLM",
        "phi": "PhiForCausalLM",
        "qwen2_moe": "Qwen2MoeForCausalLM",
        "qwen3_next": "Qwen3NextForCausalLM",
        "seed_oss": "SeedOssForCausalLM",
        "smollm3": "SmolLM3ForCausalLM",
    }
)


# MiniCPM-V and -o keep their text's keys at the top, and say whose they are by a version.
# Source: vLLM vllm/model_executor/models/{minicpmv,minicpmo}.py _SUPPORT_VERSION.
TEXT_CLASS_OF_VERSION: Mapping[str, str] = MappingProxyType(
    {
        "2.0": "MiniCPMForCausalLM",
        "2.5": "LlamaForCausalLM",
        "2.6": "Qwen2ForCausalLM",
        "4.0": "LlamaForCausalLM",
        "4.5": "Qwen3ForCausalLM",
    }
)
