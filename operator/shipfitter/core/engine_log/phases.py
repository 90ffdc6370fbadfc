"""How far a start has come, by the lines of the log and by the frames of a traceback.

The order of a start: arguments, workers, free memory, load, profile, cache, graphs, sampler, ready.
Source: vLLM v1/worker/gpu_worker.py, v1/engine/core.py; worker/worker.py before 0.8.
"""

import re
from dataclasses import dataclass
from enum import IntEnum

from shipfitter.core.engine_log.cleaning import Record
from shipfitter.core.engine_log.needles import finder, masked
from shipfitter.core.refusals import Refusal


class Phase(IntEnum):
    """What the engine is doing."""

    CONFIGURING = 0
    LOADING = 1
    PROFILING = 2
    CACHING = 3  # the memory for it is known
    CAPTURING = 4  # the cache is allocated
    WARMING = 5  # graphs are captured
    INITIALIZED = 6  # the core is ready
    SERVING = 7


@dataclass(frozen=True, slots=True)
class _Mark:
    """A line that is said when a phase begins."""

    phase: Phase
    needle: str
    pattern: re.Pattern[str]


def _mark(phase: Phase, needle: str, pattern: str) -> _Mark:
    return _Mark(phase, masked(needle), re.compile(pattern))


# Source: the same files, 0.6 to 0.33.
_MARKS = (
    _mark(Phase.LOADING, "to load model", r"Starting to load model"),
    _mark(Phase.LOADING, "checkpoint shards", r"Loading [\w ]*checkpoint shards"),
    _mark(Phase.PROFILING, "took", r"(?:Model loading|Loading model weights) took"),
    _mark(Phase.CACHING, "KV cache memory", r"Available KV cache memory"),
    _mark(Phase.CACHING, "reserved for KV Cache", r"reserved for KV Cache is"),
    _mark(Phase.CAPTURING, "KV cache size", r"KV cache size: \d"),
    _mark(Phase.CAPTURING, "blocks:", r"# \w+ blocks: \d"),
    _mark(Phase.CAPTURING, "Maximum concurrency", r"Maximum concurrency for"),
    _mark(Phase.CAPTURING, "Capturing", r"Capturing (?:cuda|CUDA)[ \w]*graph|Capturing the model"),
    _mark(Phase.WARMING, "Graph capturing finished", r"Graph capturing finished"),
    _mark(Phase.WARMING, "kv cache memory in use", r"Current kv cache memory in use is"),
    _mark(Phase.INITIALIZED, "init engine", r"init engine \(profile"),
    _mark(Phase.INITIALIZED, "fatal error", r"EngineCore encountered a fatal error"),
    _mark(Phase.SERVING, "Starting vLLM", r"Starting vLLM (?:API )?server(?: \d+)? on"),
    _mark(Phase.SERVING, "startup complete", r"Application startup complete"),
    _mark(Phase.SERVING, "Uvicorn running", r"Uvicorn running on"),
    _mark(Phase.SERVING, "throughput", r"Avg (?:prompt|generation) throughput"),
    _mark(Phase.SERVING, "200 OK", r'"(?:GET|POST) /\S* HTTP/[\d.]+" 200'),
    _mark(Phase.SERVING, "Available routes", r"Available routes are"),
    _mark(Phase.SERVING, "Processed prompts", r"Processed prompts: +\d+%"),  # of an offline run
)
_marks_in = finder(_MARKS)
BEGINNINGS = re.compile(
    r"vLLM (?:API )?server version|█\s+version v?\d|Initializing an? (?:V\d )?LLM engine \("
)

# Source: entrypoints/launcher.py, v1/engine/core.py, v1/utils.py; uvicorn.
_STOPS = finder(
    tuple(
        _mark(Phase.SERVING, needle, pattern)
        for needle, pattern in (
            (
                "shut",
                r"^\s*(?:INFO:?\s+)?Shutting down\.?\s*$|Shutdown initiated|Shutting down FastAPI",
            ),
            (
                "[shutdown]",
                r"\[shutdown\] (?:API server|EngineCore): (?:shutdown triggered|start|trigger)",
            ),
            ("stopping", r"Gracefully stopping http server"),
            ("KeyboardInterrupt", r"\bKeyboardInterrupt\b"),
            ("Received", r"[Rr]eceived (?:signal )?(?:SIGTERM|SIGINT|signal 15|shutdown signal)"),
        )
    )
)

_FRAME = re.compile(r'File "[^"\n]{0,300}?(\w{1,100}\.py\w?)", line \d+, in (\w+)')
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
# Functions that only run in one phase; the later one decides where several lie in one traceback,
# but a profile run may execute the model, and captures graphs to measure them (from 0.29 on).
_SAMPLER = frozenset(("_dummy_sampler_run", "_dummy_pooler_run", "_dummy_pooler_run_task"))
_GRAPHS = frozenset(
    ("capture_model", "profile_cudagraph_memory", "_capture_cudagraphs", "_warmup_and_capture")
)
_PROFILE = frozenset(
    ("profile_run", "determine_available_memory", "determine_num_available_blocks")
)
_LOAD = frozenset(
    (
        "load_model",
        "load_weights",
        "initialize_model",
        "process_weights_after_loading",
        "create_weights",
        "init_device",
    )
)
_AFTER_CACHE = frozenset(
    (
        "initialize_from_config",
        "initialize_kv_cache",
        "initialize_kv_cache_tensors",
        "initialize_cache",
        "compile_or_warm_up_model",
        "_warm_up_model",
        "warm_up_model",
        "kernel_warmup",
    )
)
_SERVE = frozenset(
    (
        "execute_model",
        "sample_tokens",
        "_process_engine_step",
        "step_with_batch_queue",
        "step_async",
        "engine_step",
        "run_engine_loop",
        "generate",
    )
)
_SAMPLER_FILE = "sampler.py"  # counts in a warm-up only: serving passes through it as well
_BY_FRAMES = (
    (_SAMPLER, Refusal.OUT_OF_MEMORY_SAMPLER),
    (_GRAPHS, Refusal.OUT_OF_MEMORY_GRAPHS),
    (_PROFILE, Refusal.OUT_OF_MEMORY_PROFILE),
    (_LOAD, Refusal.OUT_OF_MEMORY_LOAD),
)
_BY_PHASE = {
    Phase.CONFIGURING: Refusal.OUT_OF_MEMORY_LOAD,
    Phase.LOADING: Refusal.OUT_OF_MEMORY_LOAD,
    Phase.PROFILING: Refusal.OUT_OF_MEMORY_PROFILE,
    Phase.CACHING: Refusal.OUT_OF_MEMORY_GRAPHS,
    Phase.CAPTURING: Refusal.OUT_OF_MEMORY_GRAPHS,
    Phase.WARMING: Refusal.OUT_OF_MEMORY_SAMPLER,
    Phase.INITIALIZED: Refusal.OUT_OF_MEMORY_SERVING,
    Phase.SERVING: Refusal.OUT_OF_MEMORY_SERVING,
}


def phase_begun(record: Record) -> Phase | None:
    """The furthest phase whose beginning this message tells."""
    begun = (
        mark.phase
        for mark in _marks_in(record.masked)
        if any(mark.pattern.search(text) for text in record.texts)
    )
    return max(begun, default=None)


def begins_start(record: Record) -> bool:
    """Whether an engine introduces itself here."""
    if "version" not in record.masked and "llmengine(" not in record.masked:
        return False
    return any(BEGINNINGS.search(text) for text in record.texts)


def is_stopping(record: Record) -> bool:
    """Whether somebody stops the engine here: what fails from now on, fails for that."""
    return any(mark.pattern.search(record.text) for mark in _STOPS(record.masked))


def frames_of(record: Record) -> tuple[str, ...]:
    """Functions and files a traceback names in this message; an empty name where one begins."""
    if "File" not in record.text and "Traceback" not in record.text:
        return ()
    begun = ("",) if _TRACEBACK.search(record.text) else ()
    return begun + tuple(name for found in _FRAME.finditer(record.text) for name in found.groups())


def out_of_memory_in(frames: frozenset[str], phase: Phase) -> Refusal:
    """Which of the out-of-memory refusals: where the traceback lies, else how far the start was."""
    for functions, refusal in _BY_FRAMES:
        if functions & frames:
            return refusal
    if _AFTER_CACHE & frames:
        warming = phase >= Phase.WARMING or _SAMPLER_FILE in frames
        return Refusal.OUT_OF_MEMORY_SAMPLER if warming else Refusal.OUT_OF_MEMORY_GRAPHS
    if _SERVE & frames:
        return Refusal.OUT_OF_MEMORY_SERVING
    return _BY_PHASE[phase]
