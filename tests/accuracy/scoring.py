"""Each observation asked of the core: what it says against what was seen."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from accuracy.observations import (
    Observation,
    bytes_are_stated,
    gpu_of,
    model_of,
    observations,
    settings_of,
)
from shipfitter.core.activation import activation
from shipfitter.core.cache_layout import CacheLayout, cache_layout
from shipfitter.core.engines import EngineSettings, Gpu, resolve
from shipfitter.core.kvcache import plan_cache
from shipfitter.core.model import ModelFacts
from shipfitter.core.overhead import overhead_parts
from shipfitter.core.verdict import Assessment, assess
from shipfitter.errors import InvalidSpecError, UnknownArchitectureError, UnknownEngineError
from shipfitter.units import GIB

QUANTITIES = ("weights", "planner", "memory", "verdict")
LOG_ROUNDING_GIB = 0.0051  # figures are printed with two decimals
ANY_CARD = Gpu(product="any", total_bytes=80 * GIB)  # the planner alone does not ask for a card


@dataclass(frozen=True, kw_only=True)
class Error:
    """One figure: what the core says and what was seen, in the same unit."""

    row: Observation
    got: float
    want: float

    @property
    def relative(self) -> float:
        return (self.got - self.want) / abs(self.want)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The predicted cache memory of one run, GiB."""

    row: Observation
    low: float
    point: float
    high: float
    want: float

    @property
    def holds(self) -> bool:
        return self.low - LOG_ROUNDING_GIB <= self.want <= self.high + LOG_ROUNDING_GIB

    @property
    def width(self) -> float:
        return (self.high - self.low) / abs(self.point)

    @property
    def error(self) -> Error:
        return Error(row=self.row, got=self.point, want=self.want)


@dataclass(kw_only=True)
class Scores:
    """All figures, and what was left out with the reason."""

    weights: list[Error] = field(default_factory=list)
    planner: list[tuple[Observation, bool]] = field(default_factory=list)
    memory: list[Interval] = field(default_factory=list)
    peak: list[Error] = field(default_factory=list)
    verdicts: list[tuple[Observation, Assessment]] = field(default_factory=list)
    unknown: list[tuple[Observation, str]] = field(default_factory=list)
    left_out: dict[str, list[Observation]] = field(default_factory=dict)


@cache
def scores() -> Scores:
    """Every row of the file, once."""
    all_scores = Scores()
    for row in observations():
        _score(row, all_scores)
    return all_scores


def _score(row: Observation, found: Scores) -> None:
    reason = _unanswerable(row)
    if reason is None:
        try:
            reason = _score_row(row, found)
        except UnknownArchitectureError as error:
            found.unknown.append((row, str(error)))
    if reason is not None:
        found.left_out.setdefault(reason, []).append(row)


def _unanswerable(row: Observation) -> str | None:
    """Why a row is no question at all."""
    if len(row.unfair) == len(QUANTITIES):
        return "ambiguous as a whole"
    if row.model is None:
        return "the model's config is not published"
    if row.version is None:
        return "no version, and no date to guess one from"
    try:
        settings_of(row)
    except UnknownEngineError:
        return "older than 0.6"
    return None


def _score_row(row: Observation, found: Scores) -> str | None:
    """Everything the row can be asked; a reason where that is not everything."""
    settings, model, gpu = settings_of(row), model_of(row), gpu_of(row)
    assert row.model is not None
    if _fair(row, "planner"):
        _score_planner(row, model, settings, gpu or ANY_CARD, found)
    if gpu is None:
        return "neither product nor size of the card is named (planner only)"
    if not bytes_are_stated(row.model):
        return "size of the checkpoint unknown (planner only)"
    answer = assess(model, settings, gpu, gpus_per_node=row.gpus)
    if _fair(row, "verdict"):
        found.verdicts.append((row, answer))
    if answer.stages:
        _score_memory(row, answer, found)
    return None


def _fair(row: Observation, quantity: str) -> bool:
    return quantity not in row.unfair


def _score_planner(
    row: Observation, model: ModelFacts, settings: EngineSettings, gpu: Gpu, found: Scores
) -> None:
    try:
        resolved = resolve(settings, model, gpu)
        layout = cache_layout(model, resolved, gpu)
    except InvalidSpecError:  # the verdict says so
        return
    checks = tuple(_planned(row, resolved, layout)) + tuple(_needed(row, resolved, layout))
    if checks:
        found.planner.append((row, all(checks)))


def _planned(row: Observation, settings: EngineSettings, layout: CacheLayout) -> Iterator[bool]:
    """Tokens, blocks and concurrency from the logged cache memory, within its rounding."""
    seen = row.seen
    if seen.get("cache_gib", 0) <= 0:
        return
    low, high = (
        plan_cache(layout, settings, (int((seen["cache_gib"] + slack) * GIB),) * _stages(layout))
        for slack in (-LOG_ROUNDING_GIB, LOG_ROUNDING_GIB)
    )
    if "tokens" in seen:
        yield low.kv_cache_tokens <= seen["tokens"] <= high.kv_cache_tokens
    if "blocks" in seen and settings.num_gpu_blocks_override is None:
        yield low.num_gpu_blocks <= seen["blocks"] <= high.num_gpu_blocks
    if "concurrency" in seen and "length" in seen:
        pages = layout.pages(seen["length"])
        least, most = low.num_gpu_blocks / pages, high.num_gpu_blocks / pages
        yield least - 0.0051 <= seen["concurrency"] <= most + 0.0051


def _needed(row: Observation, settings: EngineSettings, layout: CacheLayout) -> Iterator[bool]:
    """The need a refusal states, and the longest length from the memory it states."""
    seen, length = row.seen, settings.max_model_len or 0
    if "needed_gib" in seen:
        yield abs(layout.needed_bytes(length) / GIB - seen["needed_gib"]) <= LOG_ROUNDING_GIB
    if "estimated_length" in seen and "available_gib" in seen:
        shortest, longest = (
            plan_cache(layout, settings, (available,) * _stages(layout)).estimated_max_model_len
            for available in (
                int((seen["available_gib"] + slack) * GIB)
                + (layout.bytes_per_block[0] if layout.null_block else 0)
                for slack in (-LOG_ROUNDING_GIB, LOG_ROUNDING_GIB)
            )
        )
        yield (shortest or 0) <= seen["estimated_length"] <= (longest or 0)


def _stages(layout: CacheLayout) -> int:
    return len(layout.bytes_per_block)


def _score_memory(row: Observation, answer: Assessment, found: Scores) -> None:
    seen, tight = row.seen, answer.tightest
    if _fair(row, "weights") and "weights_gib" in seen:
        # Which stage a log speaks of is not known.
        stages = (stage.weights_bytes / GIB for stage in answer.stages)
        got = min(stages, key=lambda gib: abs(gib - seen["weights_gib"]))
        found.weights.append(Error(row=row, got=got, want=seen["weights_gib"]))
    if not _fair(row, "memory"):
        return
    if "cache_gib" in seen and answer.settings.kv_cache_memory_bytes is None:
        cache_bytes = tight.kv_cache_bytes
        found.memory.append(
            Interval(
                row=row,
                low=cache_bytes.low / GIB,
                point=cache_bytes.point / GIB,
                high=cache_bytes.high / GIB,
                want=seen["cache_gib"],
            )
        )
    if "peak_gib" in seen:
        found.peak.append(
            Error(row=row, got=_logged_peak(row, answer) / GIB, want=seen["peak_gib"])
        )


def _logged_peak(row: Observation, answer: Assessment) -> int:
    """The peak as the release prints it.

    Up to 0.26 torch's own: with what stays allocated, workspaces and scratches. From 0.27 on what
    is transient alone. From 0.27 on, and in 0.18, with the graph estimate.
    """
    tight, version = answer.tightest, answer.settings.version
    consumed = answer.settings.rules.charges_what_is_consumed
    with_graphs = consumed or (version.major, version.minor) == (0, 18)
    graphs = tight.cuda_graph_bytes if with_graphs else 0
    return tight.activation_bytes + graphs + (0 if consumed else _kept_in_torch(row, answer))


def _kept_in_torch(row: Observation, answer: Assessment) -> int:
    model, settings, gpu = model_of(row), answer.settings, gpu_of(row)
    assert gpu is not None
    parts = overhead_parts(model, settings, gpu, activation(model, settings, gpu))
    return sum(part.point for part in parts[:-1])  # the last is outside torch
