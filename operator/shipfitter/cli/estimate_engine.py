"""The engine's settings for one estimate: what was asked, the card's part, and what is assumed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from shipfitter.api.serve_settings import ServeSettings
from shipfitter.cli.estimate_card import Card
from shipfitter.cli.estimate_question import Question
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.estimate import Estimate, sum_of
from shipfitter.core.model import ModelFacts
from shipfitter.core.overhead import FLASHINFER_WORKSPACE_BYTES, uses_flashinfer

_PERFORMANCE_MODES_SINCE = EngineVersion(0, 17, 0)
_WORKSPACE_INSIDE_SINCE = EngineVersion(0, 29, 0)


def engine_under(
    question: Question,
    asked: ServeSettings,
    card: Card,
    model: ModelFacts,
    environment: Mapping[str, str],
) -> tuple[EngineSettings, tuple[str, ...]]:
    """The settings with what this machine and its environment add, and what was assumed."""
    settings = asked.engine
    workspace = Estimate.exactly(_workspace_bytes(settings, card.gpu, environment))
    guessed = (each.bytes for each in card.unmodelled)
    settings = replace(
        settings,
        compile_cache_warm=question.compile_cache == "warm",
        extra_bytes=sum_of((settings.extra_bytes, workspace, *guessed)),
    )
    settings = _by_performance_mode(asked, settings, model, card.gpu)
    notes = [*asked.assumptions, *(each.note for each in card.unmodelled)]
    notes += _usual(question, model, settings)
    if settings.version.is_newer_than_known:
        newest = EngineSettings.latest().version
        notes.append(f"vLLM {settings.version} is newer than what is known; counted as {newest}")
    if question.calibration is not None:
        from shipfitter.cli.estimate_calibration import calibrated, read_calibration

        learnt = read_calibration(question.calibration)
        settings, said = calibrated(settings, model, card.gpu, learnt)
        notes.append(said)
    return settings, tuple(notes)


def _workspace_bytes(settings: EngineSettings, gpu: Gpu, environment: Mapping[str, str]) -> int:
    """FlashInfer's workspace, beyond what its own cards are counted with; inside the request.

    Source: vLLM vllm/v1/attention/backends/flashinfer.py, VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE;
    from 0.29 on it is there when profiling ends.
    """
    asked = "FLASHINFER" in (settings.attention_backend or "")
    counted = uses_flashinfer(gpu)
    if settings.version < _WORKSPACE_INSIDE_SINCE or not (asked or counted):
        return 0
    stated = environment.get("VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE", "")
    size = int(stated) if stated.isdigit() else FLASHINFER_WORKSPACE_BYTES
    return size - (FLASHINFER_WORKSPACE_BYTES if counted else 0)


def _usual(question: Question, model: ModelFacts, settings: EngineSettings) -> Iterator[str]:
    """What is taken for granted where nothing was said."""
    if model.weights_source == "config":
        yield "weights by the config's arithmetic alone: their total was not given"
    if question.given_cache_gib is not None:
        return
    if question.gpu_free_memory_mib is None:
        yield "nothing else is on the card (else --gpu-free-memory-mib)"
    legacy = settings.rules.legacy_engine or settings.legacy_engine is True
    compiles = not settings.enforce_eager and not legacy
    if compiles and not settings.compile_cache_warm:
        yield "torch.compile starts without a cache (else --compile-cache warm)"


def _by_performance_mode(
    asked: ServeSettings, settings: EngineSettings, model: ModelFacts, gpu: Gpu
) -> EngineSettings:
    """Throughput doubles the batch sizes that are not given; interactivity captures 1 to 32 each.

    Source: vLLM vllm/engine/arg_utils.py, vllm/config/vllm.py _set_cudagraph_sizes, from 0.17 on.
    """
    if settings.version < _PERFORMANCE_MODES_SINCE or asked.performance_mode == "balanced":
        return settings
    resolved = resolve(settings, model, gpu)
    if asked.performance_mode == "throughput":
        seqs, tokens = resolved.max_num_seqs or 0, resolved.max_num_batched_tokens or 0
        return replace(
            settings,
            max_num_seqs=settings.max_num_seqs or 2 * seqs,
            max_num_batched_tokens=settings.max_num_batched_tokens or 2 * tokens,
        )
    sizes = {*range(1, 33), *(resolved.cudagraph_capture_sizes or ())}
    captured = tuple(sorted(sizes)) if not settings.enforce_eager else None
    return replace(settings, cudagraph_capture_sizes=settings.cudagraph_capture_sizes or captured)
