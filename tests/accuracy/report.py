"""`make accuracy`: prints the report and writes docs/accuracy.md."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from accuracy.figures import (
    Spread,
    figures,
    near,
    outside_the_campaign,
    share,
    verdict_table,
)
from accuracy.observations import Observation, gpu_of, model_of, observations
from accuracy.peaks import peak_sections
from accuracy.scoring import Interval, Scores, scores
from shipfitter.core.overhead import UNIFIED
from shipfitter.core.verdict import Verdict

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
BANDS = (("0.6", "0.7"), ("0.8", "0.10"), ("0.11", "0.16"), ("0.17", "0.19"), ("0.20", "0.26"))
INTRODUCTION = """# Accuracy

<!-- Written by `make accuracy`. -->

What `shipfitter estimate` says, against what vLLM logged or did in {count} runs that people
reported in public: issues, posts, benchmark archives, releases {first} to {last}. The rows are in
`tests/accuracy/observations.jsonl`, each with its source; a figure in this page that gets worse
fails `make check`.

An error is (predicted - logged) / logged, the median and the 90th percentile are of its absolute
value, the bias is its median with the sign. Of the runs, {campaign} are one campaign on H100 cards
with vLLM 0.19: good for telling models apart, silent about cards and releases, so the memory
figures are given without it too. A compile cache is assumed cold. Rows are never fitted one by one:
what is not known of a mechanism widens its interval.
"""


def page() -> str:
    """The whole report."""
    found = scores()
    rows = observations()
    versions = sorted({_minor(row.version) for row in rows if row.version}, key=_order)
    parts = [
        INTRODUCTION.format(
            count=len(rows),
            first=next(version for version in versions if _order(version) >= (0, 6)),
            last=versions[-1],
            campaign=sum(row.campaign for row in rows),
        ),
        *_quantities(found),
        *_verdicts(found),
        *peak_sections(found),
        *_groups(found),
        *_left_out(found),
    ]
    return "\n".join(parts)


def _quantities(found: Scores) -> Iterator[str]:
    yield "## Quantities\n"
    yield "| quantity, per GPU | n | median | 90th percentile | bias |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    memory = [interval.error for interval in found.memory]
    others = [interval.error for interval in outside_the_campaign(found.memory)]
    for name, errors in (
        ("weights", found.weights),
        ("available KV cache memory", memory),
        ("the same, without the campaign", others),
        ("activation peak, where logged", found.peak),
        ("the same, without the campaign", [e for e in found.peak if not e.row.campaign]),
    ):
        yield _spread_row(name, Spread.of(errors))
    measured = figures(found)
    yield "\n| and | |\n| --- | ---: |"
    for name, value in measured.items():
        if "median error" not in name:
            yield f"| {name} | {value:.1%} |"
    yield ""
    yield (
        f"Near is within 10 % or 0.8 GiB. The planner is asked with the logged cache memory "
        f"({len(found.planner)} rows): tokens, blocks, concurrency, need and estimated length.\n"
    )


def _spread_row(name: str, spread: Spread) -> str:
    figures_ = f"{spread.median:.2%} | {spread.ninth:.1%} | {spread.bias:+.2%}"
    return f"| {name} | {spread.count} | {figures_} |"


def _verdicts(found: Scores) -> Iterator[str]:
    yield "## Verdicts\n"
    yield "| the run | n | " + " | ".join(Verdict) + " |\n| --- | ---: | ---: | ---: | ---: |"
    table = verdict_table(found)
    for what in ("started", "cache too small", "out of memory", "later, or for another reason"):
        counts = [table[what, verdict] for verdict in Verdict]
        name = what if what == "started" else f"failed: {what}"
        yield f"| {name} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |"
    yield "\nFailed runs that are called `Fits`:\n"
    for row, answer in found.verdicts:
        if not row.started and answer.verdict is Verdict.FITS:
            yield f"- `{row.id}`: {row.outcome}"
    yield "\nStarted runs that are called `DoesNotFit`:\n"
    for row, answer in found.verdicts:
        if row.started and answer.verdict is Verdict.DOES_NOT_FIT:
            yield f"- `{row.id}`: {answer.reason}"
    yield ""


def _groups(found: Scores) -> Iterator[str]:
    for title, name in (("family", _family), ("GPU class", _gpu_class), ("engine", _band)):
        yield f"## Available KV cache memory by {title}\n"
        yield "| | n | median | 90th percentile | bias | near | held by the interval |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
        for group, intervals in _grouped(found.memory, name):
            spread = Spread.of(interval.error for interval in intervals)
            yield (
                _spread_row(group, spread).removesuffix("|")
                + f"| {share(map(near, intervals)):.0%} | {share(i.holds for i in intervals):.0%} |"
            )
        yield ""


def _grouped(
    intervals: Sequence[Interval], name: Callable[[Observation], str]
) -> list[tuple[str, list[Interval]]]:
    groups: dict[str, list[Interval]] = {}
    for interval in intervals:
        groups.setdefault(name(interval.row), []).append(interval)
    return sorted(groups.items(), key=lambda group: group[0])


def _family(row: Observation) -> str:
    name = model_of(row).architecture
    for ending in ("ForConditionalGeneration", "ForCausalLM", "Unified"):
        name = name.removesuffix(ending)
    return name


def _gpu_class(row: Observation) -> str:
    gpu = gpu_of(row)
    assert gpu is not None
    if gpu.product.startswith("AMD"):
        return "AMD"
    if gpu.compute_capability in UNIFIED:
        return "unified memory"
    if row.gpu is None and row.capability is None:
        return "card not named"
    if "GeForce" in gpu.product or "RTX" in gpu.product:
        return "desktop and workstation"
    major = gpu.compute_capability[0] if gpu.compute_capability else 0
    return "Hopper and Blackwell" if major >= 9 else "Turing, Ampere and Ada data centre"


def _band(row: Observation) -> str:
    version = _order(_minor(row.version or "0.0"))
    for first, last in BANDS:
        if _order(first) <= version <= _order(last):
            return f"{first} to {last}"
    return "0.27 and newer"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _left_out(found: Scores) -> Iterator[str]:
    yield "## Left out\n"
    yield "| why | rows |\n| --- | ---: |"
    for reason, rows in sorted(found.left_out.items()):
        yield f"| {reason} | {len(rows)} |"
    for quantity in ("weights", "planner", "memory", "verdict"):
        count = sum(quantity in row.unfair for row in observations())
        yield f"| ambiguous for {quantity} | {count} |"
    yield "\nRefused by name, for a class whose cache or weights are not known:\n"
    for row, _ in found.unknown:
        yield f"- `{row.id}` ({row.model})"
    yield ""


if __name__ == "__main__":
    text = page()
    PAGE.write_text(text)
    print(text)
