"""The one solve: wish, model facts, pools and engine in; a Plan, or NoFit with facts, out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shipfitter.core.budget import Budget
from shipfitter.core.engines import EngineSettings
from shipfitter.core.inventory import Pool
from shipfitter.core.model import ModelFacts


class Prefer(StrEnum):
    """How much of the cache one request may take."""

    CONTEXT = "Context"
    BALANCED = "Balanced"
    CONCURRENCY = "Concurrency"


class SizeFor(StrEnum):
    """What max_num_seqs counts on."""

    TYPICAL = "Typical"
    WORST_CASE = "WorstCase"


class Verdict(StrEnum):
    """Whether the engine will start."""

    FITS = "Fits"
    BORDERLINE = "Borderline"  # the point estimate fits, the pessimistic one does not
    DOES_NOT_FIT = "DoesNotFit"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A quantity the user bounds: absent parts take the design's defaults."""

    minimum: int | None = None
    preferred: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """One of the models the user would accept."""

    uri: str
    facts: ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What the user wants, without a word on how."""

    models: tuple[ModelChoice, ...]  # first choice first
    replicas: int = 1
    max_model_len: Wanted = Wanted()
    max_num_seqs: Wanted = Wanted()
    typical_tokens: int | None = None
    size_for: SizeFor = SizeFor.TYPICAL
    prefer: Prefer = Prefer.BALANCED
    products: tuple[str, ...] = ()
    max_gpus_per_replica: int = 8
    tensor_parallel_size: int | None = None
    kv_cache_dtype: str = "auto"  # auto | fp8 | Any
    allow_shared: bool = False
    engine: EngineSettings = field(default_factory=lambda: EngineSettings.latest())
    pinned: Mapping[str, int | float | str | bool] = field(default_factory=dict)  # flags the user pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """One candidate solved: a pool, a model, a layout and the numbers that fit."""

    pool: Pool
    model: ModelChoice
    settings: EngineSettings  # resolved: what the flags will say
    budget: Budget  # the tightest stage
    verdict: Verdict
    kv_cache_tokens: int
    num_gpu_blocks: int
    max_concurrency: float
    running_at_typical: int
    limited_by: str  # "KV cache" | "state blocks" | "preferred value" | "model's own limit" | ...
    calibrated_observations: int = 0

    @property
    def gpus_per_replica(self) -> int:
        """GPUs one replica takes."""
        return self.settings.layout.world_size


@dataclass(frozen=True, slots=True)
class Alternative:
    """A nearest better or nearest fitting choice, computed by the same solve."""

    summary: str
    would_allow: str


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One point of the trade-off on the chosen pool."""

    max_model_len: int
    max_num_seqs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPlan:
    """A sizing and how many replicas it carries."""

    sizing: Sizing
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A complete decision."""

    variants: tuple[VariantPlan, ...]
    alternatives: tuple[Alternative, ...]
    frontier: tuple[FrontierPoint, ...]
    why: str  # one sentence: why this GPU and TP


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """Nothing meets the minimums; the closest, and what would do."""

    reason: str  # DoesNotFit | NoGpuCapacity | InvalidSpec
    problem: str
    closest: Sizing | None = None
    would_fit: tuple[Alternative, ...] = ()
    excluded: tuple[str, ...] = ()  # why each kind of candidate was left out


def solve(intent: Intent, pools: tuple[Pool, ...]) -> Plan | NoFit:
    """The plan for a wish on the pools, or what is missing. Depends on nothing but its inputs."""
    raise NotImplementedError
