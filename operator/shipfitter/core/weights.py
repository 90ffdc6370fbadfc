"""Weight bytes on one rank: what "Model loading took" says for a layout."""

from collections import defaultdict
from functools import lru_cache

from shipfitter.core.facts import ModelFacts, Shard, WeightGroup
from shipfitter.core.identity import SameModel
from shipfitter.core.layout import ParallelLayout, layer_stages, pipeline_stages
from shipfitter.core.legality import layout_problems
from shipfitter.core.versions import EngineVersion
from shipfitter.units import MIB, ceil_div, round_up

__all__ = [
    "WHOLE_BLOCKS_FROM",
    "ParallelLayout",
    "allocated_bytes",
    "layout_problems",
    "pipeline_stages",
    "weights_bytes",
]

# The engine forbids the allocator to split big blocks while loading from this release on.
# Source: vLLM 0.21 vllm/v1/worker/gpu_worker.py _scoped_allocator_max_split (absent in 0.20.0).
WHOLE_BLOCKS_FROM = EngineVersion(0, 21, 0)

# Classes that make embedding and head on every stage, used there or not.
# Source: vLLM 0.32 vllm/model_executor/models, each class's own file.
_TABLES_ON_EVERY_STAGE = frozenset(
    {
        "BloomForCausalLM", "ChatGLMForConditionalGeneration", "ChatGLMModel", "DbrxForCausalLM",
        "FalconForCausalLM", "FalconMambaForCausalLM", "GPTBigCodeForCausalLM", "GPTJForCausalLM",
        "Gemma3ForCausalLM", "Gemma4ForCausalLM", "GemmaForCausalLM", "GptOssForCausalLM",
        "GraniteMoeForCausalLM", "GraniteMoeHybridForCausalLM", "GraniteMoeSharedForCausalLM",
        "HYV3ForCausalLM", "InternLM2ForCausalLM", "InternLM2VEForCausalLM", "JambaForCausalLM",
        "Mamba2ForCausalLM", "MambaForCausalLM", "MiniCPM3ForCausalLM", "MiniCPMForCausalLM",
        "MixtralForCausalLM", "MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration",
        "NemotronHForCausalLM", "OPTForCausalLM", "OlmoeForCausalLM", "OrionForCausalLM",
        "PersimmonForCausalLM", "PhiMoEForCausalLM", "Plamo3ForCausalLM", "Qwen2MoeForCausalLM",
        "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM", "RWForCausalLM", "StableLMEpochForCausalLM",
        "StableLmForCausalLM", "Zamba2ForCausalLM",
    }
)  # fmt: skip

# Classes that make the embedding on every stage, the head on the last alone.
# Source: vLLM 0.32 vllm/model_executor/models/qwen3_5.py Qwen3_5Model.
_EMBEDDING_ON_EVERY_STAGE = frozenset(
    {
        "Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration",
    }
)  # fmt: skip

_ALLOCATION_UNIT_BYTES = 512
_SEGMENT_BYTES = 2 * MIB
_LARGE_BYTES = 10 * MIB  # from here on a tensor gets a segment of its own
_SMALLEST_REMAINDER_BYTES = MIB  # a remainder up to this stays part of the block
_UNSPLIT_FROM_BYTES = 20 * MIB


def weights_bytes(
    model: ModelFacts,
    layout: ParallelLayout,
    *,
    stage: int = 0,
    whole_blocks: bool = True,
    with_prediction: bool = False,
    with_towers: bool = True,
) -> int:
    """Bytes "Model loading took" will say for one rank of a pipeline stage.

    `whole_blocks`: the release keeps the allocator from splitting big blocks (WHOLE_BLOCKS_FROM).
    `with_prediction`: speculation uses the checkpoint's own multi-token-prediction layers.
    `with_towers`: false with --language-model-only.
    """
    return _held(
        SameModel(model),
        layout,
        stage,
        whole_blocks=whole_blocks,
        left_out=frozenset(
            {"" if with_prediction else "prediction", "" if with_towers else "other"}
        ),
    )


@lru_cache(maxsize=1024)  # a solve asks it for every card and batch of one layout
def _held(
    same: SameModel,
    layout: ParallelLayout,
    stage: int,
    *,
    whole_blocks: bool,
    left_out: frozenset[str],
) -> int:
    model = same.facts
    stages = layer_stages(model.num_hidden_layers, layout)
    tensors: dict[str, int] = defaultdict(int)
    total = 0
    for group in model.weight_groups:
        if group.place in left_out or not _is_on_stage(model, group, stages, stage):
            continue
        size = _rank_bytes(model, group, layout)
        if group.tensor:
            tensors[group.tensor] += size
        else:
            total += size
    total += sum(allocated_bytes(size, whole_blocks=whole_blocks) for size in tensors.values())
    return total + model.rotary_bytes


def allocated_bytes(tensor_bytes: int, *, whole_blocks: bool) -> int:
    """Bytes the allocator counts for a tensor.

    A big tensor gets a segment of whole 2 MiB; what is left of it stays with the tensor when it is
    at most 1 MiB, or always where big blocks are not split.
    Source: PyTorch c10/cuda/CUDACachingAllocator.cpp should_split, get_allocation_size.

    >>> allocated_bytes(259 * MIB, whole_blocks=False) // MIB
    260
    """
    rounded = round_up(tensor_bytes, _ALLOCATION_UNIT_BYTES)
    if tensor_bytes < _LARGE_BYTES:
        return rounded
    segment = round_up(rounded, _SEGMENT_BYTES)
    keeps_rest = segment - rounded <= _SMALLEST_REMAINDER_BYTES
    unsplit = whole_blocks and rounded >= _UNSPLIT_FROM_BYTES
    return segment if keeps_rest or unsplit else rounded


def _is_on_stage(
    model: ModelFacts, group: WeightGroup, stages: tuple[range, ...], stage: int
) -> bool:
    last = len(stages) - 1
    if group.place == "layer":
        return group.layer in stages[stage]
    if group.place in ("embedding", "head") and model.architecture in _TABLES_ON_EVERY_STAGE:
        return True
    if group.place == "embedding" and model.architecture in _EMBEDDING_ON_EVERY_STAGE:
        return True
    if group.place == "embedding":  # tied: the last stage holds a copy as its head
        return stage == 0 or (stage == last and model.tie_word_embeddings)
    if group.place in ("head", "prediction"):
        return stage == last
    return True


def _rank_bytes(model: ModelFacts, group: WeightGroup, layout: ParallelLayout) -> int:
    ranks = layout.tensor_parallel_size
    match group.shard:
        case Shard.REPLICATED:
            return group.loaded_bytes
        case Shard.KV_HEADS:
            return ceil_div(group.loaded_bytes, min(ranks, max(1, group.kv_heads)))
        case Shard.EXPERTS:
            return _expert_bytes(model, group, layout)
        case Shard.TOWER if layout.encoder_data_parallel:
            return group.loaded_bytes
        case _:
            return ceil_div(group.loaded_bytes, ranks)


def _expert_bytes(model: ModelFacts, group: WeightGroup, layout: ParallelLayout) -> int:
    """Experts spread over tensor and data ranks together.

    Source: vLLM vllm/model_executor/layers/fused_moe/config.py FusedMoEParallelConfig.make.
    """
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    if layout.enable_expert_parallel and model.moe is not None:
        experts = model.moe.num_experts
        size = group.loaded_bytes * ceil_div(experts, ranks) // experts
        return _padded(group, size, group.padded_size)
    return _padded(group, ceil_div(group.loaded_bytes, ranks), ceil_div(group.padded_size, ranks))


def _padded(group: WeightGroup, size: int, width: int) -> int:
    """Bytes with the rank's part of the intermediate size padded as its kernel needs."""
    if not width:
        return size
    return size * round_up(width, group.padded_multiple) // width
