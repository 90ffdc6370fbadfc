"""Will this command start on that card, and what will it get: the one answer behind `estimate`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from shipfitter.core.batch_checks import batch_problems
from shipfitter.core.budget import Budget, budget
from shipfitter.core.cache_layout import CacheLayout, cache_layout
from shipfitter.core.engines import EngineSettings, Gpu, resolve
from shipfitter.core.estimate import Estimate, either, together
from shipfitter.core.intent import Verdict
from shipfitter.core.kvcache import CachePlan, plan_cache
from shipfitter.core.legality import card_problems, layout_problems
from shipfitter.core.lengths import derived_max_model_len
from shipfitter.core.model import ModelFacts
from shipfitter.core.refusals import Refusal
from shipfitter.core.spending import spending
from shipfitter.core.startup import Room, after_the_cache, before_the_cache, beside_the_cache
from shipfitter.errors import InvalidSpecError

__all__ = ["Assessment", "Refusal", "Verdict", "assess"]

End = Literal["low", "point", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The verdict with all it follows from.

    `settings` are resolved, with the fitted length where it was to shrink. Where `stages` is empty
    the engine refuses before it looks at memory, and `problems` say why.
    """

    settings: EngineSettings
    verdict: Verdict
    reason: Refusal | None  # Borderline: what happens where the estimate errs to the bad side
    problems: tuple[str, ...] = ()
    stages: tuple[Budget, ...] = ()  # per pipeline stage
    layout: CacheLayout | None = None
    low: CachePlan | None = None  # the cache at the low end of every stage's interval
    point: CachePlan | None = None
    high: CachePlan | None = None
    free_after_start: Estimate | None = None  # of the stage that has least
    rooms: tuple[Room, ...] = ()  # what each step of the start leaves, stage by stage

    @property
    def tightest(self) -> Budget:
        """The stage with least for its cache."""
        return min(self.stages, key=lambda stage: stage.kv_cache_bytes.point)


def assess(
    model: ModelFacts,
    settings: EngineSettings,
    gpu: Gpu,
    *,
    gpus_per_node: int = 8,
    auto_length: bool = False,
    long_length_allowed: bool = False,
    given_cache_bytes: int | None = None,
) -> Assessment:
    """Whether an engine starts with these flags on that card, and with how much cache.

    `settings` as given: None is what the engine fills in. `auto_length`: the length shrinks to what
    fits. `long_length_allowed`: VLLM_ALLOW_LONG_MAX_MODEL_LEN. `given_cache_bytes`: the cache of
    every rank is known, so only the planner is asked.

    Raises UnknownArchitectureError for a cache whose layout is not known.
    """
    illegal = tuple(_illegal(model, settings, gpu, gpus_per_node, long=long_length_allowed))
    if illegal:
        return _refused(settings, illegal[0][0], tuple(problem for _, problem in illegal))
    try:
        resolved = resolve(settings, model, gpu)
        layout = cache_layout(model, resolved, gpu)
    except InvalidSpecError as error:
        return _refused(settings, Refusal.UNSUPPORTED_ARCHITECTURE, error.problems)
    if refused := tuple(batch_problems(model, resolved, layout)):
        return _refused(resolved, Refusal.OTHER, refused)
    stages = budget(model, resolved, gpu)
    if gpu.compute_capability is None:
        stages = _either(stages, _budget_of_an_a100(model, settings, gpu))
    plans = {
        end: plan_cache(
            layout, resolved, _available(stages, end, given_cache_bytes), auto_fit=auto_length
        )
        for end in _ENDS
    }
    if auto_length:
        resolved = replace(resolved, max_model_len=plans["point"].max_model_len)
    rooms, free = ((), None) if given_cache_bytes else _rooms(model, resolved, gpu, stages)
    failing = {end: _first_failure(plans[end], rooms, end) for end in ("low", "point")}
    reason = failing["point"] or failing["low"]
    verdict = Verdict.FITS if reason is None else Verdict.BORDERLINE
    if failing["point"] not in (None, Refusal.OUT_OF_MEMORY_SERVING):  # that one starts
        verdict = Verdict.DOES_NOT_FIT
    return Assessment(
        settings=resolved,
        verdict=verdict,
        reason=reason,
        stages=stages,
        layout=layout,
        low=plans["low"],
        point=plans["point"],
        high=plans["high"],
        free_after_start=free,
        rooms=rooms,
    )


_ENDS: tuple[End, ...] = ("low", "point", "high")


def _budget_of_an_a100(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> tuple[Budget, ...]:
    """The same card if its name were that one, which the engine gives smaller default batches."""
    named = replace(gpu, product="NVIDIA A100")
    return budget(model, resolve(settings, model, named), named)


def _either(stages: tuple[Budget, ...], others: tuple[Budget, ...]) -> tuple[Budget, ...]:
    """The first budgets, their cache's interval as wide as both."""
    return tuple(
        replace(stage, kv_cache_bytes=either(stage.kv_cache_bytes, other.kv_cache_bytes))
        for stage, other in zip(stages, others, strict=True)
    )


def _refused(settings: EngineSettings, reason: Refusal, problems: tuple[str, ...]) -> Assessment:
    return Assessment(
        settings=settings, verdict=Verdict.DOES_NOT_FIT, reason=reason, problems=problems
    )


def _illegal(
    model: ModelFacts, settings: EngineSettings, gpu: Gpu, gpus_per_node: int, *, long: bool
) -> Iterator[tuple[Refusal, str]]:
    """What the engine checks before it starts a worker."""
    version = settings.version.release
    card = card_problems(model, gpu.compute_capability, version)
    for problem in card:
        yield Refusal.UNSUPPORTED_QUANTIZATION, problem
    for problem in layout_problems(
        model,
        settings.layout,
        gpus_per_node=gpus_per_node,
        compute_capability=None,
        engine_version=version,
    ):
        yield Refusal.INVALID_PARALLELISM, problem
    longest = derived_max_model_len(model, settings.version)
    asked = settings.max_model_len or 0
    stated = model.length_keys.get("max_position_embeddings") or 0
    if asked > max(longest, stated) and not long:
        yield (
            Refusal.MAX_MODEL_LEN_TOO_LONG,
            f"maxModelLen {asked} is more than the {longest} that config.json allows",
        )
    tokens, seqs = settings.max_num_batched_tokens, settings.max_num_seqs
    if tokens and seqs and tokens < seqs:
        yield Refusal.OTHER, f"maxNumBatchedTokens {tokens} is less than maxNumSeqs {seqs}"


def _available(stages: tuple[Budget, ...], end: End, given: int | None) -> tuple[int, ...]:
    return tuple(getattr(stage.kv_cache_bytes, end) if given is None else given for stage in stages)


def _rooms(
    model: ModelFacts, settings: EngineSettings, gpu: Gpu, stages: tuple[Budget, ...]
) -> tuple[tuple[Room, ...], Estimate]:
    """The steps of every stage, and the least that is free in the end."""
    rooms: list[Room] = []
    least: list[Estimate] = []
    for index, one in enumerate(stages):
        spent = spending(model, settings, gpu, stage=index)
        beside = beside_the_cache(model, settings, gpu, one, spent)
        rooms.extend(before_the_cache(settings, gpu, one, spent))
        rooms.extend(after_the_cache(model, settings, beside, spent))
        least.append(together(beside, spent.peak))
    return tuple(rooms), min(least, key=lambda estimate: estimate.point)


_BEFORE_THE_CACHE = (
    Refusal.FREE_MEMORY,
    Refusal.OUT_OF_MEMORY_LOAD,
    Refusal.OUT_OF_MEMORY_PROFILE,
)
_AFTER_THE_CACHE = (
    Refusal.OUT_OF_MEMORY_GRAPHS,
    Refusal.OUT_OF_MEMORY_SAMPLER,
    Refusal.OUT_OF_MEMORY_SERVING,
)


def _first_failure(plan: CachePlan, rooms: tuple[Room, ...], end: End) -> Refusal | None:
    """The first event of the start that fails, in the engine's order."""
    failed = {room.refusal for room in rooms if getattr(room.left, end) < 0}
    planned = (Refusal(plan.refusal),) if plan.refusal else ()
    order = (
        *(refusal for refusal in _BEFORE_THE_CACHE if refusal in failed),
        *planned,
        *(refusal for refusal in _AFTER_THE_CACHE if refusal in failed),
    )
    return next(iter(order), None)
