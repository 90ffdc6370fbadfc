"""Whether the engine would start in a layout: the checks it makes before it loads anything."""

from collections.abc import Iterator

from shipfitter.core.facts import LayerFacts, LayerKind, ModelFacts, Quantization
from shipfitter.core.layout import ParallelLayout
from shipfitter.core.method_capability import least_capability
from shipfitter.core.method_releases import method_problem
from shipfitter.units import ceil_div

# Source: vLLM vllm/config/model.py _FLOAT16_NOT_SUPPORTED_MODELS: without bfloat16 the engine
# takes float32 for these, twice the weights; a layout for that is not planned.
_NEEDS_BFLOAT16 = frozenset(("gemma2", "gemma3", "gemma3_text", "plamo2", "glm4"))
_BFLOAT16_CAPABILITY = (8, 0)
# Routed experts with misaligned fp8 blocks start from this release on, scales refined down to 32.
# Source: vLLM 0.29 vllm/model_executor/layers/quantization/fp8.py.
_REFINED_BLOCKS_FROM = (0, 29)
_SMALLEST_REFINED_BLOCK = 32
_LATEST = (0, 33)


def layout_problems(
    model: ModelFacts,
    layout: ParallelLayout,
    *,
    gpus_per_node: int,
    compute_capability: tuple[int, int] | None,
    engine_version: tuple[int, int] = _LATEST,
) -> tuple[str, ...]:
    """Why the engine would refuse to start in this layout, in our words; empty when it would start.

    Source: vLLM's checks: heads divisible, KV heads divisible or replicated, quantisation blocks,
    compute capability of the quantisation method, PP support, GPUs of the node.
    """
    return (
        *_ranks(model, layout, gpus_per_node),
        *_heads(model, layout.tensor_parallel_size),
        *_widths(model, layout),
        *card_problems(model, compute_capability, engine_version),
        *_blocks(model, layout, engine_version),
    )


def card_problems(
    model: ModelFacts,
    compute_capability: tuple[int, int] | None,
    engine_version: tuple[int, int] = _LATEST,
) -> tuple[str, ...]:
    """Those of them that no other layout on the card would mend."""
    return (
        *_method(model.quantization, engine_version),
        *_card(model, compute_capability, engine_version),
    )


def _method(quantization: Quantization | None, engine_version: tuple[int, int]) -> Iterator[str]:
    problem = method_problem(quantization.method, engine_version) if quantization else ""
    if problem:
        yield problem


def _ranks(model: ModelFacts, layout: ParallelLayout, gpus_per_node: int) -> Iterator[str]:
    tensor_ranks, stages = layout.tensor_parallel_size, layout.pipeline_parallel_size
    if tensor_ranks > gpus_per_node * layout.nodes:
        yield f"tensor parallel {tensor_ranks} needs more than the {gpus_per_node} GPUs of a node"
    if stages > 1 and not model.supports_pipeline_parallel:
        yield f"{model.architecture} has no pipeline parallelism in the engine"
    if stages > model.num_hidden_layers:
        yield f"{stages} pipeline stages for {model.num_hidden_layers} layers"
    if layout.enable_expert_parallel and model.moe is None:
        yield f"expert parallelism needs experts; {model.architecture} has none"


def _heads(model: ModelFacts, ranks: int) -> Iterator[str]:
    """Source: vLLM config/model.py verify_with_parallel_config; each class's attention."""
    if model.num_attention_heads % ranks:
        yield _divides("attention heads", model.num_attention_heads, ranks)
    counts = {
        layer.num_key_value_heads
        for layer in model.layers
        if layer.kind not in (LayerKind.STATE, LayerKind.MLA, LayerKind.NONE)
    }
    for heads in sorted(counts):
        if heads >= ranks and heads % ranks:
            yield _divides("key-value heads", heads, ranks)
        elif heads < ranks and ranks % heads:
            yield f"{heads} key-value heads cannot be repeated evenly over {ranks} ranks"
    yield from _state_heads(model.layers, ranks)


def _state_heads(layers: tuple[LayerFacts, ...], ranks: int) -> Iterator[str]:
    """Source: vLLM layers/mamba/mamba_mixer2.py: groups divide, or a single one is repeated."""
    state = next((layer.state for layer in layers if layer.state is not None), None)
    if state is None:
        return
    if state.recurrent_heads % ranks:
        yield _divides("recurrent heads", state.recurrent_heads, ranks)
    if state.n_groups > 1 and state.n_groups % ranks:
        yield _divides("state groups", state.n_groups, ranks)


def _widths(model: ModelFacts, layout: ParallelLayout) -> Iterator[str]:
    """Source: vLLM distributed/utils.py divide; fused_moe/layer.py."""
    ranks = layout.tensor_parallel_size
    for width in sorted({layer.intermediate_size for layer in model.layers} - {0}):
        if width % ranks:
            yield _divides("MLP columns", width, ranks)
    if model.moe is None or layout.enable_expert_parallel:
        return
    expert_ranks = ranks * layout.data_parallel_size
    if model.moe.moe_intermediate_size % expert_ranks:
        divided = _divides("expert columns", model.moe.moe_intermediate_size, expert_ranks)
        yield f"{divided}; expert parallelism keeps experts whole"


def _card(
    model: ModelFacts, capability: tuple[int, int] | None, engine_version: tuple[int, int]
) -> Iterator[str]:
    if capability is None:
        return
    quantization = model.quantization
    least = least_capability(quantization, engine_version) if quantization else (0, 0)
    if quantization is not None and capability < least:
        newest = least_capability(quantization, _LATEST)
        later = "" if capability < newest else "; a newer engine would take it"
        yield (
            f"{quantization.method} weights need compute capability {_dotted(least)} in vLLM "
            f"{_dotted(engine_version)}; the GPU has {_dotted(capability)}{later}"
        )
    if capability < _BFLOAT16_CAPABILITY and model.model_type in _NEEDS_BFLOAT16:
        yield (
            f"{model.model_type} needs bfloat16, compute capability "
            f"{_dotted(_BFLOAT16_CAPABILITY)}; the GPU has {_dotted(capability)}"
        )


def _blocks(
    model: ModelFacts, layout: ParallelLayout, engine_version: tuple[int, int]
) -> Iterator[str]:
    """Widths a rank gets against the blocks or groups that share a scale.

    Source: vLLM layers/quantization/utils/fp8_utils.py validate_fp8_block_shape and
    utils/marlin_utils.py verify_marlin_supports_shape.
    """
    quantization = model.quantization
    if quantization is None:
        return
    ranks = layout.tensor_parallel_size
    unit = quantization.weight_block[1] if quantization.weight_block else quantization.group_size
    if unit > 1:
        for name, width in _row_parallel_widths(model):
            if width % ranks == 0 and width // ranks % unit:
                yield (
                    f"{name} of {width} over {ranks} ranks gives {width // ranks}, "
                    f"not a multiple of the quantisation's {unit}"
                )
    yield from _expert_blocks(model, quantization, layout, engine_version)


def _row_parallel_widths(model: ModelFacts) -> list[tuple[str, int]]:
    """Inputs of the matrices split along their input: attention output and MLP down."""
    sizes = {
        ("attention output", layer.num_attention_heads * layer.v_head_dim)
        for layer in model.layers
        if layer.num_attention_heads
    }
    sizes |= {("MLP", layer.intermediate_size) for layer in model.layers if layer.intermediate_size}
    return sorted(sizes)


def _expert_blocks(
    model: ModelFacts,
    quantization: Quantization,
    layout: ParallelLayout,
    engine_version: tuple[int, int],
) -> Iterator[str]:
    block = quantization.weight_block
    if model.moe is None or layout.enable_expert_parallel or block is None:
        return
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    width = ceil_div(model.moe.moe_intermediate_size, ranks)
    refines = quantization.method == "fp8" and engine_version >= _REFINED_BLOCKS_FROM
    unit = min(_SMALLEST_REFINED_BLOCK, block[0]) if refines else block[0]
    if width % unit:
        yield (
            f"experts of {model.moe.moe_intermediate_size} over {ranks} ranks give {width}, not a "
            f"multiple of the fp8 block's {unit}; fewer ranks or expert parallelism would do"
        )


def _divides(what: str, count: int, ranks: int) -> str:
    return f"{count} {what} do not divide by {ranks} ranks"


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"
