"""The engine's KV-cache planner: layers to groups, bytes to blocks, blocks to tokens; exact.

Source: vLLM vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py).
"""

from dataclasses import dataclass

from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """Groups and page sizes for one model under fixed settings; answers questions about lengths.

    Built by `cache_layout`; immutable. All per rank; with pipeline stages one entry per stage.
    """

    bytes_per_block: tuple[int, ...]  # per stage
    block_size: int  # tokens of an attention block, after hybrid alignment
    num_groups: int
    has_state: bool
    null_block: bool  # engines from 0.29 keep one block back in their checks

    def pages(self, tokens: int) -> int:
        """Blocks one request of this length needs to be admitted: the engine's R(n)."""
        raise NotImplementedError

    def hold_pages(self, tokens: int) -> int:
        """Blocks a running request keeps between steps: `pages` without the in-flight part."""
        raise NotImplementedError

    def needed_bytes(self, tokens: int, *, stage: int = 0) -> int:
        """Bytes the engine will say it needs for one request of this length."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """What the engine reports for given cache memory, or the refusal it prints."""

    num_gpu_blocks: int
    max_model_len: int
    max_concurrency: float
    kv_cache_tokens: int
    refusal: str | None = None  # KVCacheTooSmall | NoCacheBlocks | StateBlocksTooFew
    needed_bytes: int = 0
    usable_bytes: int = 0
    estimated_max_model_len: int | None = None


def cache_layout(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> CacheLayout:
    """The cache layout the engine would build; settings must be resolved.

    Raises UnknownArchitectureError for a cache whose layout is not known.
    """
    raise NotImplementedError


def plan_cache(
    layout: CacheLayout, settings: EngineSettings, available_bytes: tuple[int, ...]
) -> CachePlan:
    """Blocks, tokens and concurrency for the cache memory of each stage, or the engine's refusal."""
    raise NotImplementedError


def longest_fitting_tokens(layout: CacheLayout, blocks: int, limit_tokens: int) -> int:
    """The longest single request that the blocks admit, at most the limit; 0 when none does."""
    raise NotImplementedError
