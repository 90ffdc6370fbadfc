"""What a log says, and nothing that it does not: the engine's own figures, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from shipfitter.core.engine_log.arguments import Flag
from shipfitter.core.refusals import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRefusal:
    """Why an engine did not start, or died, with the figures that it named."""

    kind: Refusal
    message: str  # the engine's sentence
    kv_needed_gib: float | None = None
    kv_available_gib: float | None = None
    estimated_max_model_len: int | None = None
    max_model_len: int | None = None  # the length that was asked for
    derived_max_model_len: int | None = None  # the longest the model allows
    kv_cache_tokens: int | None = None
    free_gib: float | None = None  # at the start; of the card, for an allocation that failed
    total_gib: float | None = None
    requested_gib: float | None = None
    gpu_memory_utilization: float | None = None
    tried_gib: float | None = None  # the allocation that failed
    max_num_seqs: int | None = None  # dummy requests of a warm-up, or sequences without a state
    state_blocks: int | None = None
    tensor_parallel_size: int | None = None
    exit_code: int | None = None

    @property
    def is_memory(self) -> bool:
        """Whether a smaller plan could start where this one did not."""
        return self.kind in _MEMORY

    @property
    def may_be_memory(self) -> bool:
        """Whether only the front was heard, which knows that the core died and not why."""
        return self.kind is Refusal.OTHER and _FRONT_ALONE in self.message


# Source: vLLM 0.8 to 0.33 vllm/v1/engine/utils.py wait_for_engine_startup; the tail of a log.
_FRONT_ALONE = "ngine core initialization failed"
_MEMORY = frozenset(
    (
        Refusal.KV_CACHE_TOO_SMALL,
        Refusal.NO_CACHE_BLOCKS,
        Refusal.FREE_MEMORY,
        Refusal.OUT_OF_MEMORY_LOAD,
        Refusal.OUT_OF_MEMORY_PROFILE,
        Refusal.OUT_OF_MEMORY_SAMPLER,
        Refusal.OUT_OF_MEMORY_GRAPHS,
        Refusal.OUT_OF_MEMORY_SERVING,
        Refusal.STATE_BLOCKS_TOO_FEW,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """The facts of one start. None: the log does not state it.

    Where ranks or engines state different figures: the least of what is left (cache, free memory),
    the most of what is taken, because those decide.
    """

    model: str | None = None
    engine_version: str | None = None
    tensor_parallel_size: int | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    weights_gib: float | None = None
    kv_cache_memory_gib: float | None = None
    kv_cache_tokens: int | None = None
    num_gpu_blocks: int | None = None
    max_concurrency: float | None = None
    cudagraph_gib: float | None = None
    activation_peak_gib: float | None = None
    non_torch_gib: float | None = None
    total_gib: float | None = None
    free_gib: float | None = None
    requested_gib: float | None = None
    kv_needed_gib: float | None = None
    kv_available_gib: float | None = None
    estimated_max_model_len: int | None = None

    cudagraph_estimate_gib: float | None = None
    block_size: int | None = None
    max_num_batched_tokens: int | None = None  # as resolved
    generation: str | None = None  # V0 or V1
    model_runner: str | None = None  # V2 where the log says so
    ranks_heard: int = 1  # by the names of the processes that speak
    gpu: str | None = None  # its name as some line spells it
    flags: Mapping[str, Flag] = field(default_factory=dict)  # as given; underscored names
    resolved: Mapping[str, Flag] = field(default_factory=dict)  # as the engine configured itself
    flags_are_complete: bool = False  # the engine listed those that are not the default
    started: bool = False
    refusal: EngineRefusal | None = None

    @property
    def outcome(self) -> str:
        """Started, the name of a refusal, or Unknown."""
        if self.refusal is not None:
            return str(self.refusal.kind)
        return "Started" if self.started else "Unknown"

    @property
    def says_anything(self) -> bool:
        """Whether the text was a log at all."""
        stated = any(getattr(self, name) is not None for name in STATED)
        return stated or self.outcome != "Unknown" or bool(self.flags)

    def read(self) -> Mapping[str, str | int | float | None]:
        """The stated facts by the names that compare-log prints."""
        return {_camel(name): getattr(self, name) for name in STATED}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# Those that compare-log prints: the first of the fields, up to the estimated length.
_NAMES = tuple(one.name for one in fields(EngineLog))
STATED = _NAMES[: _NAMES.index("estimated_max_model_len") + 1]
