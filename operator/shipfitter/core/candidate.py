"""What is sized, and what comes of it: a candidate becomes a sizing or a shortfall."""

from dataclasses import dataclass

from shipfitter.core.bounds import NO_CAPS, Caps
from shipfitter.core.budget import Budget
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.intent import ModelChoice, Verdict
from shipfitter.core.inventory import Pool
from shipfitter.core.weights import weights_bytes

# More than this share of a card is never asked for: what is left holds context and graphs.
MOST_UTILIZATION = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pool, a model and a layout that the engine would start in."""

    pool: Pool
    model: ModelChoice
    settings: EngineSettings  # layout, KV dtype and pins; sizes still open
    caps: Caps = NO_CAPS

    @property
    def gpus_per_replica(self) -> int:
        """GPUs one replica takes."""
        return self.settings.layout.gpus

    @property
    def is_linked(self) -> bool:
        """Whether NVLink joins the GPUs that a replica's ranks get on a node."""
        ranks = self.settings.layout.ranks_per_node
        if any(node.island_gpus for node in self.pool.nodes) and ranks > 1:
            return not self.pool.crossing(ranks)
        return self.pool.nvlink

    @property
    def gpu(self) -> Gpu:
        """The pool's card as the budget needs it; a shared card offers its share."""
        share = self.pool.replicas_per_gpu if self.pool.sharing != "none" else 1
        total_bytes = self.pool.total_bytes // share
        return Gpu(
            product=self.pool.product,
            total_bytes=total_bytes,
            foreign_used_bytes=self.pool.foreign_used_bytes,
            nominal_bytes=self.pool.nominal_bytes,
            compute_capability=self.pool.compute_capability,
            nvlink=self.is_linked,
        )


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
    limited_by: str
    one_request_share: float  # of the cache, by one request of max_model_len
    native_len: int  # the model's own limit
    preferred_reached: int  # of the two preferred values: 0, 1 or 2
    calibrated_observations: int = 0

    @property
    def gpus_per_replica(self) -> int:
        """GPUs one replica takes."""
        return self.settings.layout.gpus

    @property
    def replicas_now(self) -> int:
        """Replicas that the pool's free GPUs hold now."""
        layout = self.settings.layout
        return self.pool.replicas_that_fit(layout.gpus_per_node, nodes=layout.nodes)

    @property
    def max_model_len(self) -> int:
        """Tokens one request may hold."""
        assert self.settings.max_model_len is not None
        return self.settings.max_model_len

    @property
    def max_num_seqs(self) -> int:
        """Requests the engine may run at once."""
        assert self.settings.max_num_seqs is not None
        return self.settings.max_num_seqs


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why a candidate does not meet the minimums, in figures."""

    candidate: Candidate
    kind: str  # weights | cache | length | sequences
    needed_bytes: int  # per GPU
    usable_bytes: int  # per GPU
    longest_tokens: int = 0  # one request that would fit, where any does


def heaviest_rank_bytes(candidate: Candidate) -> int:
    """Weight bytes of the rank that holds most."""
    layout = candidate.settings.layout
    return max(
        weights_bytes(candidate.model.facts, layout, stage=stage)
        for stage in range(layout.pipeline_parallel_size)
    )


def too_heavy(candidate: Candidate) -> bool:
    """Whether the weights alone rule the candidate out: by the card, or by what was refused."""
    weights, most = heaviest_rank_bytes(candidate), candidate.caps.weights_below_bytes
    if most is not None and weights >= most:
        return True
    return weights >= candidate.gpu.total_bytes * MOST_UTILIZATION
