"""The weights a layer's attention and MLP own, as modules: path in the checkpoint and shape."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shipfitter.core.architecture import ALWAYS, Architecture
from shipfitter.core.facts import LayerFacts, LayerKind, MlaFacts, MoeFacts
from shipfitter.core.text_config import TextConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parameter holder; `shape` is (out, in), or (experts, out, in) for all experts at once."""

    path: str
    shape: tuple[int, ...]
    linear: bool = False  # a checkpoint's quantisation applies to it
    bias_shape: tuple[int, ...] = ()
    stored: bool = True  # False: the engine makes it while loading


def switched(config: TextConfig, switch: str) -> bool:
    """Whether an Architecture switch is on for this config."""
    return switch == ALWAYS or any(config.flag(key) for key in switch.split("|"))


def linear(path: str, rows: int, columns: int, *, bias: bool = False) -> Module:
    """A matrix that quantised checkpoints quantise."""
    return Module(path=path, shape=(rows, columns), linear=True, bias_shape=(rows,) if bias else ())


def plain(path: str, *shape: int) -> Module:
    """A tensor that stays in the model's dtype."""
    return Module(path=path, shape=shape)


def mla_facts(config: TextConfig, architecture: Architecture) -> MlaFacts | None:
    """Widths of multi-head latent attention; None for other classes."""
    if architecture.attention not in ("mla", "mla_expanded"):
        return None
    rank = config.get("q_lora_rank")
    return MlaFacts(
        kv_lora_rank=config.count("kv_lora_rank"),
        qk_nope_head_dim=config.count("qk_nope_head_dim"),
        qk_rope_head_dim=config.count("qk_rope_head_dim"),
        v_head_dim=config.count("v_head_dim"),
        q_lora_rank=int(rank) if rank else None,
    )


def attention_modules(
    prefix: str, layer: LayerFacts, config: TextConfig, architecture: Architecture
) -> Iterator[Module]:
    """Projections and norms of one attention layer of any kind."""
    if layer.kind is LayerKind.MLA or architecture.attention == "mla_expanded":
        yield from _mla_modules(prefix, layer, config, architecture)
    elif layer.num_attention_heads:
        yield from _grouped_query_modules(prefix, layer, config, architecture)


def _grouped_query_modules(
    prefix: str, layer: LayerFacts, config: TextConfig, architecture: Architecture
) -> Iterator[Module]:
    hidden = config.hidden_size
    heads, key_value_heads = layer.num_attention_heads, layer.num_key_value_heads
    queries = heads * layer.head_dim * (2 if architecture.output_gate else 1)
    bias = switched(config, architecture.qkv_bias)
    yield linear(f"{prefix}.q_proj", queries, hidden, bias=bias)
    if layer.kind is not LayerKind.NONE:  # layers that share another's cache have no K and V
        yield linear(f"{prefix}.k_proj", key_value_heads * layer.head_dim, hidden, bias=bias)
        value = linear(f"{prefix}.v_proj", key_value_heads * layer.v_head_dim, hidden, bias=bias)
        # Gemma 4: full layers use K as V; the file has one, the engine's fused tensor both.
        doubled = config.flag("attention_k_eq_v") and layer.kind is LayerKind.FULL
        yield replace(value, stored=not doubled)
    out_bias = switched(config, architecture.out_bias)
    yield linear(f"{prefix}.o_proj", hidden, heads * layer.v_head_dim, bias=out_bias)
    if architecture.sinks:
        yield plain(f"{prefix}.sinks", heads)
    if architecture.attention_gate and switched(config, architecture.attention_gate_key):
        rows = heads * (layer.v_head_dim if architecture.attention_gate == "width" else 1)
        yield linear(f"{prefix}.g_proj", rows, hidden)
    if not architecture.qk_norm or not _has_qk_norm(config, architecture):
        return
    widths = {
        "head": (layer.head_dim, layer.head_dim),
        "width": (heads * layer.head_dim, key_value_heads * layer.head_dim),
        "heads": (heads * layer.head_dim, key_value_heads * layer.head_dim),
    }[architecture.qk_norm]
    yield plain(f"{prefix}.q_norm", widths[0])
    if layer.kind is not LayerKind.NONE:
        yield plain(f"{prefix}.k_norm", widths[1])


def _has_qk_norm(config: TextConfig, architecture: Architecture) -> bool:
    return switched(config, architecture.qk_norm_key)


def _mla_modules(
    prefix: str, layer: LayerFacts, config: TextConfig, architecture: Architecture
) -> Iterator[Module]:
    mla = mla_facts(config, architecture)
    assert mla is not None
    hidden, heads = config.hidden_size, layer.num_attention_heads
    key_width = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    if mla.q_lora_rank:
        yield linear(f"{prefix}.q_a_proj", mla.q_lora_rank, hidden)
        yield plain(f"{prefix}.q_a_layernorm", mla.q_lora_rank)
        yield linear(f"{prefix}.q_b_proj", heads * key_width, mla.q_lora_rank)
    else:
        yield linear(f"{prefix}.q_proj", heads * key_width, hidden)
    latent = mla.kv_lora_rank + mla.qk_rope_head_dim
    yield linear(f"{prefix}.kv_a_proj_with_mqa", latent, hidden)
    yield plain(f"{prefix}.kv_a_layernorm", mla.kv_lora_rank)
    kv_b_rows = heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    yield linear(f"{prefix}.kv_b_proj", kv_b_rows, mla.kv_lora_rank)
    yield linear(f"{prefix}.o_proj", hidden, heads * mla.v_head_dim)
    if config.flag("mla_use_output_gate"):
        yield linear(f"{prefix}.g_proj", heads * mla.v_head_dim, hidden)
    if layer.indexer_bytes_per_token:
        index_heads, index_width = config.count("index_n_heads"), config.count("index_head_dim")
        rank = mla.q_lora_rank or hidden
        yield linear(f"{prefix}.indexer.wq_b", index_heads * index_width, rank)
        yield linear(f"{prefix}.indexer.wk", index_width, hidden)
        yield plain(f"{prefix}.indexer.k_norm", 2 * index_width)
        yield plain(f"{prefix}.indexer.weights_proj", index_heads, hidden)


def mlp_modules(
    prefix: str,
    layer: LayerFacts,
    config: TextConfig,
    architecture: Architecture,
    moe: MoeFacts | None,
) -> Iterator[Module]:
    """The MLP of one layer: dense, experts, or (Gemma 4) both."""
    if layer.mlp == "dense":
        yield from dense_mlp(prefix, layer.intermediate_size, config, architecture)
    if layer.mlp == "moe" and moe is not None:
        yield from expert_modules(prefix, config, architecture, moe)


def dense_mlp(
    prefix: str, size: int, config: TextConfig, architecture: Architecture
) -> Iterator[Module]:
    """Gate, up and down; or up and down alone."""
    hidden, bias = config.hidden_size, switched(config, architecture.mlp_bias)
    if architecture.gated_mlp:
        yield linear(f"{prefix}.gate_proj", size, hidden, bias=bias)
    yield linear(f"{prefix}.up_proj", size, hidden, bias=bias)
    yield linear(f"{prefix}.down_proj", hidden, size, bias=bias)


def expert_modules(
    prefix: str, config: TextConfig, architecture: Architecture, moe: MoeFacts
) -> Iterator[Module]:
    """Router, all routed experts (stacked), shared experts."""
    hidden, size, experts = config.hidden_size, moe.moe_intermediate_size, moe.num_experts
    router_bias = (experts,) if architecture.router_bias else ()
    yield Module(path=f"{prefix}.gate", shape=(experts, hidden), bias_shape=router_bias)
    if architecture.score_correction:
        yield plain(f"{prefix}.gate.e_score_correction_bias", experts)
    width = config.count("moe_latent_size", hidden)  # experts on a narrower row
    if config.get("routed_expert_hidden_size"):  # Kimi K3; never quantised
        yield plain(f"{prefix}.routed_expert_down_proj", width, hidden)
        yield plain(f"{prefix}.routed_expert_up_proj", hidden, width)
    elif width != hidden:  # Nemotron 3 Super
        yield linear(f"{prefix}.fc1_latent_proj", width, hidden)
        yield linear(f"{prefix}.fc2_latent_proj", hidden, width)
    names = ("gate_proj", "up_proj") if architecture.gated_mlp else ("up_proj",)
    for name in names:
        yield _experts(f"{prefix}.experts.0.{name}", (experts, size, width), architecture)
    yield _experts(f"{prefix}.experts.0.down_proj", (experts, width, size), architecture)
    if moe.shared_expert_intermediate_size:
        shared = f"{prefix}.shared_experts"
        yield from dense_mlp(shared, moe.shared_expert_intermediate_size, config, architecture)
    if architecture.shared_expert_gate and moe.shared_expert_intermediate_size:
        yield plain(f"{prefix}.shared_expert_gate", 1, hidden)


def _experts(path: str, shape: tuple[int, int, int], architecture: Architecture) -> Module:
    bias_shape = shape[:2] if architecture.expert_bias else ()
    return Module(path=path, shape=shape, linear=True, bias_shape=bias_shape)
