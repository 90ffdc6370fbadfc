"""CUDA graph capture: which batch sizes the engine records."""

from bisect import bisect_right
from functools import lru_cache

from shipfitter.core.rules import EngineRules

BLACKWELL_MAJOR = 10
# Source: vLLM vllm/model_executor/models/config.py GptOssForCausalLMConfig.
GPT_OSS_LARGEST_CAPTURE = 1024


def largest_capture_size(
    rules: EngineRules,
    *,
    architecture: str,
    compute_capability: tuple[int, int] | None,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    tokens_per_sequence: int,
) -> int:
    """The engine's own largest captured batch, in tokens.

    Source: vLLM vllm/config/vllm.py _set_cudagraph_sizes.
    """
    largest = rules.largest_capture
    if compute_capability is not None and compute_capability[0] == BLACKWELL_MAJOR:
        largest = rules.largest_capture_blackwell
    if architecture == "GptOssForCausalLM" and not rules.fine_capture_steps:
        largest = GPT_OSS_LARGEST_CAPTURE
    if rules.legacy_engine:
        return min(largest, max_num_seqs)
    return min(2 * max_num_seqs * tokens_per_sequence, largest, max_num_batched_tokens)


_COARSE_FROM, _COARSE_STEP, _STEP = 256, 16, 8
_LARGEST_GRID = 8192  # beyond any --max-cudagraph-capture-size seen


@lru_cache(maxsize=64)
def _grid(fine_steps: bool, tokens_per_sequence: int) -> tuple[int, ...]:
    """Every size the engine could capture, ascending; drafts add multiples of a step's tokens."""
    coarse = range(_COARSE_FROM, _LARGEST_GRID + 1, _STEP if fine_steps else _COARSE_STEP)
    sizes = (1, 2, 4, *range(_STEP, _COARSE_FROM, _STEP), *coarse)
    return tuple(sorted({*sizes, *(size * tokens_per_sequence for size in sizes)}))


@lru_cache(maxsize=4096)
def capture_sizes(
    *,
    largest: int,
    fine_steps: bool,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    tokens_per_sequence: int,
) -> tuple[int, ...]:
    """The batch sizes captured by default, ascending: 1, 2, 4, eights, and above 256 sixteens.

    Source: vLLM vllm/config/vllm.py _set_cudagraph_sizes (before 0.12: vllm/config.py).

    >>> len(capture_sizes(largest=512, fine_steps=False, max_num_seqs=256,
    ...                   max_num_batched_tokens=2048, tokens_per_sequence=1))
    51
    """
    grid = _grid(fine_steps, tokens_per_sequence)
    sizes = grid[: bisect_right(grid, largest)]
    if fine_steps:
        return sizes
    odd = {max_num_seqs, max_num_batched_tokens}.difference(sizes)
    return tuple(sorted((*sizes, *(size for size in odd if size <= largest))))


def full_decode_sizes(
    sizes: tuple[int, ...], rules: EngineRules, *, max_num_seqs: int, tokens_per_sequence: int
) -> tuple[int, ...]:
    """The sizes captured once more as whole decode graphs."""
    if not rules.captures_full_decode:
        return ()
    return sizes[: bisect_right(sizes, max_num_seqs * tokens_per_sequence)]
