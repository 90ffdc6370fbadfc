"""The engine's releases: what each changed in the numbers, folded into one row per release."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from shipfitter.core.rules import (
    BatchTier,
    CompileBlock,
    EngineRules,
    HybridPrefixCaching,
    NeedRule,
    StateRule,
)
from shipfitter.core.versions import EngineVersion
from shipfitter.units import GIB

_SMALL = BatchTier(min_nominal_bytes=0, max_num_batched_tokens=2048, max_num_seqs=256)
_LARGE_ANY_NAME = BatchTier(
    min_nominal_bytes=70 * GIB, max_num_batched_tokens=8192, max_num_seqs=1024
)
# 40 and 80 GB A100 alike; GB10's own memory query fails before 0.33, so it counts as small.
_LARGE = replace(_LARGE_ANY_NAME, excluded_products=("a100", "gb10"))
_LARGE_BY_CAPABILITY = replace(
    _LARGE, excluded_products=("a100",), excluded_compute_capability=(12, 1)
)
_HUGE = BatchTier(min_nominal_bytes=160 * GIB, max_num_batched_tokens=16384, max_num_seqs=1024)

_FIRST = EngineRules(
    legacy_engine=True,
    default_utilization=0.90,
    tiers=(_SMALL,),
    caps_batched_tokens=False,
    fine_capture_steps=True,
    largest_capture=256,
    largest_capture_blackwell=256,
    captures_full_decode=False,
    hybrid_manager=False,
    communication_outside=False,
    asynchronous_by_default=False,
    reserves_batches_in_flight=False,
    charges_graphs=False,
    charges_graphs_on_v2=False,
    charges_what_is_consumed=False,
    null_block=False,
    need_rule=NeedRule.OWN_PAGES,
    reports_concurrency=False,
    override_replaces_memory=False,
    groups_by_stage=True,
    projects_groups=True,
    scales_blocks=False,
    pads_attention_pages=False,
    keeps_short_latents=False,
    pads_groups_below=0.0,
    indexer_on_every_layer=True,
    state_rule=StateRule.ONE,
    hybrid_prefix_caching=HybridPrefixCaching.NEVER,
    mode_all_counts_drafts=False,
    retains_lookahead=False,
    refuses_few_state_blocks=False,
    hybrid_kernel_block=16,
    hybrid_kernel_block_mla=64,
    checkpoint_families=(),
    state_blocks_of_64=False,
    yarn_multiplies=True,
    sorts_to_sample=True,
    keeps_sampler_scratch=False,
    samples_in_fp32_on_v2=False,
    compile_block=CompileBlock.ABSENT,
    keeps_experts_workspace=False,
)

# Release -> what it changed. Read in the packages of these releases; each entry names the file.
_CHANGES: tuple[tuple[EngineVersion, dict[str, Any]], ...] = (
    # vllm/engine/arg_utils.py: the V1 engine and its tier for large cards.
    (
        EngineVersion(0, 8, 0),
        {
            "legacy_engine": False,
            "tiers": (_LARGE_ANY_NAME, _SMALL),
            "largest_capture": 512,
            "largest_capture_blackwell": 512,
            "compile_block": CompileBlock.UNREAD,
        },
    ),
    # arg_utils.py: A100 leaves the large tier. v1/core/kv_cache_utils.py: window layers keep less.
    (EngineVersion(0, 9, 0), {"tiers": (_LARGE, _SMALL), "hybrid_manager": True}),
    # Observed compile-time block in this release's logs.
    (EngineVersion(0, 10, 2), {"compile_block": CompileBlock.RUNS}),
    # v1/core/kv_cache_utils.py: groups over all stages.
    # v1/worker/gpu_worker.py: snapshot after NCCL. config/compilation.py: full decode graphs,
    # steps of 16 above 256.
    (
        EngineVersion(0, 11, 0),
        {
            "communication_outside": True,
            "groups_by_stage": False,
            "projects_groups": False,
            "captures_full_decode": True,
            "compile_block": CompileBlock.ABSENT,
        },
    ),
    # arg_utils.py: batched tokens capped by sequences x length. v1/kv_cache_interface.py.
    # v1/core/kv_cache_utils.py: pages and group sizes are made alike.
    (
        EngineVersion(0, 12, 0),
        {
            "scales_blocks": True,
            "pads_groups_below": 1.25,
            "caps_batched_tokens": True,
            "fine_capture_steps": False,
            "state_rule": StateRule.BY_BLOCK,
            "hybrid_prefix_caching": HybridPrefixCaching.LISTED,
            "compile_block": CompileBlock.UNREAD,
        },
    ),
    # config/vllm.py: asynchronous scheduling. v1/core/kv_cache_utils.py: need by groups.
    # v1/worker/workspace.py: experts' workspaces are kept (logs of 0.10 and 0.13 are without).
    (
        EngineVersion(0, 14, 0),
        {
            "asynchronous_by_default": True,
            "need_rule": NeedRule.FIRST_GROUP_ALL_STAGES,
            "keeps_experts_workspace": True,
        },
    ),
    # config/cache.py: --mamba-cache-mode.
    (
        EngineVersion(0, 15, 0),
        {
            "state_rule": StateRule.BY_MODE,
            "hybrid_prefix_caching": HybridPrefixCaching.WHEN_ASKED,
        },
    ),
    # v1/core/kv_cache_utils.py: need per stage. v1/sample/ops: Triton top-k/top-p, no sort.
    (
        EngineVersion(0, 17, 0),
        {
            "need_rule": NeedRule.FIRST_GROUP,
            "projects_groups": True,
            "sorts_to_sample": False,
            "keeps_sampler_scratch": True,
        },
    ),
    (EngineVersion(0, 18, 0), {"pads_groups_below": 1.5}),
    (EngineVersion(0, 19, 0), {"need_rule": NeedRule.BLOCKS}),
    # config/cache.py: 0.92. v1/worker/gpu_worker.py: the graph estimate is subtracted.
    # config/compilation.py: fewer state blocks than sequences is refused.
    (
        EngineVersion(0, 20, 0),
        {
            "default_utilization": 0.92,
            "charges_graphs": True,
            "refuses_few_state_blocks": True,
        },
    ),
    # v1/core/kv_cache_utils.py: token line = concurrency x length; block override in the checks.
    (EngineVersion(0, 20, 1), {"reports_concurrency": True, "override_replaces_memory": True}),
    # v1/kv_cache_interface.py MambaSpec.
    # Observed compile-time block in five logs of 0.22 and 0.23.
    (
        EngineVersion(0, 22, 0),
        {"mode_all_counts_drafts": True, "compile_block": CompileBlock.RUNS},
    ),
    # v1/core/kv_cache_utils.py: pages that do not divide are padded; shared DSA layers keep no
    # indexer cache. One log is without a compile-time block.
    (
        EngineVersion(0, 24, 0),
        {
            "pads_attention_pages": True,
            "indexer_on_every_layer": False,
            "compile_block": CompileBlock.UNREAD,
        },
    ),
    # v1/kv_cache_interface.py: window groups reserve every batch in flight. FlashInfer samples, but
    # a second pass of the profile run, with a seed, still takes the Triton kernel and its scratch.
    (
        EngineVersion(0, 26, 0),
        {
            "reserves_batches_in_flight": True,
            "compile_block": CompileBlock.RUNS,
        },
    ),
    # v1/worker/gpu_worker.py: consumed instead of parts. platforms/interface.py: MLA hybrids.
    (
        EngineVersion(0, 27, 0),
        {"charges_what_is_consumed": True, "hybrid_kernel_block_mla": 128},
    ),
    # arg_utils.py: third tier, prefix caching of hybrids; config/vllm.py: 1,024 on SM10x.
    (
        EngineVersion(0, 28, 0),
        {
            "tiers": (_HUGE, _LARGE, _SMALL),
            "hybrid_prefix_caching": HybridPrefixCaching.DEFAULT,
            "largest_capture_blackwell": 1024,
            "retains_lookahead": True,
            "keeps_short_latents": True,
        },
    ),
    # v1/core/kv_cache_utils.py: the null block. v1/worker/gpu/model_runner.py: V2 measures its
    # graphs. config/model.py: YaRN lengths as they stand. models/kimi_k3: a checkpoint page.
    (
        EngineVersion(0, 29, 0),
        {
            "null_block": True,
            "charges_graphs_on_v2": True,
            "yarn_multiplies": False,
            "checkpoint_families": ("flash_kda",),
        },
    ),
    # v1/kv_cache_interface.py: a checkpoint page for Mamba 2.
    (EngineVersion(0, 32, 0), {"checkpoint_families": ("flash_kda", "mamba2")}),
    # platforms/interface.py: FlashInfer's GDN prefill. v1/worker/gpu/sample: a pass in fp32.
    # arg_utils.py: GB10 by compute capability.
    (
        EngineVersion(0, 33, 0),
        {
            "tiers": (_HUGE, _LARGE_BY_CAPABILITY, _SMALL),
            "checkpoint_families": ("flash_kda", "mamba2", "gdn"),
            "state_blocks_of_64": True,
            "samples_in_fp32_on_v2": True,
        },
    ),
)


@lru_cache(maxsize=64)
def rules_for(version: EngineVersion) -> EngineRules:
    """The row of a release: every change up to it, in order; newer than known is the newest."""
    row = _FIRST
    for since, changed in _CHANGES:
        if since <= version:
            row = replace(row, **changed)
    return row
