"""How one release of the engine counts: the columns of the table in `releases`."""

from dataclasses import dataclass
from enum import StrEnum


class NeedRule(StrEnum):
    """What the engine compares with its memory for one request of full length."""

    OWN_PAGES = "every layer's own pages, before grouping"
    FIRST_GROUP_ALL_STAGES = "the first group of the whole model, against the smallest rank"
    FIRST_GROUP = "the first group of the rank's own layers"
    BLOCKS = "bytes per block times the pages of all groups"


class StateRule(StrEnum):
    """How many pages a recurrent layer takes for one request."""

    ONE = "one"
    BY_BLOCK = "one per block where prefixes are cached, else one"
    BY_MODE = "by cache mode, and one for each speculative token"


class HybridPrefixCaching(StrEnum):
    """Whether a model with recurrent state caches prefixes."""

    NEVER = "never, whatever was asked"
    LISTED = "when asked, and only for listed classes"
    WHEN_ASKED = "when asked"
    DEFAULT = "unless asked not to"


class CompileBlock(StrEnum):
    """Whether a cold compile cache runs kernels on example tensors inside the profile run."""

    RUNS = "seen to run"
    ABSENT = "seen to be off"
    UNREAD = "not read in this release: anything from nothing to the whole block"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTier:
    """Default batch sizes of `vllm serve` on cards from a nominal size on."""

    min_nominal_bytes: int
    max_num_batched_tokens: int
    max_num_seqs: int
    excluded_products: tuple[str, ...] = ()
    excluded_compute_capability: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRules:
    """How one release counts; each field is explained where a release changed it."""

    legacy_engine: bool  # the engine before V1: one group, no chunked prefill by default
    default_utilization: float
    tiers: tuple[BatchTier, ...]  # first that matches
    caps_batched_tokens: bool
    fine_capture_steps: bool  # steps of 8 up to the largest size, not 16 above 256
    largest_capture: int
    largest_capture_blackwell: int
    captures_full_decode: bool
    hybrid_manager: bool
    communication_outside: bool  # context and NCCL are there before the first snapshot
    asynchronous_by_default: bool
    reserves_batches_in_flight: bool
    charges_graphs: bool
    charges_graphs_on_v2: bool
    charges_what_is_consumed: bool
    null_block: bool
    need_rule: NeedRule
    reports_concurrency: bool
    override_replaces_memory: bool
    groups_by_stage: bool  # each pipeline stage groups its own layers
    projects_groups: bool  # a stage counts its own layers of a group whose layers differ
    scales_blocks: bool  # pages become alike by more tokens in a block
    pads_attention_pages: bool
    keeps_short_latents: bool  # beside larger pages, by giving every layer all tokens
    pads_groups_below: float  # kinds of layers that are less apart are padded to the larger one
    indexer_on_every_layer: bool
    state_rule: StateRule
    hybrid_prefix_caching: HybridPrefixCaching
    mode_all_counts_drafts: bool
    retains_lookahead: bool
    refuses_few_state_blocks: bool
    hybrid_kernel_block: int
    hybrid_kernel_block_mla: int
    checkpoint_families: tuple[str, ...]  # recurrent families that keep one more page
    state_blocks_of_64: bool
    yarn_multiplies: bool
    sorts_to_sample: bool
    keeps_sampler_scratch: bool
    samples_in_fp32_on_v2: bool
    compile_block: CompileBlock
    keeps_experts_workspace: bool
