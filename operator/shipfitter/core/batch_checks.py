"""Batches that the engine refuses once it knows the blocks of the cache and the largest item."""

from collections.abc import Iterator

from shipfitter.core.cache_layout import CacheLayout
from shipfitter.core.defaults import whole_item_tokens
from shipfitter.core.engines import EngineSettings
from shipfitter.core.model import ModelFacts
from shipfitter.core.versions import EngineVersion

# Source: vLLM 0.24 vllm/config/vllm.py validate_block_size; gone in 0.32. 0.17 started without.
_STATES_ALIGNED = EngineVersion(0, 18, 0)
_STATES_SCHEDULED_FREELY = EngineVersion(0, 32, 0)


def batch_problems(
    model: ModelFacts, settings: EngineSettings, layout: CacheLayout
) -> Iterator[str]:
    """Why a batch of this size would not start; settings must be resolved."""
    tokens = settings.max_num_batched_tokens or 0
    aligned = settings.enable_prefix_caching and layout.has_state
    asserted = _STATES_ALIGNED <= settings.version < _STATES_SCHEDULED_FREELY
    if aligned and asserted and layout.block_size > tokens:
        yield (
            f"maxNumBatchedTokens {tokens} is less than a block of {layout.block_size}, which "
            f"vLLM {settings.version} schedules whole where it caches prefixes of recurrent layers"
        )
    item = whole_item_tokens(model, settings.version)
    allowed = settings.items_per_prompt or {}
    images = allowed.get("image", 1) and not settings.language_model_only
    if item > tokens and images:
        yield (
            f"maxNumBatchedTokens {tokens} is less than an image of {item} tokens, which "
            f"{model.architecture} reads whole"
        )
