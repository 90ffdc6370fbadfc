"""The cache of one model under fixed settings: bytes of a block, and blocks for a length.

Built once per model, settings and in-flight tokens; the planner asks it thousands of times.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from shipfitter.core.cache_groups import Group, cache_groups
from shipfitter.core.cache_specs import CacheKey, LayerSpec, drafter_layers, layer_specs
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.identity import SameModel
from shipfitter.core.layout import ParallelLayout, layer_stages
from shipfitter.core.model import LayerKind, ModelFacts
from shipfitter.core.packed_cache import BLOCK_TOKENS, is_packed, packed_cache
from shipfitter.core.page_laws import PageLaw, page_law
from shipfitter.core.releases import rules_for
from shipfitter.core.rules import EngineRules, NeedRule, StateRule
from shipfitter.core.traits import traits_of

# One term of a sum over groups: bytes of a block (or 1) for each page the law gives.
Term = tuple[int, PageLaw]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """Groups and page sizes for one model under fixed settings; answers questions about lengths.

    Built by `cache_layout`; immutable. All per rank; with pipeline stages one entry per stage.
    """

    bytes_per_block: tuple[int, ...]  # per stage
    block_size: int  # tokens of an attention block, after hybrid alignment
    num_groups: int
    has_state: bool
    has_attention: bool = True
    null_block: bool  # engines from 0.29 keep one block back in their checks
    page_terms: tuple[Term, ...] = ()  # (groups that follow the law, the law)
    need_terms: tuple[tuple[Term, ...], ...] = ()  # per stage: (bytes per page, the law)
    needs_least_memory: bool = False  # 0.14-0.16: the whole model against the smallest stage
    min_block_size: int = 0  # smallest over attention groups, for the token line up to 0.20.0
    state_spans_length: bool = False  # a state counts as a block of max_model_len in that line
    shards: int = 1  # decode context parallelism, for the same line
    weighted_terms: tuple[Term, ...] = ()  # (bytes of a group, its law), where those are counted

    def pages(self, tokens: int) -> int:
        """Blocks one request of this length needs to be admitted: the engine's R(n)."""
        return sum(count * law.pages(tokens) for count, law in self.page_terms)

    def hold_pages(self, tokens: int) -> int:
        """Blocks a running request keeps between steps: `pages` without the in-flight part."""
        return sum(count * law.hold_pages(tokens) for count, law in self.page_terms)

    def reported_pages(self, tokens: int) -> int:
        """What the engine's concurrency divides by: pages, or groups by weight in the first's."""
        if not self.weighted_terms:
            return self.pages(tokens)
        unit = self.weighted_terms[0][0]
        return -(-sum(size * law.pages(tokens) for size, law in self.weighted_terms) // unit)

    def needed_bytes(self, tokens: int, *, stage: int = 0) -> int:
        """Bytes the engine will say it needs for one request of this length."""
        return sum(page_bytes * law.pages(tokens) for page_bytes, law in self.need_terms[stage])


def cache_layout(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> CacheLayout:
    """The cache layout the engine would build; settings must be resolved.

    Raises UnknownArchitectureError for a cache whose layout is not known.
    """
    layout = settings.layout
    key = CacheKey(
        version=settings.version,
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        pipeline_partition=layout.pipeline_partition,
        cache_dtype=settings.kv_cache_dtype,
        block_tokens=settings.block_size or 16,
        caches_prefixes=bool(settings.enable_prefix_caching),
        num_speculative_tokens=settings.num_speculative_tokens,
        drafts_with_own_layers=settings.drafts_with_own_layers,
        decode_context_parallel_size=settings.decode_context_parallel_size,
        hybrid_manager=not settings.disable_hybrid_kv_cache_manager,
        compute_capability=gpu.compute_capability,
        recurrent_dtype=settings.mamba_ssm_cache_dtype,
    )
    return _layout(SameModel(model), key, settings.in_flight_tokens)


@lru_cache(maxsize=1024)
def _groups(same: SameModel, key: CacheKey) -> tuple[tuple[LayerSpec, ...], tuple[Group, ...]]:
    specs = layer_specs(same.facts, key)
    groups = cache_groups(specs, rules_for(key.version), hybrid_manager=key.hybrid_manager)
    return specs, groups


@lru_cache(maxsize=4096)
def _layout(same: SameModel, key: CacheKey, in_flight_tokens: int) -> CacheLayout:
    model = same.facts
    if is_packed(model):
        return _packed_layout(model, key, in_flight_tokens)
    specs, groups = _groups(same, key)
    rules = rules_for(key.version)

    def law(spec: LayerSpec) -> PageLaw:
        return page_law(spec, model, key, in_flight_tokens=in_flight_tokens)

    stages = _stages(model, key)
    own_groups = [groups] * len(stages)
    if rules.groups_by_stage and len(stages) > 1:
        own_groups = [_stage_groups(specs, key, stage) for stage in stages]
        groups = own_groups[0]
    laws = tuple(law(group[0]) for group in groups)
    whole = range(stages[-1].stop)
    projects = rules.projects_groups or len(groups) != 1 or _merges(groups[0], model)
    bytes_per_block = tuple(
        _block_bytes(own, stage if projects else whole)
        for own, stage in zip(own_groups, stages, strict=True)
    )
    attention = [group[0].block_tokens for group in groups if group[0].kind is not LayerKind.STATE]
    return CacheLayout(
        bytes_per_block=bytes_per_block,
        block_size=min(attention, default=key.block_tokens),
        num_groups=len(groups),
        has_state=any(spec.kind is LayerKind.STATE for spec in specs),
        has_attention=bool(attention),
        null_block=rules.null_block,
        page_terms=_merged((1, group_law) for group_law in laws),
        need_terms=tuple(
            _need_terms(rules.need_rule, specs, groups, law, stage) for stage in stages
        ),
        needs_least_memory=rules.need_rule is NeedRule.FIRST_GROUP_ALL_STAGES,
        min_block_size=min(attention, default=key.block_tokens),
        state_spans_length=_state_spans_length(groups, key, rules),
        shards=key.decode_context_parallel_size,
    )


def _stage_groups(specs: Sequence[LayerSpec], key: CacheKey, stage: range) -> tuple[Group, ...]:
    """Groups of one stage's own layers."""
    own = [spec for spec in specs if spec.index in stage]
    return cache_groups(own, rules_for(key.version), hybrid_manager=key.hybrid_manager)


def _state_spans_length(groups: Sequence[Group], key: CacheKey, rules: EngineRules) -> bool:
    """Source: vLLM vllm/model_executor/models/config.py, mamba_block_size."""
    states = [group for group in groups if group[0].kind is LayerKind.STATE]
    by_block = rules.state_rule is StateRule.BY_MODE and key.caches_prefixes
    alone = len(states) == len(groups)
    return bool(states) and not by_block and not (alone and rules.groups_by_stage)


def _merges(group: Group, model: ModelFacts) -> bool:
    """True for layers that the engine counts as copies of one; an indexer is a layer of its own."""
    first = group[0]
    alike = all(spec.shape == first.shape and spec.kind is first.kind for spec in group)
    return alike and not traits_of(model).is_sparse


def _packed_layout(model: ModelFacts, key: CacheKey, in_flight_tokens: int) -> CacheLayout:
    layers = model.layers + drafter_layers(model, own_layers=key.drafts_with_own_layers)
    stages = _stages(model, key)
    packed = packed_cache(model, layers, stages, key, in_flight_tokens=in_flight_tokens)
    laws = tuple(group.law for group in packed.groups)
    everything = range(len(layers))
    weights = tuple((group.size(everything), group.law) for group in packed.groups)
    return CacheLayout(
        bytes_per_block=packed.bytes_per_block,
        block_size=BLOCK_TOKENS,
        num_groups=len(packed.groups),
        has_state=False,
        null_block=rules_for(key.version).null_block,
        page_terms=_merged((1, law) for law in laws),
        need_terms=tuple(
            _merged((page_bytes, law) for law in laws) for page_bytes in packed.needed_page_bytes
        ),
        min_block_size=min(law.block_tokens for law in laws),
        weighted_terms=weights if packed.weighs_groups else (),
    )


def _stages(model: ModelFacts, key: CacheKey) -> tuple[range, ...]:
    """The layers of each stage; drafter layers come after the model's own, so on the last."""
    if key.pipeline_parallel_size == 1:
        return (range(2 * len(model.layers) + 1),)
    layout = ParallelLayout(
        pipeline_parallel_size=key.pipeline_parallel_size,
        pipeline_partition=key.pipeline_partition,
    )
    stages = layer_stages(len(model.layers), layout)
    return (*stages[:-1], range(stages[-1].start, 2 * len(model.layers) + 1))


def _block_bytes(groups: Sequence[Group], stage: range) -> int:
    """Bytes of one block on a stage: the heaviest group's pages there."""
    return max(
        (sum(spec.page_bytes for spec in group if spec.index in stage) for group in groups),
        default=0,
    )


def _need_terms(
    rule: NeedRule,
    specs: Sequence[LayerSpec],
    groups: Sequence[Group],
    law: Callable[[LayerSpec], PageLaw],
    stage: range,
) -> tuple[Term, ...]:
    """What one request needs on a stage, as the release counts it.

    Source: vLLM vllm/v1/core/kv_cache_utils.py check_enough_kv_cache_memory and its callers.
    """
    if not groups:
        return ()
    match rule:
        case NeedRule.OWN_PAGES:
            return _merged((spec.page_bytes, law(spec)) for spec in specs if spec.index in stage)
        case NeedRule.FIRST_GROUP_ALL_STAGES:
            everything = range(specs[-1].index + 1)
            return ((_block_bytes(groups, everything), law(groups[0][0])),)
        case NeedRule.FIRST_GROUP:
            return ((_block_bytes(groups, stage), law(groups[0][0])),)
        case NeedRule.BLOCKS:
            block_bytes = _block_bytes(groups, stage)
            return _merged((block_bytes, law(group[0])) for group in groups)


def _merged(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Terms of the same law added up, so that a question costs one step per law."""
    weight_of: dict[PageLaw, int] = {}
    for weight, law in terms:
        weight_of[law] = weight_of.get(law, 0) + weight
    return tuple((weight, law) for law, weight in weight_of.items())
