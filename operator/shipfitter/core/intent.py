"""What the user wants, without a word on how: the input of the one solve."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shipfitter.core.bounds import Bound
from shipfitter.core.calibrate import CalibrationKey, Learning
from shipfitter.core.engines import EngineSettings
from shipfitter.core.model import ModelFacts
from shipfitter.core.quota import GpuQuota


class Prefer(StrEnum):
    """How much of the cache one request may take."""

    CONTEXT = "Context"
    BALANCED = "Balanced"
    CONCURRENCY = "Concurrency"


TYPICAL_TOKENS: Mapping[Prefer, int] = {
    Prefer.CONTEXT: 8192,
    Prefer.BALANCED: 2048,
    Prefer.CONCURRENCY: 1024,
}


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
    may_spread: bool = True  # over several pools; not where one node alone can mount the cache
    quotas: tuple[GpuQuota, ...] = ()  # of the namespace
    spans_nodes: bool = False  # whether the cluster can run one replica as a group of pods
    one_node_because: str = ""  # what else keeps a replica on one node, with the way out
    elsewhere: str = ""  # where no pool is usable: what would make one so
    engine: EngineSettings = field(default_factory=EngineSettings.latest)  # what is set is pinned
    bounds: tuple[Bound, ...] = ()  # what engines of this deployment refused
    learnt: Mapping[CalibrationKey, Learning] = field(default_factory=dict)

    @property
    def typical(self) -> int:
        """Tokens a running request holds on average: given, or by preference."""
        return self.typical_tokens or TYPICAL_TOKENS[self.prefer]
