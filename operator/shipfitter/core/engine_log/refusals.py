"""The sentences by which an engine, its libraries or its host say no: one row each.

Source, where no other is named: the vLLM file of the row, read in 0.6.6, 0.7.3, 0.14.1, 0.17.1,
0.20.0, 0.24.0, 0.27.1 and 0.33.0, and public logs of the releases between.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shipfitter.core.engine_log.cleaning import Record
from shipfitter.core.refusals import Refusal

OUT_OF_MEMORY = "OutOfMemory"  # which one, the place in the start decides


@dataclass(frozen=True, slots=True)
class Sentence:
    """One way to say no; groups name fields of EngineRefusal."""

    kind: Refusal | str
    needle: str  # in lower case, without spaces
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence found in a message."""

    kind: Refusal | str
    message: str
    figures: dict[str, str]
    at: int


_N = r"-?\d+(?:\.\d+)?"
_SIZE = r"\d+(?:\.\d+)?\s*(?:bytes|[KMGT]i?B)"


def _say(kind: Refusal | str, needle: str, pattern: str) -> Sentence:
    spaced = pattern.replace("<N>", _N).replace("<SIZE>", _SIZE).replace(" ", r"\s+")
    return Sentence(kind, needle.lower().replace(" ", ""), re.compile(spaced, re.IGNORECASE))


_SENTENCES: tuple[Sentence, ...] = (
    # v1/core/kv_cache_utils.py, 0.33 kv_cache_planning.py: check_enough_kv_cache_memory
    _say(
        Refusal.KV_CACHE_TOO_SMALL,
        "To serve at least one request",
        r"To serve at least one request with the models?'s max seq len \((?P<max_model_len>\d+)\)"
        r"(?:, \((?P<kv_needed_gib><N>)\s*Gi?B KV cache is needed)?"
        r"(?:, which is larger than the available KV cache memory "
        r"\((?P<kv_available_gib><N>)\s*Gi?B\))?"
        r"(?:\. Based on the available memory, the estimated maximum model length is "
        r"(?P<estimated_max_model_len>\d+)\.)?",
    ),
    _say(
        Refusal.KV_CACHE_TOO_SMALL,
        "estimated maximum model length",
        r"(?:\((?P<kv_needed_gib><N>)\s*Gi?B KV cache is needed, which is larger than the )?"
        r"(?:available KV cache memory \((?P<kv_available_gib><N>)\s*Gi?B\)\. )?"
        r"(?:Based on the available memory, )?(?:the )?estimated maximum model length is "
        r"(?P<estimated_max_model_len>\d+)\.",
    ),
    _say(
        Refusal.KV_CACHE_TOO_SMALL,
        "KV cache is needed, which is larger",
        r"\((?P<kv_needed_gib><N>)\s*Gi?B KV cache is needed, which is larger than the available "
        r"KV cache memory \((?P<kv_available_gib><N>)\s*Gi?B\)",
    ),
    # worker/worker.py raise_if_cache_size_invalid, to 0.9
    _say(
        Refusal.KV_CACHE_TOO_SMALL,
        "maximum number of tokens that can be stored",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens that "
        r"can be stored in KV cache \((?P<kv_cache_tokens>\d+)\)",
    ),
    _say(
        Refusal.NO_CACHE_BLOCKS,
        "No available memory for the cache",
        r"No available memory for the cache blocks",
    ),
    _say(Refusal.NO_CACHE_BLOCKS, "Cannot auto-fit", r"Cannot auto-fit max_model_len"),
    # v1/worker/utils.py request_memory; v1/worker/gpu_worker.py before 0.14
    _say(
        Refusal.FREE_MEMORY,
        "on startup is less than",
        r"Free memory on device (?:\S+ )?\((?P<free_gib><N>)/(?P<total_gib><N>)\s*GiB\) on startup "
        r"is less than (?:the )?(?:desired GPU memory utilization|engine's budget after excluding "
        r"external process's weights) "
        r"\((?P<gpu_memory_utilization><N>), (?P<requested_gib><N>)\s*GiB\)",
    ),
    _say(
        Refusal.FREE_MEMORY,
        "Externally held weights",
        r"Externally held weights on device .{0,80} exceed the desired GPU memory utilization "
        r"\((?P<gpu_memory_utilization><N>), (?P<requested_gib><N>)\s*GiB\)",
    ),
    # v1/worker/gpu_model_runner.py _dummy_sampler_run, pooler
    _say(
        Refusal.OUT_OF_MEMORY_SAMPLER,
        "when warming up",
        r"out of memory occurred when warming up (?:sampler|pooler)(?: \([^)]*\))? with "
        r"(?P<max_num_seqs>\d+) dummy requests",
    ),
    _say(
        Refusal.OUT_OF_MEMORY_LOAD,
        "Failed to load model - not enough",
        r"Failed to load model - not enough GPU memory"
        r"(?:.{0,400}?Tried to allocate (?P<tried_gib><SIZE>))?"
        r"(?:.{0,80}?total capacity of (?P<total_gib><SIZE>) of which (?P<free_gib><SIZE>) is "
        r"free)?",
    ),
    # config/compilation.py
    _say(
        Refusal.STATE_BLOCKS_TOO_FEW,
        "exceeds available Mamba",
        r"max_num_seqs \((?P<max_num_seqs>\d+)\) exceeds available Mamba cache blocks "
        r"\((?P<state_blocks>\d+)\)",
    ),
    # config/model.py _get_and_verify_max_len
    _say(
        Refusal.MAX_MODEL_LEN_TOO_LONG,
        "is greater than the derived max_model_len",
        r"User-specified max_model_len \((?P<max_model_len>\d+)\) is greater than the derived "
        r"max_model_len \((?:\w+=(?P<derived_max_model_len>\d+))?",
    ),
    # config/model.py verify_with_parallel_config, config/parallel.py, distributed/utils.py
    _say(
        Refusal.INVALID_PARALLELISM,
        "must be divisible by tensor parallel size",
        r"number of (?:\w+ )?attention heads \(\d+\) must be divisible by tensor parallel size "
        r"\((?P<tensor_parallel_size>\d+)\)",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "is larger than the number of available GPUs",
        r"World size \(\d+\) is larger than the number of available GPUs \(\d+\)",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "cannot be larger than the number of available GPUs",
        r"Tensor parallel size \((?P<tensor_parallel_size>\d+)\) cannot be larger than the number "
        r"of available GPUs",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "placement group",
        r"number of required \w+s exceeds the total number of available \w+s in the placement "
        r"group|Current node has no \w+ available.{0,80}placement group|"
        r"The current node timeout|Cannot provide a placement group of",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "divisible by",
        r"\b\w[\w ]{0,60}(?:size|heads|layers|experts|dim\w*|partition)\b[ =(]{0,3}\d+\)? "
        r"(?:is not|must be) divisible by|must be divisible by (?:dcp_size|"
        r"`?--?(?:decode|tensor|pipeline)|tensor|tp_size|the tensor)|not divisible by weight "
        r"quantization|AssertionError: \d+ is not divisible by \d+",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "too large tensor parallel size",
        r"caused by too large tensor parallel size",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "Pipeline parallelism is not supported",
        r"Pipeline parallelism is not supported for this model",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "context parallel",
        r"Decode context parallelism for GQA/MQA requires|`--decode-context-parallel-size`.{0,20} "
        r"exceeds the maximum",
    ),
    _say(
        Refusal.INVALID_PARALLELISM,
        "num_kv_heads",
        r"assert (?:self\.)?(?:total_num_kv_heads % (?:self\.)?\w*tp|"
        r"(?:self\.)?\w*tp\w* % (?:self\.)?total_num_kv_heads)\w*\s*==\s*0",
    ),
    # config/vllm.py, config/model.py _verify_quantization, layers/quantization, Triton
    _say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "quantization",
        r"quantization method \S+ is not supported for the current GPU|Unknown quantization "
        r"method|is not supported for quantization method|quantization method specified in the "
        r"model config \([^)]*\) does not match|\S+ quantization is currently not supported in|"
        r"Invalid quantization method|Unsupported quantization (?:method|type|config)|"
        r"quantization (?:method )?\S+ is not supported",
    ),
    _say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "compressed-tensors compatible scheme",
        r"No compressed-tensors compatible scheme was found",
    ),
    _say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "kernel that can implement",
        r"Failed to find a kernel that can implement",
    ),
    _say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "not supported in this architecture",
        r"type fp8e4\w+ not supported in this architecture",
    ),
    _say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "only supported on GPUs with compute capability",
        r"is only supported on GPUs with compute capability of at least",
    ),
    # model_executor/models/registry.py; transformers' own
    _say(
        Refusal.UNSUPPORTED_ARCHITECTURE,
        "architecture",
        r"Model architectures? .{1,200}? (?:are|is) not supported(?: for now| in-tree| anymore)?|"
        r"Model architectures .{1,200}? failed to be inspected|has no vLLM implementation|"
        r"does not recognize this architecture|was supported in vLLM until|No model architectures "
        r"are specified|architectures? .{1,120}? (?:is|are) not (?:currently )?supported by vLLM",
    ),
    # huggingface_hub errors
    _say(
        Refusal.TOKEN_REQUIRED,
        "gated",
        r"Cannot access gated repo|trying to access a gated repo|GatedRepoError|is a gated (?:repo|"
        r"model)",
    ),
    _say(
        Refusal.TOKEN_REQUIRED,
        "access to",
        r"Access to model \S+ is restricted|you are not in the authorized list",
    ),
    _say(
        Refusal.TOKEN_REQUIRED,
        "token",
        r"Invalid user token|Token is required .{0,60}but no token found|LocalTokenNotFoundError|"
        r"Invalid credentials in Authorization header",
    ),
    # the driver, the CUDA runtime, the container toolkit, the dynamic linker
    _say(
        Refusal.DRIVER_MISMATCH,
        "driver",
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|unsupported "
        r"display driver|Driver/library version mismatch|Found no NVIDIA driver|driver/library "
        r"version|couldn't communicate with the NVIDIA driver|nvidia-container-cli:.{0,120}driver",
    ),
    _say(
        Refusal.DRIVER_MISMATCH,
        "cuda",
        r"forward compatibility was attempted on non supported HW|unsatisfied condition: cuda|"
        r"No CUDA GPUs are available|libcuda\.so\S* cannot open shared object|CUDA unknown error|"
        r"libcuda\.so\.1: cannot|provided PTX was compiled with an unsupported toolchain",
    ),
    _say(
        Refusal.DRIVER_MISMATCH,
        "kernel image",
        r"no kernel image is available for execution on the device",
    ),
    _say(
        Refusal.DRIVER_MISMATCH,
        "PTX",
        r"PTX was compiled with an unsupported toolchain",
    ),
    _say(Refusal.DRIVER_MISMATCH, "infer device type", r"Failed to infer device type"),
    _say(
        Refusal.DRIVER_MISMATCH,
        "symbol",
        r"ImportError: \S+\.so\S*: (?:undefined symbol|symbol .{0,80} version)|undefined symbol: "
        r"(?:_ZN|cu|nccl|nvml)\w+",
    ),
    _say(
        Refusal.DRIVER_MISMATCH,
        "shared object file",
        r"ImportError: lib(?:cud\w*|cu\w+|nv\w+|nccl)\.so\S*: cannot open shared object file",
    ),
    # torch's allocators
    _say(
        OUT_OF_MEMORY,
        "out of memory",
        r"(?:CUDA|HIP|XPU) (?:\w+ )?(?:error: )?out of memory(?! occurred)"
        r"(?:\. Tried to allocate (?P<tried_gib><SIZE>))?"
        r"(?:.{0,40}?total capacity of (?P<total_gib><SIZE>) of which (?P<free_gib><SIZE>) is "
        r"free)?|CUDA Error: out of memory at|OutOfMemoryError: (?!CUDA|HIP|XPU|Task|Requested)|"
        r"Cuda failure \d*\s*'out of memory'|cudaErrorMemoryAllocation",
    ),
    _say(OUT_OF_MEMORY, "CUBLAS_STATUS_ALLOC_FAILED", r"CUBLAS_STATUS_ALLOC_FAILED"),
    # NCCL, gloo, shared memory
    _say(
        Refusal.COMMUNICATION,
        "nccl",
        r"NCCL error|nccl(?:System|UnhandledCuda|Internal|Remote)Error|ncclInvalidUsage|"
        r"shared memory segment \S*/dev/shm/nccl|NCCL watchdog thread terminated",
    ),
    _say(
        Refusal.COMMUNICATION,
        "Dist",
        r"DistBackendError|DistNetworkError|DistStoreError",
    ),
    _say(
        Refusal.COMMUNICATION,
        "collective operation timeout",
        r"Watchdog caught collective operation timeout",
    ),
    _say(
        Refusal.COMMUNICATION,
        "/dev/shm",
        r"No space left on device.{0,80}/dev/shm|/dev/shm.{0,80}No space left on device|"
        r"insufficient shared memory \(shm\)",
    ),
    _say(Refusal.COMMUNICATION, "Bus error", r"\bBus error\b"),
    _say(
        Refusal.COMMUNICATION,
        "gloo",
        r"Gloo connectFullMesh failed|gloo/transport/.{0,160}(?:Connection|timed? ?out|Timed)",
    ),
    _say(
        Refusal.COMMUNICATION,
        "tcpstore",
        r"TCPStore.{0,80}(?:failed|timed out|connection)|recvValue failed on",
    ),
    _say(
        Refusal.COMMUNICATION,
        "server socket has failed",
        r"server socket has failed to listen",
    ),
    _say(
        Refusal.COMMUNICATION,
        "custom_all_reduce.cu",
        r"Cuda error \S*custom_all_reduce\.cu\w*:\d+",
    ),
    # the host
    _say(
        Refusal.HOST_OUT_OF_MEMORY,
        "OOMKilled",
        r"\bOOMKilled\b",
    ),
    _say(
        Refusal.HOST_OUT_OF_MEMORY,
        "killed",
        r"Out of memory: Killed process|Memory cgroup out of memory|task was killed due to the "
        r"node running low on memory|(?:^|\d |\] )Killed\s*(?:$|python|vllm)|was killed by signal "
        r"9|Killed by signal: SIGKILL|signal: killed",
    ),
    _say(
        Refusal.HOST_OUT_OF_MEMORY,
        "code",
        r"(?:exit(?:ed)?(?: with)?\s*(?:status|code)|returncode|exitcode)[:= ]{1,2}\(?"
        r"(?P<exit_code>137|-9)\b",
    ),
    _say(
        Refusal.HOST_OUT_OF_MEMORY,
        "core proc",
        r"Failed core proc\(s\): \{[^}]*:\s*(?P<exit_code>-9)\b",
    ),
    _say(
        Refusal.HOST_OUT_OF_MEMORY,
        "memory",
        r"DefaultCPUAllocator: (?:not enough memory|can't allocate memory)|\[Errno 12\] Cannot "
        r"allocate memory|^MemoryError\b|ray\.exceptions\.OutOfMemoryError",
    ),
    # What only says that something died: the cause lies elsewhere, or is none of the above.
    _say(Refusal.OTHER, "core initialization failed", r"Engine core initialization failed"),
    _say(Refusal.OTHER, "failed to start", r"(?:EngineCore|WorkerProc) failed to start"),
    _say(Refusal.OTHER, "process failed to start", r"Engine process failed to start"),
    _say(Refusal.OTHER, "fatal error", r"EngineCore encountered a fatal error"),
    _say(Refusal.OTHER, "DeadError", r"\b(?:Async)?EngineDeadError\b"),
    _say(
        Refusal.OTHER,
        "error: ",
        r"(?:vllm(?: serve)?|api_server\.py|vllm-\w+): error: (?P<rest>[^\n]{0,300})",
    ),
    _say(Refusal.OTHER, "died unexpectedly", r"\b(?:proc|process) \S+ died unexpectedly"),
    _say(Refusal.OTHER, "profiling", r"Error in memory profiling\. Initial free memory"),
)


def sentences(record: Record) -> Iterator[Said]:
    """Every sentence of refusal in a message."""
    unspaced = record.text.lower().replace(" ", "")
    for sentence in _SENTENCES:
        if sentence.needle in unspaced:
            yield from _found(sentence, record)


def _found(sentence: Sentence, record: Record) -> Iterator[Said]:
    """In the reading that shows most figures of it: a wrap may have cut a number."""
    best: re.Match[str] | None = None
    for text in record.texts:
        match = sentence.pattern.search(text)
        if match and (best is None or _figures(match) > _figures(best)):
            best = match
    if best is not None:
        stated = {name: value for name, value in best.groupdict().items() if value is not None}
        yield Said(sentence.kind, _around(best), stated, best.start())


def _figures(match: re.Match[str]) -> int:
    return sum(value is not None for value in match.groups())


def _around(match: re.Match[str]) -> str:
    """The sentence with what follows it, short enough for a status."""
    text = match.string
    start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - 120)
    if ": " in text[start : match.start()]:
        start = text.rfind(": ", start, match.start()) + 2
    return " ".join(text[start : match.end() + 300].split())[:600]
