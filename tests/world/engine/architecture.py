"""From a config.json to the layers that keep a cache, with bytes on one rank.

Source: vLLM 0.33 vllm/model_executor/models/*: what each class registers as its cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from world.engine.state_layers import state_kinds, state_shape

DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
SPARSE_INDEXER_BYTES = 132  # 128 fp8 values and one fp32 scale a token

# Caches laid out in ways this stub does not play.
UNPLAYED = ("deepseek_v4", "kimi_k3", "glm5_next", "qwen4_exp", "step5", "minimax_m3")


@dataclass(frozen=True)
class Kept:
    """What one decoder layer keeps on one rank."""

    kind: str  # full, sliding, chunked, mla, mamba
    token_bytes: int = 0
    state_bytes: int = 0
    window: int = 0
    shape: tuple[Any, ...] = ()  # layers of one shape can share a group


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of the config."""
    for key in ("text_config", "llm_config", "language_config"):
        if isinstance(config.get(key), dict):
            part: Mapping[str, Any] = config[key]
            return part
    return config


def model_dtype(config: Mapping[str, Any], asked: str) -> str:
    """The dtype the engine computes in: fp32 checkpoints become bf16."""
    if asked not in ("auto", "half"):
        return {"bf16": "bfloat16", "fp16": "float16", "float": "float32"}.get(asked, asked)
    text = text_config(config)
    named = config.get("torch_dtype") or config.get("dtype") or text.get("torch_dtype")
    named = str(named or text.get("dtype") or "bfloat16").removeprefix("torch.")
    return "float16" if asked == "half" else {"float32": "bfloat16"}.get(named, named)


def heads(text: Mapping[str, Any]) -> tuple[int, int, int]:
    """Query heads, key-value heads and head size."""
    query = int(text.get("num_attention_heads") or text.get("n_head") or 0)
    kv = text.get("num_key_value_heads") or text.get("num_kv_heads") or query
    if text.get("multi_query"):
        kv = 1
    hidden = int(text.get("hidden_size") or text.get("n_embd") or 0)
    return query, int(kv), int(text.get("head_dim") or (hidden // query if query else 0))


def kept_layers(
    config: Mapping[str, Any], *, tensor_parallel_size: int, cache_bytes: int, model_bytes: int
) -> list[Kept]:
    """All decoder layers in order; those that keep nothing have kind "none"."""
    text = text_config(config)
    model_type = str(config.get("model_type", ""))
    if model_type.startswith(UNPLAYED):
        raise ValueError(f"the engine stub does not play {model_type}")
    kinds = layer_kinds(config)
    shared = int(text.get("num_kv_shared_layers") or 0)
    if shared:
        kinds = kinds[:-shared] + ["none"] * shared
    return [
        _kept_state(text, index, tensor_parallel_size, model_bytes)
        if kind == "mamba"
        else _kept(text, kind, tensor_parallel_size, cache_bytes)
        for index, kind in enumerate(kinds)
    ]


def _kept_state(text: Mapping[str, Any], index: int, ranks: int, model_bytes: int) -> Kept:
    state_bytes = state_shape(text, index).bytes_on_rank(ranks, model_bytes)
    return Kept("mamba", state_bytes=state_bytes, shape=(state_bytes,))


def _kept(text: Mapping[str, Any], kind: str, ranks: int, cache_bytes: int) -> Kept:
    if kind == "none":
        return Kept("none")
    if kind == "mla":
        latent = text["kv_lora_rank"] + text["qk_rope_head_dim"]
        token_bytes = latent * cache_bytes
        if text.get("index_topk"):  # sparse: its own fp8 layout, and the indexer beside it
            token_bytes = 656 if cache_bytes == 1 else token_bytes
            token_bytes += SPARSE_INDEXER_BYTES
        return Kept("mla", token_bytes=token_bytes, shape=(latent,))
    _, kv_heads, head_dim = heads(text)
    if kind == "full" and text.get("global_head_dim"):  # Gemma 4: other heads where all is seen
        head_dim = int(text["global_head_dim"])
        kv_heads = int(text.get("num_global_key_value_heads") or kv_heads)
    on_rank = max(1, kv_heads // ranks)
    value_dim = int(text.get("v_head_dim") or head_dim) if "kv_lora_rank" not in text else head_dim
    window = int(text.get("attention_chunk_size") or 0) if kind == "chunked" else 0
    if kind == "sliding":
        window = int(text.get("sliding_window") or 4096)
    return Kept(
        kind,
        token_bytes=on_rank * (head_dim + value_dim) * cache_bytes,
        window=window,
        shape=(on_rank, head_dim, value_dim),
    )


_NAMES = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "mamba",
    "mamba": "mamba",
    "conv": "mamba",
}


def layer_kinds(config: Mapping[str, Any]) -> list[str]:
    """full, sliding, chunked, mla, mamba or none for each decoder layer."""
    text = text_config(config)
    number = int(text.get("num_hidden_layers") or text.get("n_layer") or 0)
    if (states := state_kinds(text, number)) is not None:
        return states
    if text.get("kv_lora_rank"):
        return ["mla"] * number
    if text.get("layer_types"):
        kinds = [_NAMES[str(name)] for name in text["layer_types"]]
        return _windows_used(text, kinds)
    return _windows_used(text, [_patterned(text, index) for index in range(number)])


def _patterned(text: Mapping[str, Any], index: int) -> str:
    model_type = str(text.get("model_type", ""))
    if model_type.startswith("gemma2"):
        return "sliding" if index % 2 == 0 else "full"
    if model_type.startswith("gemma3"):
        every = int(text.get("sliding_window_pattern") or 6)
        return "full" if (index + 1) % every == 0 else "sliding"
    if model_type.startswith("cohere2"):
        every = int(text.get("sliding_window_pattern") or 4)
        return "full" if (index + 1) % every == 0 else "sliding"
    if model_type.startswith("llama4"):
        return "full" if (index + 1) % 4 == 0 else "chunked"
    if text.get("sliding_window") and not model_type.startswith("qwen"):
        return "sliding"
    return "full"


def _windows_used(text: Mapping[str, Any], kinds: list[str]) -> list[str]:
    if text.get("use_sliding_window") is False:
        return ["full" if kind == "sliding" else kind for kind in kinds]
    return kinds
