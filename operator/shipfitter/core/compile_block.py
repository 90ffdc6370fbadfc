"""What Inductor holds while it runs its kernels once, on example tensors of full size.

It does so on a start without a compile cache, inside the profiling window, before the experts have
their workspace. Of all kernels only those with a table as argument can outweigh the forward pass.

Source: vLLM 0.32, torch/_inductor standalone_compile, run on tensors without data; four logs.
"""

from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.engines import EngineSettings
from shipfitter.core.estimate import Estimate
from shipfitter.core.model import ModelFacts
from shipfitter.core.rules import CompileBlock
from shipfitter.core.sampler import vocabulary_entries
from shipfitter.units import ceil_div

_NOTHING = Estimate(low=0, point=0, high=0)


def compile_block(
    model: ModelFacts, settings: EngineSettings, tokens: int, workspace_bytes: int
) -> Estimate:
    """Bytes beside what is there already, less the workspace that comes later."""
    rules = settings.rules
    never = settings.enforce_eager or rules.compile_block is CompileBlock.ABSENT
    if settings.compile_cache_warm or never:
        return _NOTHING
    rotary = model.rotary_bytes + tokens * _rotated_bytes(model, settings)
    point = max(_embedding_bytes(model, settings, tokens), rotary) - workspace_bytes
    if point <= 0:
        return _NOTHING
    # Told to leave its towers, a model is compiled with its table; one log is without it.
    certain = rules.compile_block is CompileBlock.RUNS and not model.is_multimodal
    return Estimate.around(point, low_percent=90 if certain else 0, high_percent=108)


def _embedding_bytes(model: ModelFacts, settings: EngineSettings, tokens: int) -> int:
    """The embedding table with its rows and their first norm, or gate and up with their product.

    0 under tensor parallelism, where the embedding is an operator of its own, and where rows come
    from outside (multimodal): what other kernels take is less than the forward pass.
    """
    fed_with_rows = model.is_multimodal and not settings.language_model_only
    if settings.layout.tensor_parallel_size > 1 or fed_with_rows:
        return 0
    row_bytes = model.hidden_size * model_dtype_bytes(model)
    widest = max((layer.intermediate_size for layer in model.layers), default=0)
    gated_bytes = 3 * widest * model_dtype_bytes(model)
    return 2 * tokens * row_bytes + max(vocabulary_entries(model) * row_bytes, tokens * gated_bytes)


def _rotated_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    """A token's queries, keys and values, and the queries rotated; beside the rope's table."""
    ranks = settings.layout.tensor_parallel_size
    queries = ceil_div(model.num_attention_heads, ranks)
    keys = max(1, model.num_key_value_heads // ranks)
    return 2 * (queries + keys) * model.head_dim * model_dtype_bytes(model)
