"""Activation peaks: what logs state, what the engine's own code takes, and what the core says."""

from collections.abc import Iterator, Sequence
from statistics import median

from accuracy.observations import Observation, gpu_of, model_of, settings_of
from accuracy.scoring import Error, Scores
from oracle.activation.cases import Case
from oracle.activation.compared import (
    Answer,
    Figure,
    answered,
    answers,
    engine_peak,
    figures,
)
from shipfitter.core.engines import EngineSettings, resolve
from shipfitter.core.rules import CompileBlock
from shipfitter.units import GIB

_INTRODUCTION = """## Activation peaks

vLLM {release}'s own model code and compiler, run without a card on tensors without data, tell the
bytes that are alive in the profile run (`tests/oracle/activation`; `make oracle-activation`):
{count} models and settings on a pretended H100. What a kernel takes for itself is not seen, nor are
modality towers. An error is ours against the engine's code. Forward passes of dense 8-bit models
are excepted: the engine quantises in fused kernels that are not there, and its answer is off.
"""
_LOGGED = """### Logged peaks beside both

A peak as its release prints it: up to 0.26 with what the experts, the sampler's scratch and cuBLAS
keep, from 0.27 on with the estimate of CUDA graphs. The engine's code is that of {release}, asked
for the same model and settings: of older releases it knows the forward pass, not the sampler that
sorted (up to 0.16). It adds nothing for cuBLAS, graphs and towers.
"""


def peak_sections(found: Scores) -> Iterator[str]:
    """Everything about peaks, for the report."""
    compared = [
        (answer, {each.quantity: each for each in figures(answer)}) for answer in answered()
    ]
    release = answers()[0].said["release"]
    yield _INTRODUCTION.format(release=release, count=len(compared))
    trusted = (it for _, each in compared for it in each.values() if not it.excepted)
    yield from _summary(tuple(trusted))
    yield from _logged(found.peak, release)
    yield from _cases(compared)
    yield from _refused()


def _summary(compared: Sequence[Figure]) -> Iterator[str]:
    yield "| quantity | n | median | worst | where |\n| --- | ---: | ---: | ---: | --- |"
    for quantity in dict.fromkeys(figure.quantity for figure in compared):
        own = [figure for figure in compared if figure.quantity == quantity]
        worst = max(own, key=lambda figure: abs(figure.relative))
        middle = median(abs(figure.relative) for figure in own)
        where = worst.case.name if abs(worst.relative) >= 0.0005 else ""
        yield f"| {quantity} | {len(own)} | {middle:.1%} | {worst.relative:+.1%} | {where} |"
    yield ""


def _logged(errors: Sequence[Error], release: str) -> Iterator[str]:
    yield "\n" + _LOGGED.format(release=release)
    yield "| run | vLLM | tokens | sequences | logged | engine's code | ours |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    known = {
        _key(answer.case): answer for answer in answered() if answer.case.moe_backend == "auto"
    }
    for error in sorted(errors, key=lambda error: error.row.id):
        row = error.row
        settings = _resolved(row)
        engine = _engine(row, settings, known)
        yield (
            f"| {row.id} | {row.version} | {settings.max_num_batched_tokens} "
            f"| {settings.max_num_seqs} | {error.want:.2f} | {engine} | {error.got:.2f} |"
        )
    yield ""


def _key(case: Case) -> tuple[object, ...]:
    return (case.model, case.tp, case.tokens, case.sequences, case.eager, case.expert_parallel)


def _resolved(row: Observation) -> EngineSettings:
    gpu = gpu_of(row)
    assert gpu is not None
    return resolve(settings_of(row), model_of(row), gpu)


def _engine(
    row: Observation, settings: EngineSettings, known: dict[tuple[object, ...], Answer]
) -> str:
    """What the engine's code takes for the row's settings; empty where it was not asked."""
    layout = settings.layout
    plain = layout.pipeline_parallel_size == 1 and not {"dtype", "quantization"} & row.flags.keys()
    key = (
        row.model,
        layout.tensor_parallel_size,
        settings.max_num_batched_tokens,
        settings.max_num_seqs,
        settings.enforce_eager,
        layout.enable_expert_parallel,
    )
    answer = known.get(key) if plain else None
    if answer is None:
        return ""
    if settings.rules.sorts_to_sample:
        return f"{answer.said['forward_bytes'] / GIB:.2f} forward"
    compiles = settings.rules.compile_block is CompileBlock.RUNS
    peak = engine_peak(answer, runner=settings.model_runner, compiles=compiles)
    kept = 0 if settings.rules.charges_what_is_consumed else answer.said["workspace_bytes"]
    return f"{(peak + kept) / GIB:.2f}"


def _cases(compared: Sequence[tuple[Answer, dict[str, Figure]]]) -> Iterator[str]:
    quantities = ("forward", "workspace", "sampler V1", "sampler V2", "compiling")
    yield "\n### Case by case\n\nGiB, the engine's code and ours where they differ.\n"
    yield f"| model and settings | {' | '.join(quantities)} |"
    yield f"| --- |{' ---: |' * len(quantities)}"
    for answer, each in compared:
        cells = (_cell(each.get(quantity)) for quantity in quantities)
        yield f"| {answer.case.name} | {' | '.join(cells)} |"
    yield ""


def _cell(figure: Figure | None) -> str:
    if figure is None or not (figure.engine or figure.ours):
        return ""
    engine, ours = f"{figure.engine / GIB:.3f}", f"{figure.ours / GIB:.3f}"
    return engine if engine == ours else f"{engine} / {ours}"


def _refused() -> Iterator[str]:
    yield "\nWhat the engine's code did not answer here:\n"
    for answer in answers():
        if answer.refused is not None:
            yield f"- {answer.case.name}: {answer.refused}"
    yield ""
