"""Model classes by name: which layers they have, how their weights look. No others are sized."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shipfitter.core.architecture import ALWAYS, NEVER, Architecture
from shipfitter.core.architecture_rows_dense import DENSE
from shipfitter.core.architecture_rows_encoders import ENCODERS
from shipfitter.core.architecture_rows_hybrids import HYBRIDS
from shipfitter.core.architecture_rows_mixtures import MIXTURES
from shipfitter.core.text_config import TextConfig
from shipfitter.errors import UnknownArchitectureError

__all__ = ["ALWAYS", "NEVER", "Architecture", "architecture_of"]

_CLASSES: Mapping[str, Architecture] = MappingProxyType(
    {**DENSE, **MIXTURES, **HYBRIDS, **ENCODERS}
)

# Other names of the same layers, and classes the engine itself runs as another.
# Source: vLLM vllm/model_executor/models/registry.py, releases 0.6 to 0.33.
_SAME_AS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "LLaMAForCausalLM",
                "AquilaModel",
                "AquilaForCausalLM",
                "CwmForCausalLM",
                "Fairseq2LlamaForCausalLM",
                "IQuestCoderForCausalLM",
                "NanbeigeForCausalLM",
                "TeleChat3ForCausalLM",
            ),
            "LlamaForCausalLM",
        ),
        "GritLM": "MistralForCausalLM",
        "GraniteSWAForCausalLM": "GraniteForCausalLM",
        "GraniteMoeSWAForCausalLM": "GraniteMoeSharedForCausalLM",
        "MiMoForCausalLM": "Qwen2ForCausalLM",
        "MellumForCausalLM": "Qwen3MoeForCausalLM",
        "BaiChuanForCausalLM": "BaichuanForCausalLM",
        "ChatGLMForConditionalGeneration": "ChatGLMModel",
        "InternLM2VEForCausalLM": "InternLM2ForCausalLM",
        "RWForCausalLM": "FalconForCausalLM",
        "MptForCausalLM": "MPTForCausalLM",
        "StableLMEpochForCausalLM": "StableLmForCausalLM",
        "TeleChatForCausalLM": "TeleChat2ForCausalLM",
        "ExaoneMoEForCausalLM": "ExaoneMoeForCausalLM",
        "FlexOlmoForCausalLM": "OlmoeForCausalLM",
        "Grok1ForCausalLM": "Grok1ModelForCausalLM",
        "MiniMaxForCausalLM": "MiniMaxText01ForCausalLM",
        "MiniMaxM1ForCausalLM": "MiniMaxText01ForCausalLM",
        "NemotronHPuzzleForCausalLM": "NemotronHForCausalLM",
        "Gemma3TextModel": "Gemma3ForCausalLM",
        "XLMRobertaModel": "RobertaModel",
        "BgeM3EmbeddingModel": "RobertaModel",
        "GteModel": "GteNewModel",
        "DeepseekV3BidirectionalModel": "DeepseekV3ForCausalLM",
        "VoyageQwen3BidirectionalEmbedModel": "Qwen3ForCausalLM",
        "Lfm2BidirectionalModel": "Lfm2ForCausalLM",
    }
)

# What a class for embeddings or scores is called after the class it is made of.
# Source: vLLM vllm/config/model.py _SUFFIX_TO_DEFAULTS, models/adapters.py.
_POOLING_SUFFIXES = (
    "ForTextEncoding",
    "EmbeddingModel",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForProcessRewardModel",
    "ForRewardModeling",
    "ForRewardModel",
    "ForMaskedLM",
    "RewardModel",
    "Model",
)
_MADE_OF = ("ForCausalLM", "LMHeadModel", "Model")


def architecture_of(config: TextConfig) -> Architecture:
    """The class's entry. Raises UnknownArchitectureError for a class not listed here by name."""
    found = _named(config.architecture)
    if found is None:
        raise UnknownArchitectureError(
            f"model {config.model}: nothing is known of the cache and weights of class "
            f"{config.architecture}; name a supported class in spec.model.facts, or pin the sizing "
            "flags in spec.engine.args"
        )
    if found.attention == "mla" and not config.get("qk_nope_head_dim"):
        found = replace(found, attention="gqa")  # small DeepSeek-V2 inside OCR and VL2
    if _looks_both_ways(config):
        return replace(found, encoder=True)
    return found


def _named(name: str) -> Architecture | None:
    known = _CLASSES.get(_SAME_AS.get(name, name))
    if known is not None:
        return replace(known, head=False) if _is_headless(name) else known
    suffix = next((suffix for suffix in _POOLING_SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        return None
    made_of = (name.removesuffix(suffix) + ending for ending in _MADE_OF)
    found = (_CLASSES.get(_SAME_AS.get(candidate, candidate)) for candidate in made_of)
    base = next((candidate for candidate in found if candidate is not None), None)
    return None if base is None else replace(base, head=False)


def _is_headless(name: str) -> bool:
    return name not in _CLASSES and name.endswith("Model") and not name.startswith("Aquila")


def _looks_both_ways(config: TextConfig) -> bool:
    """Source: vLLM models/config.py Gemma3TextModelConfig and its like, is_causal of classes."""
    bidirectional = "Bidirectional" in config.architecture
    stated = config.get("is_causal") is False or config.get("use_bidirectional_attention") is True
    return bidirectional or stated
