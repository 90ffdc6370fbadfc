"""An estimate for a person: the verdict, why, what the engine will print, where the bytes go."""

from collections.abc import Iterator, Mapping
from typing import Any

from shipfitter.cli.estimate_record import Estimated
from shipfitter.cli.plan_text import memory_bars, wrapped
from shipfitter.core.estimate import Estimate
from shipfitter.core.verdict import Assessment, Refusal, Verdict
from shipfitter.units import GIB

MARKS: Mapping[Verdict, str] = {
    Verdict.FITS: "✓",
    Verdict.BORDERLINE: "≈",
    Verdict.DOES_NOT_FIT: "✗",
}


def estimate_text(estimated: Estimated, record: Mapping[str, Any]) -> str:
    """The same figures as in the record, within 100 columns."""
    return "\n".join(_lines(estimated, record))


def _lines(estimated: Estimated, record: Mapping[str, Any]) -> Iterator[str]:
    found = estimated.assessment
    layout = found.settings.layout
    gpus = layout.world_size * layout.data_parallel_size
    product = estimated.card.gpu.product or "unknown card"
    part = f" MIG {estimated.card.mig_profile}" if estimated.card.mig_profile else ""
    copies = layout.data_parallel_size
    engines = f", {copies} engines of {layout.world_size}" if copies > 1 else ""
    reason = f": {found.reason}" if found.reason else ""
    yield (
        f"{MARKS[found.verdict]} {found.verdict}{reason}   "
        f"{estimated.model.name} on {gpus} × {product}{part}{engines}"
    )
    for key, value in _numbers(estimated, record):
        yield f"    {key:<24}{value}"
    yield from wrapped(f"why: {_why(found)}", indent="    ")
    if found.stages:
        yield ""
        yield from memory_bars(_bars(record), gpus=gpus)
        yield f"    certain?      {_certainty(estimated)}"
    yield from _fixes(estimated)
    if estimated.assumptions:
        yield ""
        yield "    assumed"
        for each in estimated.assumptions:
            yield from wrapped(each, indent="      ")


def _numbers(estimated: Estimated, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    found = estimated.assessment
    settings, plan, layout = found.settings, found.point, found.layout
    if plan is not None and layout is not None:
        yield "max_model_len", _length(found, record)
        running = record["runningAtTypical"]
        at_once = "" if running is None else f"; {running} of typical length run at once"
        yield "max_num_seqs", f"{settings.max_num_seqs}{at_once}"
        yield "max_num_batched_tokens", str(settings.max_num_batched_tokens)
        yield "gpu_memory_utilization", f"{settings.gpu_memory_utilization:g}"
    cache = settings.kv_cache_dtype
    quantization = record["model"]["quantization"] or "not quantized"
    if estimated.quantized_as and estimated.model.quantization is None:
        quantization = f"quantized to {estimated.quantized_as} while loading"
    yield "model", quantization + ("" if cache == "auto" else f", KV cache {cache}")
    runner = f", runner {settings.model_runner}" if settings.model_runner else ""
    if settings.rules.legacy_engine:
        runner = ", the engine before V1"
    yield "engine", f"vLLM {estimated.engine_version}{runner}"
    if plan is not None and layout is not None and plan.refusal is None:
        yield (
            "will report",
            f"{plan.kv_cache_tokens:,} tokens, {plan.max_concurrency:.2f}x; "
            f"{plan.num_gpu_blocks:,} blocks of {layout.block_size}{_of_each(found)}",
        )


def _of_each(found: Assessment) -> str:
    return ", each engine" if found.settings.layout.data_parallel_size > 1 else ""


def _length(found: Assessment, record: Mapping[str, Any]) -> str:
    length, concurrency = record["maxModelLen"], record["maxConcurrency"]
    if not concurrency:
        return str(length)
    share = 100 / concurrency
    takes = "would take" if share > 100 else "takes"
    return f"{length}; one such request {takes} {_percent(share)} of the cache"


def _percent(share: float) -> str:
    return f"{share:.0f} %" if share >= 1 else "less than 1 %"


def _bars(record: Mapping[str, Any]) -> Mapping[str, Any]:
    budget = record["perGpu"]
    return {**budget, "kvCacheBytes": budget["kvCacheBytes"]["point"]}


def _certainty(estimated: Estimated) -> str:
    found = estimated.assessment
    cache = found.tightest.kv_cache_bytes
    if estimated.given_cache_bytes is not None:
        return f"KV cache given: {_gib(estimated.given_cache_bytes)}"
    free = found.free_after_start
    after = "" if free is None else f"; free after the start {_range(free)}"
    return f"{found.verdict}: KV cache {_range(cache)}{after}"


def _fixes(estimated: Estimated) -> Iterator[str]:
    if not estimated.fixes and estimated.joint_fix is None:
        return
    yield ""
    yield "    what would help"
    for fix in estimated.fixes:
        yield f"      {_flag(fix.flag, fix.value)}: {fix.verdict}"
    if estimated.joint_fix is not None:
        together = " and ".join(_flag(*change) for change in estimated.joint_fix.changes)
        yield f"      {together}: {estimated.joint_fix.verdict}"


def _flag(flag: str, value: float | str) -> str:
    return flag if value is True else f"{flag} {value}"


def _why(found: Assessment) -> str:
    if found.problems:
        return "; ".join(found.problems)
    if found.verdict is Verdict.BORDERLINE:
        return f"it starts by the likeliest figures, but {_failure(found, at_worst=True)}"
    if found.reason is not None:
        return _failure(found, at_worst=False)
    plan = found.low
    if plan is None or found.layout is None:
        return "it starts"
    return (
        f"one request of {plan.max_model_len} tokens needs {_gib(plan.needed_bytes)} of cache, and "
        f"at least {_gib(plan.usable_bytes)} are there"
    )


_STEPS: Mapping[Refusal, str] = {
    Refusal.FREE_MEMORY: "the share that is asked for is not free when the engine looks",
    Refusal.OUT_OF_MEMORY_LOAD: "the weights do not go on the card",
    Refusal.OUT_OF_MEMORY_PROFILE: "the profile run does not fit beside the weights",
    Refusal.OUT_OF_MEMORY_GRAPHS: "beside the cache too little stays free for CUDA graphs",
    Refusal.OUT_OF_MEMORY_SAMPLER: "beside the cache too little stays free to warm up the sampler",
}


def _failure(found: Assessment, *, at_worst: bool) -> str:
    """What happens at the failing step, with its figures."""
    plan = found.low if at_worst else found.point
    reason = found.reason
    if reason is None or plan is None:
        return str(reason)
    if reason in _STEPS:
        lefts = [room.left for room in found.rooms if room.refusal is reason]
        short = min((left.low if at_worst else left.point) for left in lefts) if lefts else 0
        where = "at worst " if at_worst else ""
        return f"{where}{_STEPS[reason]}: short by {_gib(-short)}"
    where = "at worst" if at_worst else "there"
    if reason is Refusal.NO_CACHE_BLOCKS:
        start = "at worst " if at_worst else ""
        return f"{start}nothing is left for the cache: {_gib(plan.usable_bytes)}"
    if reason is Refusal.STATE_BLOCKS_TOO_FEW:
        return (
            f"{where} are {plan.num_gpu_blocks} state blocks for {found.settings.max_num_seqs} "
            "sequences; each needs its own"
        )
    longest = plan.estimated_max_model_len
    fitting = f"; the longest that fits is {longest}" if longest else ""
    return (
        f"one request of {plan.max_model_len} tokens needs {_gib(plan.needed_bytes)} of cache, and "
        f"{where} are {_gib(plan.usable_bytes)}{fitting}"
    )


def _range(estimate: Estimate) -> str:
    if estimate.low == estimate.high:
        return _gib(estimate.low)
    return f"{estimate.low / GIB:.2f} to {estimate.high / GIB:.2f} GiB"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.2f} GiB"
