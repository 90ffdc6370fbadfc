"""What was asked of `shipfitter estimate`: the options of its command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The options of the command line."""

    words: Sequence[str]
    gpu: str | None = None
    gpu_memory_mib: float | None = None
    gpu_free_memory_mib: float | None = None
    nodes: int | None = None
    interconnect: str | None = None
    engine_version: str | None = None
    model_facts: Path | None = None
    revision: str | None = None
    given_cache_gib: float | None = None
    environment: Sequence[str] = ()
    compile_cache: str = "cold"
    typical_tokens: int | None = None
    calibration: Path | None = None
    offline: bool = False  # nothing is asked of a hub
