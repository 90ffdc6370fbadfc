"""The lines of a log that state a figure: one row each, with the releases that print it so.

Group names are the names of the facts; `_bytes`, `_mib` and `_gb` groups are turned into GiB. What
the engine calls GB it divides by 2^30 as well (vLLM worker/model_runner.py, 0.6 to 0.8).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shipfitter.core.engine_log.cleaning import Record

_N = r"-?\d+(?:\.\d+)?"
_COUNT = r"\d[\d,]*"
_GIB = r"\s*Gi?B"


@dataclass(frozen=True, slots=True)
class Line:
    """How one release range words one statement.

    `needle` is a part that never changes, without its spaces: looked for first, it keeps long logs
    quick. `rank`: the same fact stated by a line of a lower rank goes before this one.
    """

    needle: str
    pattern: re.Pattern[str]
    source: str
    rank: int = 1


def _line(needle: str, pattern: str, source: str, rank: int = 1) -> Line:
    compiled = pattern.replace("<N>", _N).replace("<C>", _COUNT).replace("<G>", _GIB)
    spaced = re.compile(compiled.replace(" ", r"\s+"))
    return Line(needle.replace(" ", ""), spaced, source, rank)


LINES: tuple[Line, ...] = (
    # --- weights
    _line(
        "loading took",
        r"Model loading took (?P<weights_gib><N>)<G>",
        "0.8 to 0.33 v1/worker/gpu_model_runner.py and gpu/model_runner.py",
    ),
    _line(
        "model weights took",
        r"Loading model weights took (?P<weights_gib><N>)<G>",
        "0.6 to 0.8 worker/model_runner.py; 0.7 v1/worker/gpu_model_runner.py",
    ),
    _line(
        "model weights take",
        r"model weights take (?P<weights_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py",
        rank=2,
    ),
    _line(
        "weights memory:",
        r"weights memory: (?P<weights_gib><N>)<G>",
        "0.8 to 0.33 utils/mem_utils.py MemoryProfilingResult, at DEBUG",
        rank=2,
    ),
    # --- the profile
    _line(
        "x gpu_memory_utilization",
        r"total_gpu_memory \((?P<total_gib><N>)<G>\) x gpu_memory_utilization "
        r"\((?P<gpu_memory_utilization><N>)\)\s*=\s*(?P<requested_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py; the share is rounded to two decimals",
        rank=2,
    ),
    _line(
        "PyTorch activation peak",
        r"non_torch_memory takes (?P<non_torch_gib><N>)<G>; PyTorch activation peak memory takes "
        r"(?P<activation_peak_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py",
    ),
    _line(
        "reserved for KV Cache is",
        r"reserved for KV Cache is (?P<kv_cache_memory_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py",
    ),
    _line(
        "peak_torch_memory=",
        r"total_gpu_memory=(?P<total_gib><N>)<G>",
        "0.6.3 worker/worker.py: Memory profiling results",
    ),
    _line(
        "peak_torch_memory=",
        r"non_torch_memory=(?P<non_torch_gib><N>)<G>",
        "0.6.3 worker/worker.py: Memory profiling results",
    ),
    _line(
        "peak_torch_memory=",
        r"kv_cache_size=(?P<kv_cache_memory_gib><N>)<G>",
        "0.6.3 worker/worker.py: Memory profiling results",
    ),
    _line(
        "peak_torch_memory=",
        r"gpu_memory_utilization=(?P<gpu_memory_utilization>0?\.\d+|1(?:\.0+)?)",
        "0.6.3 worker/worker.py: Memory profiling results",
        rank=2,
    ),
    _line(
        "torch peak memory increase:",
        r"torch peak memory increase: (?P<activation_peak_gib><N>)<G>",
        "0.8 to 0.33 utils/mem_utils.py MemoryProfilingResult, at DEBUG",
        rank=2,
    ),
    _line(
        "non-torch forward increase",
        r"non-torch forward increase memory: (?P<non_torch_gib><N>)<G>",
        "0.8 to 0.26 utils/mem_utils.py MemoryProfilingResult, at DEBUG",
        rank=2,
    ),
    _line(
        "Requested memory:",
        r"Initial free memory: (?P<free_gib><N>)<G>; Requested memory: "
        r"(?P<gpu_memory_utilization><N>) \(util\), (?P<requested_gib><N>)<G>",
        "0.10.2 to 0.33 v1/worker/gpu_worker.py, at DEBUG",
        rank=2,
    ),
    _line(
        "GiB memory for KV Cache",
        r"Initial free memory (?P<free_gib><N>)<G>, reserved (?P<kv_cache_memory_gib><N>)<G> "
        r"memory for KV Cache",
        "0.10.2 to 0.33 v1/worker/gpu_worker.py, with --kv-cache-memory-bytes",
        rank=2,
    ),
    _line(
        "Error in memory profiling",
        r"Initial free memory (?P<free_gib><N>)<G>, current free memory",
        "0.9 to 0.33 v1/worker/gpu_worker.py",
        rank=2,
    ),
    _line(
        "Estimated CUDA graph",
        r"Estimated CUDA graph memory: (?P<cudagraph_estimate_gib><N>)<G>",
        "0.18 to 0.33 v1/worker/gpu_model_runner.py",
    ),
    # --- the cache
    _line(
        "Available KV cache memory",
        r"Available KV cache memory: (?P<kv_cache_memory_gib><N>)<G>",
        "0.9 to 0.33 v1/worker/gpu_worker.py",
    ),
    _line(
        "KV cache size:",
        r"KV cache size: (?P<kv_cache_tokens><C>) tokens",
        "0.8 to 0.33 v1/core/kv_cache_utils.py",
    ),
    _line(
        "Maximum concurrency for",
        r"Maximum concurrency for (?P<max_model_len><C>) tokens per request: "
        r"(?P<max_concurrency><N>)x",
        "0.6 to 0.33: executors, then v1/core/kv_cache_utils.py",
    ),
    _line(
        "blocks: ",
        r"# (?!CPU)\w+ blocks: (?P<num_gpu_blocks>\d+)(?!\d)(?! \d+,)",
        "0.6 executor/gpu_executor.py (GPU), 0.7 executor_base.py (the platform's name), 0.7 v1",
    ),
    _line(
        "num_gpu_blocks is:",
        r"num_gpu_blocks is: (?P<num_gpu_blocks>\d+)(?!\d)",
        "0.8 to 0.14 v1/metrics/loggers.py",
    ),
    _line(
        "num_gpu_blocks_override=",
        r"Overriding num_gpu_blocks=\d+ with num_gpu_blocks_override=(?P<num_gpu_blocks>\d+)",
        "0.6 to 0.33 engine/llm_engine.py, v1/core/kv_cache_utils.py",
        rank=0,
    ),
    _line(
        "cache_config_info{",
        r"cache_config_info\{[^}]*\bnum_gpu_blocks=\"(?P<num_gpu_blocks>\d+)\"",
        "0.6 to 0.33 /metrics, pasted",
        rank=2,
    ),
    _line(
        "cache_config_info{",
        r"cache_config_info\{[^}]*\bkv_cache_size_tokens=\"(?P<kv_cache_tokens>\d+)\"",
        "0.24 to 0.33 /metrics, pasted",
        rank=2,
    ),
    _line(
        "Auto-fit max_model_len",
        r"Auto-fit max_model_len: reduced from \d+ to (?P<max_model_len>\d+) to fit in "
        r"available KV cache memory \((?P<kv_cache_memory_gib><N>)<G>",
        "0.14 to 0.33 v1/core/kv_cache_utils.py, kv_cache_planning.py",
        rank=2,
    ),
    _line(
        "Setting attention block size",
        r"Setting attention block size to (?P<block_size>\d+) tokens",
        "0.10 to 0.33: hybrid models",
    ),
    # --- graphs, and the budget at the end
    _line(
        "Graph capturing finished",
        r"Graph capturing finished in \d+ secs?, took (?P<cudagraph_gib><N>)<G>",
        "0.6 to 0.33 model runners",
    ),
    _line(
        "graph pool memory:",
        r"CUDA graph pool memory: (?P<cudagraph_gib><N>)<G> \(actual\), "
        r"(?P<cudagraph_estimate_gib><N>)<G> \(estimated\)",
        "0.18 to 0.33 v1/worker/gpu_worker.py",
        rank=2,
    ),
    _line(
        "on startup. Desired",
        r"Free memory on device (?:\S+ )?\((?P<free_gib><N>)/(?P<total_gib><N>)<G>\) on startup\. "
        r"Desired GPU memory utilization is \((?P<gpu_memory_utilization><N>), "
        r"(?P<requested_gib><N>)<G>\)",
        "0.10.2 to 0.33 v1/worker/gpu_worker.py",
    ),
    _line(
        "for weight,",
        r"Actual usage is (?P<weights_gib><N>)<G> for weight, (?P<activation_peak_gib><N>)<G> for "
        r"peak activation, (?P<non_torch_gib><N>)<G> for non-torch memory, and "
        r"(?P<cudagraph_gib><N>)<G> for CUDAGraph memory",
        "0.10.2 to 0.26 v1/worker/gpu_worker.py",
        rank=2,
    ),
    _line(
        "for consumed memory",
        r"(?P<activation_peak_gib><N>)<G> for peak activation, and (?P<cudagraph_gib><N>)<G> for "
        r"CUDAGraph memory",
        "0.27 to 0.33 v1/worker/gpu_worker.py; the peak includes the estimate of the graphs",
        rank=2,
    ),
    _line(
        "kv cache memory in use is",
        r"Current kv cache memory in use is (?P<kv_cache_memory_gib><N>)<G>",
        "0.13 to 0.33 v1/worker/gpu_worker.py",
        rank=3,
    ),
    _line(
        "kv cache memory in use is",
        r"Current kv cache memory in use is (?P<kv_cache_memory_bytes>\d+) bytes",
        "0.10.2 to 0.12 v1/worker/gpu_worker.py",
        rank=3,
    ),
    _line(
        "is equivalent to --gpu-memory",
        r"The current --gpu-memory-utilization=(?P<gpu_memory_utilization><N>) is equivalent to",
        "0.18 to 0.33 v1/worker/gpu_worker.py",
        rank=3,
    ),
    # --- who runs
    _line(
        "LLM engine (",
        r"Initializing an? (?:V\d )?LLM engine \(v?(?P<engine_version>[\w.+-]+)\)",
        "0.6 to 0.33 engine/llm_engine.py, v1/engine/core.py",
    ),
    _line(
        "server version",
        r"vLLM (?:API )?server version v?(?P<engine_version>\d[\w.+-]*\w)",
        "0.6 to 0.27 entrypoints/openai/api_server.py; 0.28 on: without the logo",
    ),
    _line("█ version", r"█ version v?(?P<engine_version>\d[\w.+-]*)", "0.15 to 0.33: the logo"),
    _line("█ model", r"█ model (?P<model>\S+)", "0.15 to 0.33: the logo", rank=3),
    _line("serving model", r", serving model (?P<model>\S+)", "0.28 to 0.33", rank=3),
    _line(
        "to load model",
        r"Starting to load model (?P<model>\S+?)\.\.\.",
        "0.6 to 0.33 model runners",
        rank=3,
    ),
    _line("model len", r"Using max model len (?P<max_model_len>\d+)", "0.9 to 0.33", rank=3),
    _line(
        "vLLM",
        r"vLLM [Vv]ersion\s*: v?(?P<engine_version>\d+\.\d[\w.+-]*)",
        "collect_env.py, pasted",
        rank=2,
    ),
    _line(
        "vllm/vllm-openai:v",
        r"vllm/vllm-openai:v(?P<engine_version>\d+\.\d+\.\d+[\w.]*)",
        "an image's tag in a pasted command",
        rank=3,
    ),
    _line(
        "vllm==", r"\bvllm==(?P<engine_version>\d+\.\d+[\w.+]*)", "a pasted installation", rank=3
    ),
    _line(
        "LLM engine (",
        r"Initializing a (?P<generation>V[01]) LLM engine \(",
        "0.7 to 0.33; what says neither is 0.6's V0",
    ),
    _line(
        "Model Runner",
        r"Using (?P<model_runner>V2) Model Runner",
        "0.22 to 0.33 v1/worker/gpu_worker.py",
    ),
    _line(
        "max_num_batched_tokens=",
        r"Chunked prefill is enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)\.",
        "0.6 to 0.33 config/scheduler.py",
    ),
    # --- on which GPU
    _line(
        "device_name=",
        r"device_name=(?P<gpu>[A-Z][\w.-]*?)(?:,[a-z_]+=[^/\s]*)?\.json",
        "0.6 to 0.33: tables of tuned kernels, named after the GPU",
        rank=2,
    ),
    _line("GPU 0: ", r"GPU 0: (?P<gpu>[^\n(,]+?)(?= GPU \d|\s*\(UUID|\s*$)", "nvidia-smi -L"),
    _line(
        "| ",
        r"\| +\d+ +(?P<gpu>(?:NVIDIA|Tesla|Quadro|GRID) [\w /.-]+?) +(?:On|Off|Persist\w*|\.\.\.)",
        "nvidia-smi, pasted",
    ),
    _line(
        "total capacity of",
        r"has a total capacity of (?P<total_gib><N>) GiB",
        "torch's allocator",
        rank=2,
    ),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact as one line states it."""

    fact: str
    value: str
    rank: int
    at: int  # where in the message


def statements(record: Record) -> Iterator[Statement]:
    """Every fact that a message states."""
    unspaced = record.texts[0].replace(" ", "")
    for line in LINES:
        if line.needle not in unspaced:
            continue
        for text in record.texts:
            found = tuple(_found(line, text))
            if found:
                yield from found
                break


def _found(line: Line, text: str) -> Iterator[Statement]:
    for match in line.pattern.finditer(text):
        for fact, value in match.groupdict().items():
            yield Statement(fact, value, line.rank, match.start())
