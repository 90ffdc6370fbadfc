"""Weights that only one family of models has beside attention, MLP and norms."""

from collections.abc import Iterator

from shipfitter.core.architecture import Architecture
from shipfitter.core.facts import LayerFacts, LayerKind
from shipfitter.core.modules import Module, linear, plain
from shipfitter.core.text_config import TextConfig


def model_extras(config: TextConfig, architecture: Architecture) -> Iterator[Module]:
    """What stands beside the embedding, before the first layer."""
    hidden = config.hidden_size
    if architecture.embedding_norm:
        bias = (hidden,) if architecture.norm_bias else ()
        yield Module(path="model.embedding_norm", shape=(hidden,), bias_shape=bias)
    if architecture.encoder and config.get("type_vocab_size"):
        yield plain("model.token_type_embeddings", config.count("type_vocab_size"), hidden)
    yield from _per_layer_inputs(config)
    if architecture.own_layer == "gemma3n":
        for index in range(1, config.count("altup_num_inputs", 4)):
            yield linear(f"model.altup_projections.{index}", hidden, hidden)
            yield linear(f"model.altup_unembed_projections.{index}", hidden, hidden)


def layer_extras(
    prefix: str, layer: LayerFacts, config: TextConfig, architecture: Architecture
) -> Iterator[Module]:
    """What one layer has beside mixer, MLP and norms."""
    if architecture.own_layer == "gemma4":
        yield from _gemma4(prefix, layer, config)
    elif architecture.own_layer == "gemma3n":
        yield from _gemma3n(prefix, config)


def _per_layer_inputs(config: TextConfig) -> Iterator[Module]:
    """Gemma 3n and 4 E-series: a second embedding, one narrow row per layer.

    Source: vLLM vllm/model_executor/models/{gemma3n,gemma4}.py.
    """
    width = config.count("hidden_size_per_layer_input", 0)
    if not width:
        return
    total = width * config.count("num_hidden_layers")
    rows = config.count("vocab_size_per_layer_input", config.count("vocab_size"))
    yield plain("model.embed_tokens_per_layer", rows, total)
    yield linear("model.per_layer_model_projection", total, config.hidden_size)
    yield plain("model.per_layer_projection_norm", width)


def _layer_input(prefix: str, config: TextConfig) -> Iterator[Module]:
    hidden = config.hidden_size
    width = config.count("hidden_size_per_layer_input", 0)
    if width:
        yield linear(f"{prefix}.per_layer_input_gate", width, hidden)
        yield linear(f"{prefix}.per_layer_projection", hidden, width)
        yield plain(f"{prefix}.post_per_layer_input_norm", hidden)


def _gemma4(prefix: str, layer: LayerFacts, config: TextConfig) -> Iterator[Module]:
    """A dense MLP beside the experts, their norms, and the per-layer input's gate."""
    hidden = config.hidden_size
    yield plain(f"{prefix}.layer_scalar", 1)
    yield from _layer_input(prefix, config)
    if layer.mlp == "moe":
        size = layer.intermediate_size
        yield linear(f"{prefix}.mlp.gate_proj", size, hidden)
        yield linear(f"{prefix}.mlp.up_proj", size, hidden)
        yield linear(f"{prefix}.mlp.down_proj", hidden, size)
        for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2"):
            yield plain(f"{prefix}.{name}", hidden)
        yield plain(f"{prefix}.pre_feedforward_layernorm_2", hidden)
        yield plain(f"{prefix}.router.scale", hidden)
        yield plain(f"{prefix}.router.per_expert_scale", config.count("num_experts"))


def _gemma3n(prefix: str, config: TextConfig) -> Iterator[Module]:
    """Alternating updates of several streams, and the low-rank learned residual.

    Source: vLLM vllm/model_executor/models/gemma3n.py Gemma3nAltUp, Gemma3nLaurelBlock.
    """
    hidden, streams = config.hidden_size, config.count("altup_num_inputs", 4)
    rank = config.count("laurel_rank", 64)
    yield from _layer_input(prefix, config)
    yield plain(f"{prefix}.altup.router.correction_coefs", streams, streams)
    yield plain(f"{prefix}.altup.router.prediction_coefs", streams * streams, streams)
    yield plain(f"{prefix}.altup.router.modality_router", streams, hidden)
    yield plain(f"{prefix}.altup.router_norm", hidden)
    yield plain(f"{prefix}.altup.correct_output_scale", 2 * hidden)  # float32
    yield linear(f"{prefix}.laurel.linear_left", rank, hidden)
    yield linear(f"{prefix}.laurel.out_proj", hidden, rank)
    yield plain(f"{prefix}.laurel.post_laurel_norm", hidden)


def shared_query_modules(prefix: str, layer: LayerFacts, config: TextConfig) -> Iterator[Module]:
    """Step 3: narrow queries that all heads share, then spread; whole on every rank before that.

    Source: vLLM vllm/model_executor/models/step3_text.py Step3TextAttention.
    """
    hidden, narrow = config.hidden_size, config.count("share_q_dim")
    width = layer.num_attention_heads * layer.head_dim
    yield linear(f"{prefix}.q_a_proj", narrow, hidden)
    yield linear(f"{prefix}.kv_a_proj_with_mqa", 2 * layer.head_dim, hidden)
    yield plain(f"{prefix}.inter_norm", narrow)
    yield linear(f"{prefix}.wq_b", width, narrow)
    yield linear(f"{prefix}.o_proj", hidden, width)


def zamba2_modules(
    prefix: str, layer: LayerFacts, config: TextConfig, *, ordinal: int
) -> Iterator[Module]:
    """Zamba 2: blocks of attention and MLP that hybrid layers share, and each layer's own adapters.

    Source: vLLM vllm/model_executor/models/zamba2.py.
    """
    hidden, size = config.hidden_size, config.count("intermediate_size")
    rank = config.count("adapter_rank", 0)
    inner = layer.num_attention_heads * layer.head_dim
    read = config.count("attention_hidden_size", 2 * hidden)
    shared = f"{prefix}.shared_transformer"
    yield linear(f"{prefix}.router.linear", hidden, hidden)
    if ordinal < config.count("num_mem_blocks", 1):
        for name in ("q_proj", "k_proj", "v_proj"):
            yield linear(f"{shared}.self_attn.{name}", inner, read)
        yield linear(f"{shared}.self_attn.o_proj", hidden, inner)
        yield linear(f"{shared}.feed_forward.gate_up_proj", 2 * size, hidden)
        yield linear(f"{shared}.feed_forward.down_proj", hidden, size)
        yield plain(f"{shared}.input_layernorm", read)
        yield plain(f"{shared}.pre_ff_layernorm", hidden)
    if rank:
        yield plain(f"{shared}.feed_forward.gate_up_proj_adapter_list.0", rank, hidden)
        yield plain(f"{shared}.feed_forward.gate_up_proj_adapter_list.1", 2 * size, rank)
    if rank and config.flag("use_shared_attention_adapter"):
        for name in ("q", "k", "v"):
            yield plain(f"{shared}.self_attn.linear_{name}_adapter_list.0", rank, read)
            yield plain(f"{shared}.self_attn.linear_{name}_adapter_list.1", read, rank)


def is_hybrid_of_zamba2(layer: LayerFacts, architecture: Architecture) -> bool:
    """A layer that runs a shared block before its own mixer."""
    return architecture.pattern == "zamba2" and layer.kind is LayerKind.FULL
