"""The modules a whole checkpoint holds: embedding, layers, head, and what is not loaded."""

from collections.abc import Iterator
from dataclasses import replace

from shipfitter.core.architecture import Architecture
from shipfitter.core.compressed_attention import compressed_modules, stream_modules
from shipfitter.core.facts import LayerFacts, LayerKind, MoeFacts
from shipfitter.core.family_modules import (
    is_hybrid_of_zamba2,
    layer_extras,
    model_extras,
    shared_query_modules,
    zamba2_modules,
)
from shipfitter.core.modules import Module, attention_modules, mlp_modules, plain, switched
from shipfitter.core.special_modules import mixer_modules
from shipfitter.core.text_config import TextConfig

# Prediction layers that carry copies of embedding and head in the file.
_REPEATS_EMBEDDING = frozenset(("deepseek_v3", "glm4_moe"))


def text_modules(
    config: TextConfig,
    architecture: Architecture,
    layers: tuple[LayerFacts, ...],
    moe: MoeFacts | None,
) -> Iterator[Module]:
    """Every module of the language model, in the order of the forward pass."""
    hidden, vocabulary = config.hidden_size, config.count("vocab_size")
    yield plain("model.embed_tokens", vocabulary, hidden)
    if architecture.positions_offset is not None:
        rows = config.count("max_position_embeddings", config.count("n_positions", 0))
        yield plain("model.embed_positions", rows + architecture.positions_offset, hidden)
    yield from model_extras(config, architecture)
    hybrids = 0
    for index, layer in enumerate(layers):
        prefix = f"model.layers.{index}"
        yield from layer_modules(prefix, layer, config, architecture, moe)
        if is_hybrid_of_zamba2(layer, architecture):
            yield from zamba2_modules(prefix, layer, config, ordinal=hybrids)
            hybrids += 1
    if architecture.final_norm:
        yield from _norms("model", ("norm",), config, architecture)
    if architecture.head and not config.ties_embeddings(default=architecture.tied):
        bias = (vocabulary,) if architecture.head_bias else ()
        yield Module(path="lm_head", shape=(vocabulary, hidden), bias_shape=bias)


def layer_modules(
    prefix: str,
    layer: LayerFacts,
    config: TextConfig,
    architecture: Architecture,
    moe: MoeFacts | None,
) -> Iterator[Module]:
    """Mixer, MLP and norms of one hidden layer."""
    nemotron = architecture.pattern == "nemotron_h"
    mixer = "mixer" if nemotron else architecture.mixer
    mlp = "mixer" if nemotron else architecture.mlp
    if layer.kind is LayerKind.COMPRESSED:
        yield from compressed_modules(f"{prefix}.{mixer}", layer.compress_ratio, config)
        yield from stream_modules(prefix, config)
    elif architecture.own_layer == "step3":
        yield from shared_query_modules(f"{prefix}.{mixer}", layer, config)
    elif not is_hybrid_of_zamba2(layer, architecture):
        yield from attention_modules(f"{prefix}.{mixer}", layer, config, architecture)
    if layer.state is not None:
        yield from mixer_modules(prefix, layer.state, config)
    if nemotron:
        architecture = replace(architecture, gated_mlp=False, score_correction=True, norms=1)
    yield from mlp_modules(f"{prefix}.{mlp}", layer, config, architecture, moe)
    names = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm")
    count = architecture.norms + 2 * switched(config, architecture.more_norms)
    chosen = (*names, "post_feedforward_layernorm")[:count]
    yield from _norms(prefix, chosen, config, architecture)
    yield from layer_extras(prefix, layer, config, architecture)


def _norms(
    prefix: str, names: tuple[str, ...], config: TextConfig, architecture: Architecture
) -> Iterator[Module]:
    bias = (config.hidden_size,) if architecture.norm_bias else ()
    for name in names:
        yield Module(path=f"{prefix}.{name}", shape=(config.hidden_size,), bias_shape=bias)


def prediction_layers(config: TextConfig, architecture: Architecture) -> int:
    """How many multi-token-prediction layers the checkpoint has."""
    if architecture.pattern == "gdn" and config.get("mtp_num_hidden_layers") is None:
        return 1 if config.model_type == "qwen3_next" else 0
    return config.count("mtp_num_hidden_layers", config.count("num_nextn_predict_layers", 0))


def prediction_modules(
    config: TextConfig,
    architecture: Architecture,
    layers: tuple[LayerFacts, ...],
    moe: MoeFacts | None,
) -> Iterator[Module]:
    """Multi-token-prediction layers: in the checkpoint, not loaded unless speculation uses them.

    Source: vLLM vllm/model_executor/models/{deepseek_mtp,qwen3_next_mtp,qwen3_5_mtp}.py.
    """
    count = prediction_layers(config, architecture)
    if not count or architecture.pattern == "nemotron_h":
        return
    hidden = config.hidden_size
    last = next(layer for layer in reversed(layers) if layer.kind is not LayerKind.STATE)
    for index in range(count):
        prefix = f"mtp.layers.{index}"
        yield from layer_modules(prefix, last, config, architecture, moe)
        yield plain(f"{prefix}.eh_proj", hidden, 2 * hidden)
        yield plain(f"{prefix}.norm", 3, hidden)
        if config.model_type in _REPEATS_EMBEDDING:
            yield plain(f"{prefix}.embed_tokens", config.count("vocab_size"), hidden)
            yield plain(f"{prefix}.shared_head.head", config.count("vocab_size"), hidden)
