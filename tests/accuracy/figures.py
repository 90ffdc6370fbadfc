"""The figures of the report and of the gate, from the scores."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from accuracy.observations import Observation
from accuracy.scoring import Error, Interval, Scores
from shipfitter.core.verdict import Verdict

CACHE_TOO_SMALL = ("KVCacheTooSmall", "NoCacheBlocks")
# A log that ends elsewhere than in memory at the start says nothing against "it fits".
NOT_AT_THE_START = ("OutOfMemoryServing", "Other")
NEAR_RELATIVE, NEAR_GIB = 0.10, 0.8


@dataclass(frozen=True)
class Spread:
    """How far off a set of figures is, as fractions."""

    count: int
    median: float
    ninth: float  # 90th percentile of the absolute error
    bias: float  # median with its sign

    @classmethod
    def of(cls, errors: Iterable[Error]) -> "Spread":
        signed = [error.relative for error in errors]
        absolute = [abs(error) for error in signed]
        return cls(len(signed), median(absolute), quantile(absolute, 0.9), median(signed))


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def share(truths: Iterable[bool]) -> float:
    counted = [bool(truth) for truth in truths]
    return sum(counted) / len(counted)


def near(interval: Interval) -> bool:
    """Within a tenth, or within 0.8 GiB."""
    error = interval.error
    close = abs(error.got - error.want) <= NEAR_GIB
    return close or abs(error.relative) <= NEAR_RELATIVE


def outside_the_campaign(intervals: Iterable[Interval]) -> list[Interval]:
    return [interval for interval in intervals if not interval.row.campaign]


def kind(row: Observation) -> str:
    """The row of the verdict table an observation belongs to."""
    if row.started:
        return "started"
    if row.outcome in CACHE_TOO_SMALL:
        return "cache too small"
    return "later, or for another reason" if row.outcome in NOT_AT_THE_START else "out of memory"


def verdict_table(scores: Scores) -> Counter[tuple[str, Verdict]]:
    return Counter((kind(row), answer.verdict) for row, answer in scores.verdicts)


def figures(scores: Scores) -> dict[str, float]:
    """Every figure the gate watches, by name."""
    weights = Spread.of(scores.weights)
    memory = Spread.of(interval.error for interval in scores.memory)
    others = outside_the_campaign(scores.memory)
    other_memory = Spread.of(interval.error for interval in others)
    peak = Spread.of(scores.peak)
    other_peak = Spread.of(error for error in scores.peak if not error.row.campaign)
    verdicts = [(kind(row), answer.verdict) for row, answer in scores.verdicts]
    started = [verdict for what, verdict in verdicts if what == "started"]
    too_small = [verdict for what, verdict in verdicts if what == "cache too small"]
    failed = [verdict for what, verdict in verdicts if what != "started"]
    at_start = [
        verdict for what, verdict in verdicts if what in ("cache too small", "out of memory")
    ]
    asked = len(scores.verdicts) + len(scores.unknown)
    return {
        "weights: median error": weights.median,
        "weights: rows within 3 %": share(abs(e.relative) <= 0.03 for e in scores.weights),
        "planner: rows exact within the log's rounding": share(ok for _, ok in scores.planner),
        "cache memory: median error": memory.median,
        "cache memory: median error without the campaign": other_memory.median,
        "cache memory: rows near": share(near(each) for each in scores.memory),
        "cache memory: intervals that hold the truth": share(i.holds for i in scores.memory),
        "cache memory: intervals that hold it without the campaign": share(i.holds for i in others),
        "cache memory: median width": median(i.width for i in scores.memory),
        "cache memory: median width without the campaign": median(i.width for i in others),
        "peak: median error": peak.median,
        "peak: median error without the campaign": other_peak.median,
        "failed for too small a cache, called Fits": share(v == "Fits" for v in too_small),
        "failed for too small a cache, called DoesNotFit": share(
            v == "DoesNotFit" for v in too_small
        ),
        "failed at the start, called Fits": share(v == "Fits" for v in at_start),
        "failed, called Fits": share(v == "Fits" for v in failed),
        "failed, called DoesNotFit": share(v == "DoesNotFit" for v in failed),
        "started, called Fits or Borderline": share(v != "DoesNotFit" for v in started),
        "started, called Fits": share(v == "Fits" for v in started),
        "refused as unknown": len(scores.unknown) / asked,
    }
