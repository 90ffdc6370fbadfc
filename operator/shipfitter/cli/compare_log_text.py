"""A log against its prediction for a person: one line a figure, within 100 columns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shipfitter.cli.compare_log import Comparison
from shipfitter.cli.estimate_record import Estimated
from shipfitter.cli.plan_text import wrapped
from shipfitter.core.budget import Budget
from shipfitter.core.engine_log import EngineLog
from shipfitter.units import GIB

_NAME, _COLUMN = 26, 16
# From this release on the logged peak holds the estimate of the graphs as well.
# Source: vLLM 0.27 vllm/v1/worker/gpu_worker.py determine_available_memory.
_PEAK_HOLDS_GRAPHS = (0, 27)


@dataclass(frozen=True, slots=True)
class _Line:
    """One figure: as the log states it, and as it would have been predicted."""

    name: str
    logged: float | None
    predicted: float | None
    unit: str = "GiB"
    within: tuple[float, float] | None = None  # the predicted interval


def comparison_text(file: str, compared: Comparison) -> str:
    """Outcome and verdict, then each figure, then what the prediction rests on."""
    return "\n".join(_text(file, compared))


def _text(file: str, compared: Comparison) -> Iterator[str]:
    log, predicted = compared.log, compared.predicted
    yield from wrapped(f"{_mark(log)} {file}: {log.outcome}{_who(log)}", indent="")
    if log.refusal is not None:
        yield from wrapped(f"the engine: {log.refusal.message}", indent="    ")
    if predicted is not None:
        found = predicted.assessment
        reason = f", {found.reason}" if found.reason else ""
        product = predicted.card.gpu.product or "unknown card"
        yield from wrapped(f"predicted: {found.verdict}{reason} on {product}", indent="    ")
        for problem in found.problems:
            yield from wrapped(problem, indent="      ")
    yield ""
    yield f"    {'':<{_NAME}}{'log':>{_COLUMN}}{'predicted':>{_COLUMN}}"
    for line in _lines(log, predicted):
        if line.logged is not None or line.predicted is not None:
            yield _row(line)
    if compared.notes or predicted is None:
        yield ""
        yield "    no prediction" if predicted is None else "    assumed"
    for note in compared.notes:
        yield from wrapped(note, indent="      ")


def _mark(log: EngineLog) -> str:
    return "✗" if log.refusal is not None else "✓" if log.started else "?"


def _who(log: EngineLog) -> str:
    parts = [
        log.model or "",
        f"vLLM {log.engine_version}" if log.engine_version else "",
        f"tensor parallel {log.tensor_parallel_size}" if log.tensor_parallel_size else "",
        f"on {log.gpu.replace('_', ' ')}" if log.gpu else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f"   {said}" if said else ""


def _row(line: _Line) -> str:
    spell = _SPELLINGS[line.unit]
    logged = "not stated" if line.logged is None else spell(line.logged)
    predicted = "" if line.predicted is None else spell(line.predicted)
    row = f"    {line.name:<{_NAME}}{logged:>{_COLUMN}}{predicted:>{_COLUMN}}{_apart(line)}"
    return row.rstrip()


def _apart(line: _Line) -> str:
    """How far the prediction is from the log, and whether its interval holds it."""
    if line.logged is None or line.predicted is None:
        return ""
    apart = ""
    if line.logged:
        percent = (line.predicted - line.logged) / abs(line.logged) * 100
        apart = f"{percent:+9.1f} %"
    if line.within is None:
        return apart
    low, high = line.within
    where = "within" if low - 0.005 <= line.logged <= high + 0.005 else "outside"
    return f"{apart}  {where} {low:.2f} to {high:.2f}"


_SPELLINGS: dict[str, Callable[[float], str]] = {
    "GiB": lambda value: f"{value:.2f} GiB",
    "count": lambda value: f"{value:,.0f}",
    "times": lambda value: f"{value:.2f}x",
    "share": lambda value: f"{value:g}",
}


def _lines(log: EngineLog, predicted: Estimated | None) -> Iterator[_Line]:
    found = predicted.assessment if predicted else None
    stage = found.tightest if found and found.stages else None
    plan = found.point if found else None
    settings = found.settings if found else None
    length = plan.max_model_len if plan else None
    share = settings.gpu_memory_utilization if settings else None
    yield _Line("gpu_memory_utilization", log.gpu_memory_utilization, share, "share")
    yield _Line("max_model_len", log.max_model_len, length, "count")
    yield from _budget_lines(log, stage, predicted)
    refused = plan is not None and plan.refusal is not None
    yield _Line(
        "KV cache tokens", log.kv_cache_tokens, plan.kv_cache_tokens if plan else None, "count"
    )
    yield _Line("GPU blocks", log.num_gpu_blocks, plan.num_gpu_blocks if plan else None, "count")
    yield _Line(
        "max concurrency", log.max_concurrency, plan.max_concurrency if plan else None, "times"
    )
    if log.kv_needed_gib is None and not refused:
        return
    yield _Line("KV cache needed", log.kv_needed_gib, _gib(plan.needed_bytes if plan else None))
    yield _Line("KV cache there", log.kv_available_gib, _gib(plan.usable_bytes if plan else None))
    yield _Line(
        "estimated max_model_len",
        log.estimated_max_model_len,
        plan.estimated_max_model_len if plan and refused else None,
        "count",
    )


def _budget_lines(
    log: EngineLog, stage: Budget | None, predicted: Estimated | None
) -> Iterator[_Line]:
    if stage is None or predicted is None:
        yield from (_Line(name, value, None) for name, value in _logged_budget(log))
        return
    version = predicted.engine_version
    graphs = stage.cuda_graph_bytes + stage.uncharged_cuda_graph_bytes
    peak = stage.activation_bytes
    if (version.major, version.minor) >= _PEAK_HOLDS_GRAPHS:
        peak += stage.cuda_graph_bytes
    cache = stage.kv_cache_bytes
    free = stage.total_bytes - stage.outside_bytes.point
    values = (
        stage.total_bytes,
        free,
        stage.requested_bytes,
        stage.weights_bytes,
        peak,
        None,  # ours counts buffers that lie inside torch as well
        graphs,
        cache.point,
    )
    for (name, logged), value in zip(_logged_budget(log), values, strict=True):
        within = (cache.low / GIB, cache.high / GIB) if name == "KV cache memory" else None
        yield _Line(name, logged, _gib(value), within=within)


def _logged_budget(log: EngineLog) -> tuple[tuple[str, float | None], ...]:
    return (
        ("total", log.total_gib),
        ("free at the start", log.free_gib),
        ("requested", log.requested_gib),
        ("weights", log.weights_gib),
        ("activation peak", log.activation_peak_gib),
        ("outside torch", log.non_torch_gib),
        ("CUDA graphs", log.cudagraph_gib),
        ("KV cache memory", log.kv_cache_memory_gib),
    )


def _gib(size_bytes: int | None) -> float | None:
    return None if size_bytes is None else size_bytes / GIB
