"""The engine's KV-cache planner: bytes to blocks, blocks to tokens, and its refusals; exact.

Source: vLLM vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from shipfitter.core.cache_layout import CacheLayout, cache_layout
from shipfitter.core.engines import EngineSettings

__all__ = ["CacheLayout", "CachePlan", "cache_layout", "longest_fitting_tokens", "plan_cache"]


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


def plan_cache(
    layout: CacheLayout,
    settings: EngineSettings,
    available_bytes: tuple[int, ...],
    *,
    auto_fit: bool = False,
) -> CachePlan:
    """Blocks, tokens and concurrency for the cache memory of each stage, or the engine's refusal.

    `auto_fit` is the engine's `--max-model-len auto`: the length shrinks to what fits.
    """
    length = settings.max_model_len or 1
    if not any(layout.bytes_per_block):
        return CachePlan(
            num_gpu_blocks=1, max_model_len=length, max_concurrency=0.0, kv_cache_tokens=0
        )
    available, checked = _memory(layout, settings, available_bytes)
    fitting = [
        _longest_within(layout, stage, usable_bytes, length)
        for stage, usable_bytes in enumerate(checked)
    ]
    if auto_fit:
        length = min(length, *fitting) or length
    blocks = _blocks(layout, settings, available)
    plan = _report(layout, settings, blocks, length)
    stage = next(
        (
            stage
            for stage, usable_bytes in enumerate(checked)
            if layout.needed_bytes(length, stage=stage) > usable_bytes or usable_bytes <= 0
        ),
        None,
    )
    if stage is not None:
        return replace(
            plan,
            refusal="NoCacheBlocks" if checked[stage] <= 0 else "KVCacheTooSmall",
            needed_bytes=layout.needed_bytes(length, stage=stage),
            usable_bytes=checked[stage],
            estimated_max_model_len=fitting[stage] or None,
        )
    needed = tuple(layout.needed_bytes(length, stage=stage) for stage in range(len(checked)))
    tightest = min(range(len(checked)), key=lambda stage: checked[stage] / max(1, needed[stage]))
    plan = replace(plan, needed_bytes=needed[tightest], usable_bytes=checked[tightest])
    if _too_few_state_blocks(layout, settings, blocks):
        return replace(plan, refusal="StateBlocksTooFew")
    return plan


def _memory(
    layout: CacheLayout, settings: EngineSettings, available_bytes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The memory of each stage, and what the checks compare with."""
    rules = settings.rules
    override = settings.num_gpu_blocks_override
    if override is not None and rules.override_replaces_memory:
        available_bytes = tuple(override * block_bytes for block_bytes in layout.bytes_per_block)
    checked = available_bytes
    if layout.null_block:
        checked = tuple(
            stage_bytes - block_bytes
            for stage_bytes, block_bytes in zip(
                available_bytes, layout.bytes_per_block, strict=True
            )
        )
    if layout.needs_least_memory:
        checked = (min(checked),) * len(checked)
    return available_bytes, checked


def _blocks(layout: CacheLayout, settings: EngineSettings, available_bytes: tuple[int, ...]) -> int:
    if settings.num_gpu_blocks_override is not None:
        return settings.num_gpu_blocks_override
    return min(
        max(0, stage_bytes // block_bytes)
        for stage_bytes, block_bytes in zip(available_bytes, layout.bytes_per_block, strict=True)
        if block_bytes
    )


def _report(layout: CacheLayout, settings: EngineSettings, blocks: int, length: int) -> CachePlan:
    """The two figures of the log. Source: vLLM kv_cache_utils.py _report_kv_cache_config."""
    pages = layout.reported_pages(length)
    if settings.rules.reports_concurrency:
        tokens = int(blocks / pages * length)
    else:
        block = layout.min_block_size
        if layout.state_spans_length:
            whole = settings.max_model_len or length
            block = min(block, whole) if layout.has_attention else whole
        tokens = blocks // layout.num_groups * block * layout.shards
    return CachePlan(
        num_gpu_blocks=blocks,
        max_model_len=length,
        max_concurrency=blocks / pages,
        kv_cache_tokens=tokens,
    )


def _too_few_state_blocks(layout: CacheLayout, settings: EngineSettings, blocks: int) -> bool:
    """Source: vLLM vllm/config/compilation.py, from 0.20 on, with full decode graphs."""
    return (
        layout.has_state
        and settings.rules.refuses_few_state_blocks
        and not settings.enforce_eager
        and (settings.max_num_seqs or 0) > blocks
    )


def longest_fitting_tokens(layout: CacheLayout, blocks: int, limit_tokens: int) -> int:
    """The longest single request that the blocks admit, at most the limit; 0 when none does.

    One block is never handed out: the engine keeps it as the null block, whatever its checks say.
    """
    return _largest(lambda tokens: layout.pages(tokens) <= blocks - 1, limit_tokens)


def _longest_within(layout: CacheLayout, stage: int, usable_bytes: int, limit: int) -> int:
    return _largest(lambda tokens: layout.needed_bytes(tokens, stage=stage) <= usable_bytes, limit)


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest length up to the limit that fits; pages never fall as a request grows."""
    if fits(limit):
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
