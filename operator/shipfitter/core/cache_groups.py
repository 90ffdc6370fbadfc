"""Layers to groups: the engine hands out one block to a whole group, so groups must weigh alike."""

from collections.abc import Sequence
from dataclasses import replace

from shipfitter.core.cache_specs import LayerSpec
from shipfitter.core.model import LayerKind
from shipfitter.core.rules import EngineRules
from shipfitter.errors import UnknownArchitectureError
from shipfitter.units import ceil_div

Group = tuple[LayerSpec, ...]


def cache_groups(
    specs: Sequence[LayerSpec], rules: EngineRules, *, hybrid_manager: bool
) -> tuple[Group, ...]:
    """The groups of a whole model, over all pipeline stages.

    Source: vLLM vllm/v1/core/kv_cache_utils.py get_kv_cache_groups.

    Raises UnknownArchitectureError where the engine itself has no layout.
    """
    if not specs:
        return ()
    if not (hybrid_manager and rules.hybrid_manager):
        specs = _all_full(specs)
    if _uniform(specs):
        return (tuple(specs),)
    if _has_shorter_latent(specs):
        # Latent pages that are smaller than others are not scaled: window layers give in instead.
        specs = _all_full(specs)
        if rules.keeps_short_latents and _uniform(specs):
            return (tuple(specs),)
        raise UnknownArchitectureError(
            "the engine cannot keep latent attention beside larger pages of another kind; "
            "choose another model, or vLLM 0.28 or newer for windows beside it"
        )
    return _by_bucket(_one_page_size(specs, rules), rules)


def _all_full(specs: Sequence[LayerSpec]) -> tuple[LayerSpec, ...]:
    """Window and chunk layers relabelled as full ones, where full ones stand beside them."""
    full = next((spec for spec in specs if spec.kind in (LayerKind.FULL, LayerKind.MLA)), None)
    if full is None:
        return tuple(specs)
    return tuple(
        replace(spec, kind=LayerKind.FULL, window_tokens=0)
        if spec.kind in (LayerKind.SLIDING, LayerKind.CHUNKED)
        else spec
        for spec in specs
    )


def _uniform(specs: Sequence[LayerSpec]) -> bool:
    """True for layers of one kind that look back equally far in blocks of one size.

    Their pages may differ: one block then takes the sum. States must also be alike.
    """
    first = specs[0]
    if first.kind is LayerKind.STATE:
        return all(spec.merge_key == first.merge_key for spec in specs)
    full = (LayerKind.FULL, LayerKind.MLA)
    return all(
        (spec.kind is first.kind or (spec.kind in full and first.kind in full))
        and spec.block_tokens == first.block_tokens
        and spec.window_tokens == first.window_tokens
        for spec in specs
    )


def _has_shorter_latent(specs: Sequence[LayerSpec]) -> bool:
    largest = max(spec.page_bytes for spec in specs)
    return any(spec.kind is LayerKind.MLA and largest % spec.page_bytes for spec in specs)


def _one_page_size(specs: Sequence[LayerSpec], rules: EngineRules) -> tuple[LayerSpec, ...]:
    """Smaller pages made as large as the largest: by padding, or by more tokens in a block."""
    largest = max(spec.page_bytes for spec in specs)
    return tuple(_enlarged(spec, largest, rules) for spec in specs)


def _enlarged(spec: LayerSpec, page_bytes: int, rules: EngineRules) -> LayerSpec:
    if spec.page_bytes == page_bytes:
        return spec
    if spec.kind is LayerKind.STATE:
        return replace(spec, page_bytes=page_bytes)
    if rules.scales_blocks and page_bytes % spec.page_bytes == 0:
        ratio = page_bytes // spec.page_bytes
        return replace(spec, block_tokens=spec.block_tokens * ratio, page_bytes=page_bytes)
    if rules.pads_attention_pages:
        return replace(spec, page_bytes=page_bytes)
    raise UnknownArchitectureError(
        "layers whose cache pages do not divide each other start only on vLLM 0.24 or newer; "
        "choose a newer spec.engine.image"
    )


def _by_bucket(specs: Sequence[LayerSpec], rules: EngineRules) -> tuple[Group, ...]:
    """Alike layers dealt out, like cards, to as many groups as the group size asks for.

    Source: vLLM vllm/v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_page_size: kinds whose
    numbers are close are padded to the larger one, others are cut by the smaller.
    """
    buckets: dict[tuple[object, ...], list[LayerSpec]] = {}
    for spec in specs:
        buckets.setdefault(spec.merge_key, []).append(spec)
    sizes = [len(bucket) for bucket in buckets.values()]
    smallest, largest = min(sizes), max(sizes)
    group_size = largest if largest < rules.pads_groups_below * smallest else smallest
    groups: list[Group] = []
    for bucket in buckets.values():
        count = ceil_div(len(bucket), group_size)
        groups.extend(tuple(bucket[start::count]) for start in range(count))
    return tuple(groups)
