"""What to change so that a command starts: one flag each, every verdict by the same functions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from shipfitter.core.budget import utilization_for
from shipfitter.core.engines import EngineSettings, Gpu, resolve
from shipfitter.core.intent import Verdict
from shipfitter.core.ladder import round_length
from shipfitter.core.model import ModelFacts
from shipfitter.core.refusals import Refusal
from shipfitter.core.verdict import Assessment

Assess = Callable[[EngineSettings], Assessment]

# Steps of a share that is lowered until what comes beside the cache has room.
_SHARE_STEP_PERCENT, _MOST_SHARE_STEPS = 2, 12
_FEWER_SEQS = (256, 128, 64, 32, 16, 8, 4)
_LEAST_BATCHED_TOKENS = 512
_MOST_BATCHED_TOKENS = 1 << 17
_SHORTEST_LENGTH = 2048
_EIGHT_BIT_CAPABILITY = (8, 9)
_BETTER = (Verdict.DOES_NOT_FIT, Verdict.BORDERLINE, Verdict.FITS)
# What a smaller share of the card mends: the rest is what these steps live on.
_BESIDE_THE_CACHE = frozenset(
    (
        Refusal.FREE_MEMORY,
        Refusal.OUT_OF_MEMORY_GRAPHS,
        Refusal.OUT_OF_MEMORY_SAMPLER,
        Refusal.OUT_OF_MEMORY_SERVING,
    )
)
# What no size of batch or length changes.
_BEFORE_SIZES = frozenset(
    (
        Refusal.INVALID_PARALLELISM,
        Refusal.UNSUPPORTED_QUANTIZATION,
        Refusal.UNSUPPORTED_ARCHITECTURE,
        Refusal.OUT_OF_MEMORY_LOAD,
    )
)


@dataclass(frozen=True, slots=True)
class Fix:
    """One flag, the value that helps, and the verdict with it."""

    flag: str
    value: int | float | str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class JointFix:
    """Two flags that help only together."""

    changes: tuple[tuple[str, int | float | str], ...]
    verdict: Verdict


def joint_fix(
    model: ModelFacts, asked: EngineSettings, gpu: Gpu, found: Assessment, assess: Assess
) -> JointFix | None:
    """Two flags that make it fit; for where no single one does."""
    if found.reason in _BEFORE_SIZES or not found.stages:
        return None
    for flag, setting, values in _by_size(model, asked, gpu, found):
        value = next(values, None)
        if value is None:
            continue
        changed = replace(asked, **{setting: value})  # type: ignore[arg-type]
        halfway = assess(changed)
        if not halfway.stages or halfway.reason in _BEFORE_SIZES:
            continue
        for second in _improving(model, changed, gpu, halfway, assess):
            if second.verdict is Verdict.FITS and second.flag != flag:
                return JointFix(((flag, value), (second.flag, second.value)), second.verdict)
    return None


def fixes(
    model: ModelFacts, asked: EngineSettings, gpu: Gpu, found: Assessment, assess: Assess
) -> tuple[Fix, ...]:
    """Single flags that give a better verdict, those that make it fit first; none where it fits.

    `asked` are the settings as given, `assess` is the judgement of any others like them.
    """
    if found.verdict is Verdict.FITS:
        return ()
    return tuple(
        sorted(
            _improving(model, asked, gpu, found, assess),
            key=lambda fix: -_BETTER.index(fix.verdict),
        )
    )


def _improving(
    model: ModelFacts, asked: EngineSettings, gpu: Gpu, found: Assessment, assess: Assess
) -> Iterator[Fix]:
    if found.reason not in _BEFORE_SIZES:
        for flag, setting, values in _by_size(model, asked, gpu, found):
            yield from _best(flag, values, found.verdict, lambda value, setting=setting: assess(
                replace(asked, **{setting: value})))  # fmt: skip
    yield from _best(
        "--tensor-parallel-size",
        _other_ranks(asked) if found.reason is Refusal.INVALID_PARALLELISM else _more_ranks(asked),
        found.verdict,
        lambda ranks: assess(
            replace(asked, layout=replace(asked.layout, tensor_parallel_size=ranks))
        ),
    )


def _by_size(
    model: ModelFacts, asked: EngineSettings, gpu: Gpu, found: Assessment
) -> Iterator[tuple[str, str, Iterator[int | float | str]]]:
    """Each flag, the setting behind it, and the values worth trying, best first."""
    resolved = found.settings if found.stages else resolve(asked, model, gpu)
    yield "--max-model-len", "max_model_len", _lengths(model, found, resolved)
    yield "--max-num-seqs", "max_num_seqs", _fewer_seqs(resolved)
    refused = found.reason is Refusal.OTHER
    tokens = _more_tokens(resolved) if refused else _fewer_tokens(resolved)
    yield "--max-num-batched-tokens", "max_num_batched_tokens", tokens
    yield (
        "--gpu-memory-utilization",
        "gpu_memory_utilization",
        _shares(model, found, resolved, gpu),
    )
    yield "--kv-cache-dtype", "kv_cache_dtype", _eight_bits(asked, gpu)
    yield "--enforce-eager", "enforce_eager", _without_graphs(found, asked)


def _best(
    flag: str,
    values: Iterator[int | float | str],
    present: Verdict,
    judged: Callable[..., Assessment],
) -> Iterator[Fix]:
    """The first value that fits, else the first that is better than what there is."""
    better: Fix | None = None
    for value in values:
        verdict = judged(value).verdict
        if verdict is Verdict.FITS:
            yield Fix(flag, value, verdict)
            return
        if better is None and _BETTER.index(verdict) > _BETTER.index(present):
            better = Fix(flag, value, verdict)
    if better is not None:
        yield better


def _lengths(
    model: ModelFacts, found: Assessment, resolved: EngineSettings
) -> Iterator[int | float | str]:
    """What the engine would estimate itself at the low end and at the point, in round numbers."""
    longest = resolved.max_model_len or 0
    if found.reason is Refusal.MAX_MODEL_LEN_TOO_LONG:
        from_config = resolve(replace(resolved, max_model_len=None), model, _NO_GPU)
        yield from_config.max_model_len or longest
        length = 1 << max(0, (from_config.max_model_len or longest) - 1).bit_length() - 1
        while length >= _SHORTEST_LENGTH:  # no cache was planned yet that would say what fits
            yield length
            length //= 2
        return
    for plan in (found.low, found.point):
        estimated = plan.estimated_max_model_len if plan is not None else None
        if estimated and min(_SHORTEST_LENGTH, longest // 4) <= estimated < longest:
            yield round_length(estimated) or estimated


_NO_GPU = Gpu(product="", total_bytes=0)


def _fewer_seqs(resolved: EngineSettings) -> Iterator[int | float | str]:
    yield from (seqs for seqs in _FEWER_SEQS if seqs < (resolved.max_num_seqs or 0))


def _fewer_tokens(resolved: EngineSettings) -> Iterator[int | float | str]:
    """Powers of two below what there is."""
    tokens = 1 << max(0, (resolved.max_num_batched_tokens or 1) - 1).bit_length() - 1
    while tokens >= max(_LEAST_BATCHED_TOKENS, resolved.max_num_seqs or 1):
        yield tokens
        tokens //= 2


def _more_tokens(resolved: EngineSettings) -> Iterator[int | float | str]:
    """Powers of two above what there is: for what must go into one batch."""
    tokens = 1 << (resolved.max_num_batched_tokens or 1).bit_length()
    while tokens <= _MOST_BATCHED_TOKENS:
        yield tokens
        tokens *= 2


def _shares(
    model: ModelFacts, found: Assessment, resolved: EngineSettings, gpu: Gpu
) -> Iterator[int | float | str]:
    """The share that leaves the planner's reserve free, more or less than was asked; then less."""
    if resolved.kv_cache_memory_bytes is not None:
        return
    share = utilization_for(model, resolved, gpu)
    if 0 < share != resolved.gpu_memory_utilization:
        yield share
    if found.reason in _BESIDE_THE_CACHE:
        percent = round(100 * (resolved.gpu_memory_utilization or 0))
        for step in range(1, _MOST_SHARE_STEPS + 1):
            yield max(1, percent - step * _SHARE_STEP_PERCENT) / 100


def _eight_bits(asked: EngineSettings, gpu: Gpu) -> Iterator[int | float | str]:
    capability = gpu.compute_capability
    if asked.kv_cache_dtype in ("auto", "bfloat16", "float16") and (
        capability is None or capability >= _EIGHT_BIT_CAPABILITY
    ):
        yield "fp8"


def _without_graphs(found: Assessment, asked: EngineSettings) -> Iterator[int | float | str]:
    if not asked.enforce_eager and found.reason is Refusal.OUT_OF_MEMORY_GRAPHS:
        yield True


def _other_ranks(asked: EngineSettings) -> Iterator[int | float | str]:
    """Powers of two, the nearest first, rather fewer than more."""
    present = asked.layout.tensor_parallel_size
    powers = (1, 2, 4, 8, 16)
    yield from sorted(
        (ranks for ranks in powers if ranks != present), key=lambda ranks: abs(ranks - present)
    )


def _more_ranks(asked: EngineSettings) -> Iterator[int | float | str]:
    ranks = asked.layout.tensor_parallel_size * 2
    while ranks <= 16:
        yield ranks
        ranks *= 2
