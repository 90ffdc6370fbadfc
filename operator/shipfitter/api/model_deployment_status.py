"""ModelDeployment's status: what was decided, what runs, and what was seen."""

from typing import Annotated, Literal

from pydantic import Field

from shipfitter.api.base import (
    MAX_INTEGER,
    ApiModel,
    Bytes,
    Conditions,
    Count,
    Fraction,
    Generation,
    Labels,
    Line,
    Message,
    Name,
    Timestamp,
    Tokens,
    Word,
)
from shipfitter.core.intent import Verdict

Ratio = Annotated[float, Field(ge=0, le=1e9)]


class ModelStatus(ApiModel):
    """The model as it was resolved; the revision stays until the spec's changes."""

    uri: Line | None = None
    revision: Word | None = None
    architecture: Word | None = None
    weights_bytes: Bytes | None = None
    kv_bytes_per_token: Bytes | None = None
    native_max_model_len: Tokens | None = None
    quantization: Word | None = None


class BudgetStatus(ApiModel):
    """Where one GPU's bytes go: requested = weights + overhead + activation + graphs + cache."""

    total_bytes: Bytes
    requested_bytes: Bytes
    weights_bytes: Bytes
    activation_bytes: Bytes
    cuda_graph_bytes: Bytes
    overhead_bytes: Bytes
    kv_cache_bytes: Bytes
    not_requested_bytes: Bytes
    margin_bytes: Bytes
    """How much smaller the cache may turn out."""
    upside_bytes: Bytes | None = None
    """How much larger the cache may turn out."""
    uncharged_cuda_graph_bytes: Bytes | None = None
    """Graphs that come out of what was not requested."""
    outside_bytes: Bytes | None = None
    """In use before the engine counts: context and communication."""
    outside_low_bytes: Bytes | None = None
    outside_high_bytes: Bytes | None = None
    load_peak_bytes: Bytes | None = None


class TaintStatus(ApiModel):
    """A taint the pool's nodes carry."""

    key: Annotated[str, Field(max_length=317)]
    value: Annotated[str, Field(max_length=253)] = ""
    effect: Word = "NoSchedule"


class PoolStatus(ApiModel):
    """The pool as it was when the plan was made: a kept plan keeps its affinity."""

    selector: Labels | None = None
    selector_is_exact: bool | None = None
    taints: Annotated[tuple[TaintStatus, ...], Field(max_length=32)] = ()
    resource_name: Name | None = None
    gpus_per_node: Count | None = None
    total_bytes: Bytes | None = None
    nominal_bytes: Bytes | None = None
    foreign_used_bytes: Bytes | None = None
    compute_capability: Annotated[str, Field(max_length=16)] | None = None
    sharing: Word | None = None
    replicas_per_gpu: Count | None = None
    mig_profile: Word | None = None
    host_memory_bytes: Bytes | None = None
    nvlink: bool | None = None
    other_products: Annotated[tuple[Word, ...], Field(max_length=32)] = ()
    unified: bool | None = None


class VariantStatus(ApiModel):
    """One workload of the plan; what is absent is at the engine's or our own default."""

    name: Name
    pool: Name
    gpu_product: Word
    gpus_per_replica: Count
    tensor_parallel_size: Count
    pipeline_parallel_size: Count
    nodes_per_replica: Count
    replicas: Count
    model_uri: Line
    kv_cache_dtype: Word
    max_model_len: Tokens
    max_num_seqs: Count
    max_num_batched_tokens: Tokens
    gpu_memory_utilization: Fraction
    verdict: Verdict
    budget: BudgetStatus
    enable_prefix_caching: bool
    max_cudagraph_capture_size: Count
    async_scheduling: bool
    model_runner: Word
    attention_block_size: Count
    kv_cache_tokens: Tokens
    max_concurrency: Ratio
    running_at_typical: Count
    capacity_source: Word
    limited_by: Line

    one_request_share: Ratio | None = None
    """Part of the cache that one request of maxModelLen takes."""
    native_max_model_len: Tokens | None = None
    """The model's own limit."""
    preferred_reached: Count | None = None
    """How many of the two preferred values are reached."""
    num_gpu_blocks: Count | None = None
    engine_version: Word | None = None
    model_revision: Word | None = None
    calibrated_observations: Count | None = None
    cudagraph_capture_sizes: Annotated[tuple[Count, ...], Field(max_length=256)] | None = None
    settings: Annotated[dict[str, Line], Field(max_length=64)] | None = None
    """Engine settings that are not usual, by name; each value as JSON."""
    allocation: Word | None = None
    placement: PoolStatus | None = None
    decided_at: Timestamp | None = None
    """When these figures were decided, where that was not with the plan."""


class AlternativeStatus(ApiModel):
    """A nearest better or nearest fitting choice."""

    summary: Line
    would_allow: Line


class FrontierStatus(ApiModel):
    """One point of the trade-off on the chosen pool."""

    max_model_len: Tokens
    max_num_seqs: Count


class PlanStatus(ApiModel):
    """A complete decision."""

    variants: Annotated[tuple[VariantStatus, ...], Field(max_length=8)] = ()
    alternatives: Annotated[tuple[AlternativeStatus, ...], Field(max_length=3)] = ()
    frontier: Annotated[tuple[FrontierStatus, ...], Field(max_length=8)] = ()
    inputs_hash: Word | None = None
    decided_at: Timestamp | None = None
    reason: Message | None = None
    """Why it differs from the plan before."""
    why: Message | None = None
    """Why this GPU and this tensor-parallel size."""


class ObservedStatus(ApiModel):
    """What a started engine reported."""

    variant: Name
    kv_cache_tokens: Tokens | None = None
    max_concurrency: Ratio | None = None
    prediction_error_percent: Annotated[float, Field(ge=-1e6, le=1e6)] | None = None
    at: Timestamp | None = None


class BoundStatus(ApiModel):
    """A limit an engine named when it refused; it bounds this deployment's next plans."""

    pool: Name
    setting: Word
    value: Annotated[float, Field(ge=0, le=MAX_INTEGER)]


class RecoveryStatus(ApiModel):
    """The story of an engine that refused or died of memory."""

    attempts: Count = 0
    last_error: Message | None = None
    last_step: Message | None = None
    inputs_hash: Word | None = None
    """The attempts and bounds hold for this plan's inputs."""
    next_attempt_at: Timestamp | None = None
    bounds: Annotated[tuple[BoundStatus, ...], Field(max_length=64)] = ()


class VerifyStatus(ApiModel):
    """How the plan held under load; one test for each plan."""

    plan_hash: Word | None = None
    """The plan that was tried: its inputs and figures."""
    at: Timestamp | None = None
    requests: Count | None = None
    """Requests sent, in two waves of atOnce."""
    failed: Count | None = None
    at_once: Count | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    seconds: Ratio | None = None
    requests_per_second: Ratio | None = None
    output_tokens_per_second: Ratio | None = None
    mean_first_token_milliseconds: Ratio | None = None
    p99_first_token_milliseconds: Ratio | None = None
    mean_token_milliseconds: Ratio | None = None
    """From one token of an answer to the next."""
    preemptions: Count | None = None
    """Requests the engines put back for want of cache; absent where they did not say."""
    engine_error: Message | None = None
    """What an engine said that died under the load."""
    error: Message | None = None
    """Why there are no figures."""


class EngineStatus(ApiModel):
    """The engine as pinned."""

    image: Line | None = None
    version: Word | None = None


class SummaryStatus(ApiModel):
    """Strings for the printer columns, which can neither join nor shorten."""

    model: Line | None = None
    gpu: Line | None = None
    gpus: Word | None = None
    tp: Word | None = None
    context: Word | None = None
    seqs: Word | None = None
    ready: Word | None = None


ConditionType = Literal[
    "Ready",
    "ModelResolved",
    "CapacityKnown",
    "Planned",
    "Available",
    "Calibrated",
    "Verified",
    "Drifted",
    "Reconciling",
    "Stalled",
]


class ModelDeploymentStatus(ApiModel):
    """What was decided, what runs, and what was seen."""

    observed_generation: Generation | None = None
    conditions: Conditions = ()
    model: ModelStatus | None = None
    plan: PlanStatus | None = None
    """What runs or is being rolled out."""
    last_good_plan: PlanStatus | None = None
    """The last plan whose pods became ready: the way back."""
    observed: Annotated[tuple[ObservedStatus, ...], Field(max_length=8)] = ()
    recovery: RecoveryStatus | None = None
    verify: VerifyStatus | None = None
    engine: EngineStatus | None = None
    summary: SummaryStatus | None = None
    replicas: Count | None = None
    ready_replicas: Count | None = None
    selector: Annotated[str, Field(max_length=1024)] | None = None
    """Selects the pods that serve, for autoscalers."""
