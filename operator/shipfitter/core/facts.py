"""What sizing must know of a model: frozen facts, no arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class LayerKind(StrEnum):
    """How one decoder layer keeps what it has read."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    MLA = "mla"
    COMPRESSED = "compressed"  # latent rows of a window, and of everything before it in fewer rows
    STATE = "state"  # Mamba, gated DeltaNet, KDA, linear attention, short convolution
    CROSS = "cross"
    ENCODER = "encoder"  # reads the prompt whole and keeps nothing: embeddings, scores
    NONE = "none"  # no cache of its own: MLP-only layers, layers that share another's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class StateShape:
    """Recurrent state of one layer over all ranks, in elements; divided by TP as the family does.

    Source: vLLM 0.32 vllm/model_executor/layers/mamba/mamba_utils.py.
    """

    family: str  # mamba1, mamba2, plamo2, gdn, kda, flash_kda, linear, short_conv
    conv_channels: int  # channels of the convolution state, each kept (conv_kernel - 1) deep
    conv_kernel: int
    recurrent_heads: int
    recurrent_elements_per_head: int
    n_groups: int = 0  # mamba2: groups inside conv_channels that TP may have to replicate
    group_state_size: int = 0
    recurrent_dtype_bytes: int = 2
    in_proj_width: int = 0  # activation: in_proj output elements per token


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """One hidden layer's cache and MLP.

    `state` is set on every STATE layer, and on a FULL layer that keeps a state beside its cache
    (Falcon-H1: attention and Mamba side by side).
    """

    kind: LayerKind
    num_attention_heads: int = 0
    num_key_value_heads: int = 0
    head_dim: int = 0  # keys (and queries)
    v_head_dim: int = 0  # values; equal to head_dim nearly everywhere
    window_tokens: int = 0  # SLIDING: window; CHUNKED: chunk
    latent_dim: int = 0  # MLA: kv_lora_rank + qk_rope_head_dim
    compress_ratio: int = 0  # COMPRESSED: tokens in one of the fewer rows; 0: the window alone
    indexer_bytes_per_token: int = 0  # MLA with sparse indexer (DSA): 132 on indexer layers
    state: StateShape | None = None
    mlp: str = "dense"  # dense | moe | none
    intermediate_size: int = 0  # of the dense MLP


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaFacts:
    """Multi-head latent attention, config.json's own names."""

    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeFacts:
    """Mixture of experts, config.json's own names."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int = 0  # all shared experts together; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How the checkpoint stores its linear weights."""

    method: str  # fp8, awq, gptq, compressed-tensors, modelopt, mxfp4, ... as quant_method says
    weight_bits: float  # nominal, for messages only
    weight_block: tuple[int, int] | None = None  # fp8 block scales: (n, k)
    group_size: int = 0
    kv_cache_scheme: str | None = None  # fp8 | nvfp4 where the checkpoint declares one
    ignored: tuple[str, ...] = ()
    min_compute_capability: tuple[int, int] = (7, 5)  # of the method: quantization.py has the rows


class Shard(StrEnum):
    """How tensor parallelism divides a group of tensors."""

    VOCAB = "vocab"  # rows padded to 64, divided
    DIVIDED = "divided"  # column- or row-parallel: divided by TP
    KV_HEADS = "kv_heads"  # divided by min(TP, KV heads): replicated beyond
    EXPERTS = "experts"  # divided by TP, or whole experts over EP ranks
    REPLICATED = "replicated"  # whole on every rank
    TOWER = "tower"  # vision or audio tower


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightGroup:
    """Tensors that are divided alike and live at the same place in the pipeline."""

    shard: Shard
    loaded_bytes: int  # over all ranks, in the dtype the engine holds (not the file's)
    # "embedding" | "layer" | "head" | "other" (every stage) | "prediction" (multi-token prediction:
    # loaded only when speculation uses it, on the last stage)
    place: str
    layer: int = -1  # for place == "layer"
    kv_heads: int = 0  # for KV_HEADS
    tensor: str = ""  # groups with the same name are one allocation of the engine; "": not known
    padded_size: int = 0  # EXPERTS: intermediate size that each rank pads up ...
    padded_multiple: int = 1  # ... to this multiple, and bytes with it
    unpacked: bool = False  # made beside the loaded weights when loading ends


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """All that sizing reads of a model; nothing else about it matters to the planner."""

    name: str
    architecture: str  # architectures[0]
    model_type: str
    dtype: str  # bfloat16, float16: what --dtype auto gives on a card that has it
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool
    layers: tuple[LayerFacts, ...]
    weight_groups: tuple[WeightGroup, ...]
    checkpoint_bytes: int  # as stored
    weights_source: str  # "safetensors headers" | "config and total bytes" | "config"
    mla: MlaFacts | None = None
    moe: MoeFacts | None = None
    quantization: Quantization | None = None
    is_multimodal: bool = False
    supports_pipeline_parallel: bool = True
    rotary_bytes: int = 0  # rope tables on each rank
    length_keys: Mapping[str, Any] = field(default_factory=dict)  # what max_model_len derives from
    revision: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)  # family-specific facts, by name

    @property
    def is_hybrid(self) -> bool:
        """True where attention layers and recurrent state live side by side."""
        has_state = any(layer.state is not None for layer in self.layers)
        cacheless = {LayerKind.STATE, LayerKind.NONE}
        return has_state and any(layer.kind not in cacheless for layer in self.layers)


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """One tensor of a checkpoint, as a safetensors header states it."""

    name: str
    dtype: str  # BF16, F8_E4M3, I32, ...
    shape: tuple[int, ...]
