"""What a started engine reports against the prediction: status.observed, and the calibration."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.api.engine_args import passed_through
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.budget import budget
from shipfitter.core.calibrate import CalibrationKey, Learning, fold, key_for
from shipfitter.core.candidate import Candidate, Sizing
from shipfitter.core.intent import Intent
from shipfitter.core.kvcache import CacheLayout, cache_layout
from shipfitter.core.plan import VariantPlan
from shipfitter.decide.world import CalibrationUpdate, World
from shipfitter.render.workload import template_of
from shipfitter.status.conditions import Condition, seconds_of, timestamp
from shipfitter.status.pods import LivePod, ObservedEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What is stored of observations, and what is learnt from them now."""

    observed: tuple[Mapping[str, Any], ...] = ()
    updates: tuple[CalibrationUpdate, ...] = ()
    condition: Condition | None = None


def learnt_from(
    resource: ModelDeployment,
    intent: Intent,
    variants: Mapping[str, VariantPlan],
    *,
    stored: tuple[Mapping[str, Any], ...],
    world: World,
) -> Lesson:
    """What the engines of every variant teach; figures that were just decided have none yet."""
    whole = Lesson()
    for name, variant in variants.items():
        if not variant.decided_at:
            continue
        lesson = learn(
            resource,
            intent,
            variant.sizing,
            name,
            decided_at=variant.decided_at,
            stored=stored,
            world=world,
        )
        # Two pools may share a key: the second adds to what the first has just taught.
        taught = {update.key: update.learning for update in lesson.updates}
        world = replace(world, learnt={**world.learnt, **taught})
        whole = Lesson(
            observed=(*whole.observed, *lesson.observed),
            updates=(*whole.updates, *lesson.updates),
            condition=_worse(whole.condition, lesson.condition),
        )
    return whole


def _worse(one: Condition | None, other: Condition | None) -> Condition | None:
    """Of two variants' comparisons both are told, the first one's first."""
    if one is None or other is None:
        return one or other
    return replace(one, message=f"{one.message}; {other.message}")


def learn(
    resource: ModelDeployment,
    intent: Intent,
    sizing: Sizing,
    variant: str,
    *,
    decided_at: str,
    stored: tuple[Mapping[str, Any], ...],
    world: World,
) -> Lesson:
    """One observation for each variant and plan; what was already counted is only kept."""
    known = [
        entry
        for entry in stored
        if entry.get("variant") == variant
        and seconds_of(str(entry.get("at"))) >= seconds_of(decided_at)
    ]
    if known:
        return Lesson(observed=tuple(known), condition=_condition(known[0]))
    template = next((template_of(w.body) for w in world.workloads if w.name == variant), "")
    pod = next(
        (
            each
            for each in world.pods
            if (each.variant, each.template_hash) == (variant, template)  # not of the plan before
            and each.ready
            and each.observed is not None
        ),
        None,
    )
    if pod is None or pod.observed is None:
        return Lesson()
    raw = replace(sizing.settings, extra_bytes=intent.engine.extra_bytes, calibrated=None)
    candidate = Candidate(pool=sizing.pool, model=sizing.model, settings=raw)
    stages = budget(sizing.model.facts, raw, candidate.gpu)
    layout = cache_layout(sizing.model.facts, raw, candidate.gpu)
    stage = min(range(len(stages)), key=lambda n: stages[n].kv_cache_bytes.point)
    had_bytes = round(_blocks(pod.observed, layout) * layout.bytes_per_block[stage])
    planned_bytes = sizing.num_gpu_blocks * layout.bytes_per_block[stage]
    at_seconds = max(world.now_seconds, seconds_of(decided_at))  # a clock may have been put back
    entry = _entry(pod, variant, (had_bytes / max(1, planned_bytes) - 1) * 100, at_seconds)
    key = _key(resource, sizing, world)
    difference = had_bytes - stages[stage].kv_cache_bytes.point
    total = candidate.gpu.total_bytes
    update = CalibrationUpdate(
        key=key,
        learning=fold(world.learnt.get(key, Learning()), difference, total),
        variant=variant,
        difference_bytes=difference,
        total_bytes=total,
    )
    return Lesson(observed=(entry,), updates=(update,), condition=_condition(entry))


def _blocks(observed: ObservedEngine, layout: CacheLayout) -> float:
    """Its blocks as blocks of the planned size: attention backends may choose another one."""
    plain = layout.num_groups == 1 and layout.has_attention and not layout.has_state
    if not plain or not observed.block_size:
        return observed.num_gpu_blocks
    return observed.num_gpu_blocks * observed.block_size / layout.block_size


def _entry(pod: LivePod, variant: str, error_percent: float, at_seconds: float) -> dict[str, Any]:
    assert pod.observed is not None
    return {
        "variant": variant,
        "kvCacheTokens": pod.observed.kv_cache_tokens,
        "maxConcurrency": round(pod.observed.max_concurrency, 2),
        "predictionErrorPercent": round(error_percent, 2),
        "at": timestamp(at_seconds),
    }


def _condition(entry: Mapping[str, Any]) -> Condition:
    error = float(entry.get("predictionErrorPercent", 0.0))
    return Condition(
        "Calibrated",
        True,
        "Observed",
        f"the engine reports {entry.get('kvCacheTokens', 0):,} tokens of cache, "
        f"{error:+.1f} % against the plan",
    )


def learnt_of(resource: ModelDeployment, world: World) -> Mapping[CalibrationKey, Learning]:
    """What engines of this image and with these arguments taught, by key without both."""
    image, arguments = _apart(resource, world)
    return {
        replace(key, image="", arguments_hash=""): learning
        for key, learning in world.learnt.items()
        if (key.image, key.arguments_hash) == (image, arguments)
    }


def _key(resource: ModelDeployment, sizing: Sizing, world: World) -> CalibrationKey:
    image, arguments = _apart(resource, world)
    return key_for(
        sizing.model.facts,
        sizing.settings,
        sizing.pool.product,
        image=image,
        arguments=arguments,
    )


def _apart(resource: ModelDeployment, world: World) -> tuple[str, str]:
    """Image and arguments of engines that learn for themselves: unknown, or changing memory."""
    image = resource.spec.engine.image or ""
    text = " ".join(passed_through(resource.spec.engine.args))
    return (
        "" if image == world.settings.default_image else image,
        hashlib.sha256(text.encode()).hexdigest()[:16] if text else "",
    )
