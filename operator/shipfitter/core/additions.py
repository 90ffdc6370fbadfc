"""A model as flags change it: adapter slots, weights left in host memory, doubled experts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shipfitter.core.facts import LayerFacts, LayerKind, ModelFacts, Shard, WeightGroup
from shipfitter.core.layout import ParallelLayout, layer_stages
from shipfitter.core.weights import weights_bytes

_ADAPTER_ELEMENT_BYTES = 2  # --lora-dtype auto: the model's own
_ROUTED = Shard.EXPERTS


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSlots:
    """Room for adapters, allocated with the weights whether or not one is loaded."""

    max_loras: int = 1
    max_rank: int = 16
    fully_sharded: bool = False
    on_experts: bool = True  # releases before 0.12 put no adapters on experts


def with_adapter_slots(model: ModelFacts, slots: AdapterSlots) -> ModelFacts:
    """The facts with room for adapters in every linear layer.

    A pair of matrices for each projection: the first has the rank times the projection's input, the
    second the rank times its output. Of a projection split by its output the first is whole on
    every rank, of one split by its input the second; fully sharded, both are divided.

    Source: vLLM 0.33 vllm/lora/layers: create_lora_weights of base_linear.py and
    column_parallel_linear.py.
    """
    unit = slots.max_loras * slots.max_rank * _ADAPTER_ELEMENT_BYTES
    whole = Shard.DIVIDED if slots.fully_sharded else Shard.REPLICATED
    added = []
    for index, layer in enumerate(model.layers):
        for shard, width in _adapter_widths(model, layer, on_experts=slots.on_experts):
            added.append(
                WeightGroup(
                    shard=whole if shard is Shard.REPLICATED else shard,
                    loaded_bytes=unit * width,
                    place="layer",
                    layer=index,
                )
            )
    return replace(model, weight_groups=(*model.weight_groups, *added))


def _adapter_widths(
    model: ModelFacts, layer: LayerFacts, *, on_experts: bool
) -> Iterator[tuple[Shard, int]]:
    """Inputs and outputs of a layer's projections: (how they are split, elements for rank 1)."""
    hidden = model.hidden_size
    if layer.num_attention_heads and layer.kind is not LayerKind.NONE:
        queries = layer.num_attention_heads * layer.head_dim
        values = layer.num_attention_heads * (layer.v_head_dim or layer.head_dim)
        keys_and_values = 2 * layer.num_key_value_heads * layer.head_dim
        yield Shard.REPLICATED, 3 * hidden + hidden  # into q, k and v; out of o
        yield Shard.DIVIDED, queries + keys_and_values + values
    elif layer.state is not None:
        yield Shard.REPLICATED, 2 * hidden
        yield Shard.DIVIDED, 2 * layer.state.in_proj_width
    if layer.mlp == "dense" and layer.intermediate_size:
        yield Shard.REPLICATED, 2 * hidden + hidden
        yield Shard.DIVIDED, 3 * layer.intermediate_size
    if layer.mlp == "moe" and model.moe is not None and on_experts:
        yield Shard.REPLICATED, 3 * hidden * model.moe.num_experts
        yield Shard.DIVIDED, 3 * model.moe.moe_intermediate_size * model.moe.num_experts


def with_weights_in_host_memory(
    model: ModelFacts, layout: ParallelLayout, offloaded_bytes: int
) -> ModelFacts:
    """The facts less what each rank leaves in host memory: whole layers only, as many as it has.

    Source: vLLM vllm/model_executor/models/utils.py maybe_offload_to_cpu: parameters of layers, one
    after the other, until the given bytes are used up.
    """
    stages = layer_stages(model.num_hidden_layers, layout)
    layers_only = replace(
        model,
        weight_groups=tuple(g for g in model.weight_groups if g.place == "layer"),
        rotary_bytes=0,
    )
    left = tuple(
        WeightGroup(
            shard=Shard.REPLICATED,
            loaded_bytes=-min(offloaded_bytes, weights_bytes(layers_only, layout, stage=index)),
            place="layer",
            layer=stage.start,
        )
        for index, stage in enumerate(stages)
    )
    return replace(model, weight_groups=(*model.weight_groups, *left))


def with_redundant_experts(model: ModelFacts, redundant_experts: int) -> ModelFacts:
    """The facts with copies of experts, spread like the others.

    Source: vLLM vllm/model_executor/layers/fused_moe/layer.py: physical experts are the logical
    ones and the redundant ones together.
    """
    if model.moe is None or not redundant_experts:
        return model
    experts = model.moe.num_experts
    groups = tuple(
        replace(group, loaded_bytes=group.loaded_bytes * (experts + redundant_experts) // experts)
        if group.shard is _ROUTED
        else group
        for group in model.weight_groups
    )
    return replace(model, weight_groups=groups)


def without_windows(model: ModelFacts) -> ModelFacts:
    """The facts under --disable-sliding-window: no request longer than a window, all layers full.

    Source: vLLM vllm/config/model.py: the window caps the length and is then forgotten.
    """
    windows = [layer.window_tokens for layer in model.layers if layer.kind is LayerKind.SLIDING]
    if not windows:
        return model
    layers = tuple(
        replace(layer, kind=LayerKind.FULL, window_tokens=0)
        if layer.kind is LayerKind.SLIDING
        else layer
        for layer in model.layers
    )
    keys = {**model.length_keys, "max_sequence_length": min(windows)}
    return replace(model, layers=layers, length_keys=keys)
