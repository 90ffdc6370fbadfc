"""config.json with its many spellings folded into one: the language model's keys, one name each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.errors import UnknownArchitectureError

# Where multimodal configs keep their language model, outermost first.
# Source: transformers configuration_*.py of the wrappers; vLLM vllm/transformers_utils/config.py
# get_hf_text_config.
NESTED = ("thinker_config", "text_config", "llm_config", "language_config", "language_model")

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_key_value_heads": (
        "num_key_value_heads",
        "num_kv_heads",
        "n_head_kv",
        "kv_n_heads",
        "multi_query_group_num",
        "num_attention_groups",
    ),
    "intermediate_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels", "hidden_size_per_head"),
    "vocab_size": ("padded_vocab_size", "vocab_size"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "max_position_embedding",
        "n_positions",
        "seq_length",
        "max_seq_len",
    ),
    "num_experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "top_k_experts",
        "moe_topk",
        "moe_top_k",
        "moe_k",
    ),
    "moe_intermediate_size": ("moe_intermediate_size", "expert_intermediate_size"),
    "n_shared_experts": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
    "moe_latent_size": ("moe_latent_size", "routed_expert_hidden_size"),
    "layer_types": ("layer_types", "layers_block_type"),
    "dtype": ("torch_dtype", "dtype"),
}

# Parts that some configs keep in blocks of their own. Source: transformers models/{dbrx,mpt}.
_BLOCKS = ("attn_config", "ffn_config")

# What transformers fills in where an old config.json leaves keys out.
# Source: transformers 5.24 models/gemma3/configuration_gemma3.py Gemma3TextConfig.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma3_text": {
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 4096,
        "max_position_embeddings": 131_072,
    },
}


@dataclass(frozen=True, slots=True)
class TextConfig:
    """The language model's part of a config.json, and the whole for what only it says."""

    model: str  # for messages
    architecture: str
    text: Mapping[str, Any]
    whole: Mapping[str, Any]

    @classmethod
    def read(cls, config: Mapping[str, Any], *, model: str) -> "TextConfig":
        """Find the language model inside; Raises UnknownArchitectureError without a class name."""
        architectures = config.get("architectures") or ()
        if not architectures:
            raise UnknownArchitectureError(
                f"model {model}: config.json names no class in `architectures`; "
                "add it, or give spec.model.facts"
            )
        text: Mapping[str, Any] = config
        for key in NESTED:
            inner = text.get(key)
            if isinstance(inner, Mapping) and inner:
                text = inner
        model_type = str(text.get("model_type", ""))
        defaults = _DEFAULTS.get(model_type)
        filled = {**defaults, **text} if defaults else text
        for key in _BLOCKS:
            if isinstance(text.get(key), Mapping):
                filled = {**text[key], **filled}
        return cls(model=model, architecture=architectures[0], text=filled, whole=config)

    @property
    def model_type(self) -> str:
        """The language model's own model_type."""
        return str(self.text.get("model_type", ""))

    def get(self, key: str, default: Any = None) -> Any:
        """The value under any of the key's spellings; null counts as absent."""
        for spelling in _SPELLINGS.get(key, (key,)):
            value = self.text.get(spelling)
            if value is not None:
                return value
        return default

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number the class cannot do without, unless there is a default."""
        value = self.get(key, default)
        if isinstance(value, list) and value and all(one == value[0] for one in value):
            value = value[0]  # Hunyuan says it for each layer
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnknownArchitectureError(
                f"model {self.model}: config.json of {self.architecture} has no usable `{key}` "
                f"(found {value!r}); add it, or give spec.model.facts"
            )
        return int(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """A switch; absent is the default."""
        return bool(self.get(key, default))

    @property
    def hidden_size(self) -> int:
        """Width of the residual stream."""
        return self.count("hidden_size")

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        heads = self.get("num_attention_heads", 0)
        return self.count("head_dim", self.hidden_size // heads if heads else 0)

    @property
    def num_key_value_heads(self) -> int:
        """Heads of keys and values; as many as query heads where nothing is said."""
        heads = self.count("num_attention_heads", 0)
        if self.flag("multi_query") and not self.flag("new_decoder_architecture"):
            return 1  # Falcon
        return self.count("num_key_value_heads", heads)

    def ties_embeddings(self, *, default: bool) -> bool:
        """Whether the output head is the embedding again."""
        for config in (self.text, self.whole):
            value = config.get("tie_word_embeddings")
            if value is not None:
                return bool(value)
        return default

    @property
    def dtype(self) -> str:
        """What the engine computes in: bfloat16 or float16.

        Source: vLLM vllm/config/model.py _get_and_verify_dtype: float32 is cast down.
        """
        stated = str(self.get("dtype") or self.whole.get("torch_dtype") or self.whole.get("dtype"))
        return "float16" if stated.removeprefix("torch.") in ("float16", "half") else "bfloat16"

    @property
    def stored_float_bytes(self) -> int:
        """Bytes of an unquantised element in the file, as the config says."""
        stated = str(self.get("dtype") or self.whole.get("torch_dtype") or self.whole.get("dtype"))
        return 4 if stated.removeprefix("torch.") in ("float32", "float") else 2
