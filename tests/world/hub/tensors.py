"""Names and shapes of all tensors of a checkpoint, from its config.json; a table of families."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from world.hub import attention_tensors as attention
from world.hub import mlp_tensors as mlp
from world.hub.stored_linears import Linear, dtype_of, stored
from world.hub.towers import gemma3_vision
from world.hub.virtual_files import Tensor

Text = Mapping[str, Any]
Piece = Linear | tuple[str, tuple[int, ...]] | Tensor
Layers = Callable[[str, Text, int], Iterator[Piece]]


def tensors_of(config: Mapping[str, Any]) -> list[Tensor]:
    """Every tensor the published checkpoint of such a config holds."""
    text = config.get("text_config") or config
    family = FAMILIES[str(config["model_type"])]
    return [tensor for piece in family(config, text) for tensor in _tensors(piece, config)]


def _tensors(piece: Piece, config: Mapping[str, Any]) -> Iterator[Tensor]:
    if isinstance(piece, Linear):
        yield from stored(piece, config)
    elif isinstance(piece, Tensor):
        yield piece
    else:
        yield Tensor(piece[0], dtype_of(config), piece[1])


def _decoder(
    text: Text, prefix: str, layer: Layers, *, tied: bool, vocab_size: int
) -> Iterator[Piece]:
    hidden = text["hidden_size"]
    yield f"{prefix}embed_tokens.weight", (vocab_size, hidden)
    for number in range(text["num_hidden_layers"]):
        yield from layer(f"{prefix}layers.{number}.", text, number)
    yield f"{prefix}norm.weight", (hidden,)
    if not tied:
        yield Linear("lm_head", vocab_size, hidden, keep=True)


def _norms(prefix: str, text: Text, *names: str) -> Iterator[Piece]:
    for name in names:
        yield f"{prefix}{name}.weight", (text["hidden_size"],)


def _llama_layer(prefix: str, text: Text, _: int) -> Iterator[Piece]:
    yield from attention.grouped(
        prefix,
        text,
        qk_norm=text["model_type"].startswith("qwen3"),
        bias=text["model_type"].startswith("qwen2") or bool(text.get("attention_bias")),
    )
    if text.get("num_experts"):
        yield from mlp.experts(prefix, text, text["num_experts"])
    elif text.get("num_local_experts"):
        yield from mlp.mixtral(prefix, text)
    else:
        yield from mlp.dense(prefix, text)
    yield from _norms(prefix, text, "input_layernorm", "post_attention_layernorm")


def _llama(config: Mapping[str, Any], text: Text) -> Iterator[Piece]:
    # Qwen3's small models store the tied head a second time; Llama's do not.
    tied = bool(text.get("tie_word_embeddings")) and text["model_type"] != "qwen3"
    yield from _decoder(text, "model.", _llama_layer, tied=tied, vocab_size=text["vocab_size"])


def _gemma_layer(prefix: str, text: Text, _: int) -> Iterator[Piece]:
    yield from attention.grouped(prefix, text, qk_norm="gemma3" in text["model_type"])
    yield from mlp.dense(prefix, text)
    yield from _norms(
        prefix,
        text,
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    )


def _gemma2(config: Mapping[str, Any], text: Text) -> Iterator[Piece]:
    yield from _decoder(text, "model.", _gemma_layer, tied=True, vocab_size=text["vocab_size"])


def _gemma3(config: Mapping[str, Any], text: Text) -> Iterator[Piece]:
    # Source: transformers' Gemma3TextConfig: 262,208 rows where the config names none.
    vocab_size = text.get("vocab_size", 262208)
    prefix = "language_model.model." if "vision_config" in config else "model."
    yield from _decoder(text, prefix, _gemma_layer, tied=True, vocab_size=vocab_size)
    if "vision_config" in config:
        yield from gemma3_vision(config["vision_config"], text["hidden_size"])


def _gpt_oss_layer(prefix: str, text: Text, _: int) -> Iterator[Piece]:
    yield from attention.grouped(prefix, text, bias=True, output_bias=True)
    yield f"{prefix}self_attn.sinks", (text["num_attention_heads"],)
    yield from mlp.mxfp4_experts(prefix, text)
    yield from _norms(prefix, text, "input_layernorm", "post_attention_layernorm")


def _gpt_oss(config: Mapping[str, Any], text: Text) -> Iterator[Piece]:
    yield from _decoder(text, "model.", _gpt_oss_layer, tied=False, vocab_size=text["vocab_size"])


def _deepseek_layer(prefix: str, text: Text, number: int) -> Iterator[Piece]:
    yield from attention.latent(prefix, text)
    if number < text.get("first_k_dense_replace", 0):
        yield from mlp.dense(prefix, text)
    else:
        yield from mlp.experts(prefix, text, text["n_routed_experts"])
        if text.get("topk_method") == "noaux_tc":
            yield Tensor(
                f"{prefix}mlp.gate.e_score_correction_bias", "F32", (text["n_routed_experts"],)
            )
        shared = text.get("n_shared_experts", 0) * text["moe_intermediate_size"]
        yield from mlp.gated(f"{prefix}mlp.shared_experts.", text["hidden_size"], shared)
    yield from _norms(prefix, text, "input_layernorm", "post_attention_layernorm")


def _deepseek(config: Mapping[str, Any], text: Text) -> Iterator[Piece]:
    vocab_size, hidden = text["vocab_size"], text["hidden_size"]
    yield from _decoder(text, "model.", _deepseek_layer, tied=False, vocab_size=vocab_size)
    for extra in range(text.get("num_nextn_predict_layers", 0)):
        number = text["num_hidden_layers"] + extra
        prefix = f"model.layers.{number}."
        yield f"{prefix}embed_tokens.weight", (vocab_size, hidden)
        yield Linear(f"{prefix}eh_proj", hidden, 2 * hidden, keep=True)
        yield from _norms(prefix, text, "enorm", "hnorm", "shared_head.norm")
        yield Linear(f"{prefix}shared_head.head", vocab_size, hidden, keep=True)
        yield from _deepseek_layer(prefix, text, number)


def _qwen3_next_layer(prefix: str, text: Text, number: int) -> Iterator[Piece]:
    if (number + 1) % text["full_attention_interval"] == 0:
        yield from attention.grouped(prefix, text, qk_norm=True, gated=True)
    else:
        yield from attention.gated_delta(prefix, text)
    yield from mlp.experts(prefix, text, text["num_experts"])
    yield from mlp.shared_expert(prefix, text)
    yield from _norms(prefix, text, "input_layernorm", "post_attention_layernorm")


def _qwen3_next(config: Mapping[str, Any], text: Text) -> Iterator[Piece]:
    hidden = text["hidden_size"]
    yield from _decoder(
        text, "model.", _qwen3_next_layer, tied=False, vocab_size=text["vocab_size"]
    )
    yield Linear("mtp.fc", hidden, 2 * hidden, keep=True)
    yield from _norms("mtp.", text, "norm", "pre_fc_norm_hidden", "pre_fc_norm_embedding")
    yield from _qwen3_next_layer("mtp.layers.0.", text, text["full_attention_interval"] - 1)


Family = Callable[[Mapping[str, Any], Text], Iterator[Piece]]
FAMILIES: dict[str, Family] = {
    "llama": _llama,
    "mistral": _llama,
    "mixtral": _llama,
    "qwen2": _llama,
    "qwen3": _llama,
    "qwen3_moe": _llama,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "gpt_oss": _gpt_oss,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "qwen3_next": _qwen3_next,
}
