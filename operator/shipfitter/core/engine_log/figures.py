"""Figures as a log spells them, and which of several decides."""

import re
from math import isfinite

Value = str | int | float

_GIB, _MIB = 2**30, 2**20
_UNITS = {"b": 1, "k": 2**10, "m": _MIB, "g": _GIB, "t": 2**40}
_WHOLE = frozenset(
    (
        "tensor_parallel_size",
        "max_model_len",
        "derived_max_model_len",
        "kv_cache_tokens",
        "num_gpu_blocks",
        "estimated_max_model_len",
        "block_size",
        "max_num_batched_tokens",
        "max_num_seqs",
        "state_blocks",
        "exit_code",
    )
)
_TEXTS = frozenset(("model", "engine_version", "gpu", "generation", "model_runner"))
# Which of several figures decides: the least of what is left, else the most of what is taken.
_LEAST = frozenset(
    ("kv_cache_memory_gib", "kv_cache_tokens", "num_gpu_blocks", "max_concurrency", "free_gib")
)
_MOST = frozenset(
    ("weights_gib", "activation_peak_gib", "non_torch_gib", "cudagraph_gib", "requested_gib")
)


def figure(fact: str, text: str) -> tuple[str, Value | None]:
    """The fact that is stated, and its value: GiB for bytes; None where it is no number."""
    if fact in _TEXTS:
        return fact, text.strip()
    name, scale = fact, 1.0
    if fact.endswith("_bytes"):
        name, scale = fact.removesuffix("_bytes") + "_gib", 1 / _GIB
    try:
        if fact in _WHOLE:
            return name, _whole(text)
        value = float(text) * scale
        if not isfinite(value):
            return name, None
        return name, round(value, 2) if scale != 1.0 else value
    except (ValueError, OverflowError):
        return name, None


def _whole(text: str) -> int:
    """A count with its thousands set apart, or a flag's with a suffix: 1k is 1000, 1K is 1024.

    Source: vLLM vllm/utils/argparse_utils.py human_readable_int.
    """
    suffixed = re.fullmatch(r"(\d+)([kKmM])", text)
    if suffixed:
        return int(suffixed[1]) * {"k": 1000, "K": 2**10, "m": 10**6, "M": _MIB}[suffixed[2]]
    return int(text.replace(",", ""))


def decided(fact: str, stated: list[tuple[int, Value]]) -> Value:
    """Of what lines of the lowest rank state: the least, the most, or the first."""
    rank = min(rank for rank, _ in stated)
    values = [value for one, value in stated if one == rank]
    if fact in _LEAST:
        return min(values)
    if fact in _MOST:
        return max(values)
    return values[0]


def size_gib(text: str) -> float | None:
    """A size with its unit, as torch prints it."""
    found = re.fullmatch(r"([\d.]+)\s*([a-zA-Z]+)", text)
    if found is None:
        return None
    return round(float(found[1]) * _UNITS[found[2][0].lower()] / _GIB, 2)
