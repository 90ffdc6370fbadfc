"""The engine's versions: defaults and behaviour that change numbers, as a table with sources."""

from dataclasses import dataclass

from shipfitter.core.model import ModelFacts
from shipfitter.core.weights import ParallelLayout


@dataclass(frozen=True, slots=True, order=True)
class EngineVersion:
    """A vLLM release; ordered. `EngineVersion.parse("0.33.0")`, "v0.20.1rc1" read as 0.20.1."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "EngineVersion":
        """Read a release or image tag. Raises UnknownEngineError for anything else, or before 0.6."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Everything that decides the engine's memory on one rank; the planner writes each as a flag.

    None means "as the engine derives it"; `resolve` leaves no None.
    """

    version: EngineVersion
    layout: ParallelLayout = ParallelLayout()
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_dtype: str = "auto"
    block_size: int | None = None
    enable_prefix_caching: bool | None = None
    enforce_eager: bool = False
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    max_cudagraph_capture_size: int | None = None
    async_scheduling: bool | None = None
    model_runner: str | None = None  # V1 | V2
    enable_chunked_prefill: bool = True
    disable_hybrid_kv_cache_manager: bool = False
    num_speculative_tokens: int = 0
    decode_context_parallel_size: int = 1
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    compile_cache_warm: bool = False

    @property
    def max_concurrent_batches(self) -> int:
        """Batches in flight at once. Source: vLLM vllm/config/vllm.py max_concurrent_batches."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The card as the budget needs it."""

    product: str
    total_bytes: int  # what CUDA calls total
    free_bytes: int | None = None  # measured after context and communication, where known
    nominal_bytes: int = 0  # NVML's total: decides the engine's default tier; 0 = total_bytes
    compute_capability: tuple[int, int] | None = None
    nvlink: bool = False


def derived_max_model_len(model: ModelFacts, version: EngineVersion) -> int:
    """The length the engine takes when none is asked.

    Source: vLLM vllm/config/model.py _get_and_verify_max_len; `vllm-memory` section 4.3.
    """
    raise NotImplementedError


def resolve(settings: EngineSettings, model: ModelFacts, gpu: Gpu) -> EngineSettings:
    """The settings with every None replaced by the engine's own default for version, model and card."""
    raise NotImplementedError
