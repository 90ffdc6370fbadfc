"""Wrappers around a language model: which class is inside, and how the engine places the tower."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from shipfitter.core.text_config import TextConfig
from shipfitter.errors import UnknownArchitectureError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A multimodal class; `text_class` is empty where the inner config decides."""

    text_class: str = ""
    tower_divided: bool = True  # tensor parallelism divides the tower; else every rank has it whole
    multimodal_rope: bool = False  # rope over three axes even where config.json is silent
    # The layer of the tower whose output is used, where config.json is silent; later ones are not
    # built. None: all are. Source: vLLM llava.py init_vision_tower_for_llava.
    feature_layer: int | None = None
    audio_by_config: bool = False  # no audio tower is built where config.json describes none


# Source: vLLM vllm/model_executor/models/<module of the class>: towers built of parallel linear
# layers are divided (unless --mm-encoder-tp-mode data), those made by transformers' AutoModel are
# whole on every rank. No class drops the tower on later pipeline stages.
_WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
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
        "PaliGemmaForConditionalGeneration": Wrapper(),
        "InternVLChatModel": Wrapper(),
        "InternVLForConditionalGeneration": Wrapper(),
        "SkyworkR1VChatModel": Wrapper(),
        "GLM4VForCausalLM": Wrapper(),
        "Granite4VisionForConditionalGeneration": Wrapper(),
        "UltravoxModel": Wrapper(tower_divided=False),
    }
)

# The language model inside, by its model_type. Source: transformers models/auto/modeling_auto.py.
_TEXT_CLASS_OF_TYPE: Mapping[str, str] = MappingProxyType(
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
    }
)


def unwrap(config: TextConfig) -> tuple[TextConfig, Wrapper | None]:
    """The config under its language model's class, and the wrapper where there is one.

    Raises UnknownArchitectureError for a known wrapper around an unknown language model.
    """
    wrapper = _WRAPPERS.get(config.architecture)
    if wrapper is None:
        return config, None
    inner = wrapper.text_class or _TEXT_CLASS_OF_TYPE.get(config.model_type, "")
    named = config.text.get("architectures") or ()
    if not inner and named and config.text is not config.whole:
        inner = named[0]
    if not inner:
        raise UnknownArchitectureError(
            f"model {config.model}: {config.architecture} wraps a language model of type "
            f"{config.model_type!r}, of which nothing is known; name a supported class in "
            "spec.model.facts, or pin the sizing flags in spec.engine.args"
        )
    return TextConfig(
        model=config.model, architecture=inner, text=config.text, whole=config.whole
    ), wrapper
