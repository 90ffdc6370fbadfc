"""The lines that state what a start took, and what it left for the cache."""

from shipfitter.core.engine_log.line import Line, line

MEMORY_LINES: tuple[Line, ...] = (
    # --- weights
    line(
        "loading took",
        r"Model loading took (?P<weights_gib><N>)<G>",
        "0.8 to 0.33 v1/worker/gpu_model_runner.py and gpu/model_runner.py",
    ),
    line(
        "model weights took",
        r"Loading model weights took (?P<weights_gib><N>)<G>",
        "0.6 to 0.8 worker/model_runner.py; 0.7 v1/worker/gpu_model_runner.py",
    ),
    line(
        "model weights take",
        r"model weights take (?P<weights_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py",
        rank=2,
    ),
    line(
        "weights memory:",
        r"weights memory: (?P<weights_gib><N>)<G>",
        "0.8 to 0.33 utils/mem_utils.py MemoryProfilingResult, at DEBUG",
        rank=2,
    ),
    # --- the profile
    line(
        "x gpu_memory_utilization",
        r"total_gpu_memory \((?P<total_gib><N>)<G>\) x gpu_memory_utilization "
        r"\((?P<gpu_memory_utilization><N>)\)\s*=\s*(?P<requested_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py; the share is rounded to two decimals",
        rank=2,
    ),
    line(
        "PyTorch activation peak",
        r"non_torch_memory takes (?P<non_torch_gib><N>)<G>; PyTorch activation peak memory takes "
        r"(?P<activation_peak_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py",
    ),
    line(
        "reserved for KV Cache is",
        r"reserved for KV Cache is (?P<kv_cache_memory_gib><N>)<G>",
        "0.6.4 to 0.9 worker/worker.py",
    ),
    line(
        "peak_torch_memory=",
        r"total_gpu_memory=(?P<total_gib><N>)<G>",
        "0.6.3 worker/worker.py: Memory profiling results",
    ),
    line(
        "peak_torch_memory=",
        r"non_torch_memory=(?P<non_torch_gib><N>)<G>",
        "0.6.3 worker/worker.py: Memory profiling results",
    ),
    line(
        "peak_torch_memory=",
        r"kv_cache_size=(?P<kv_cache_memory_gib><N>)<G>",
        "0.6.3 worker/worker.py: Memory profiling results",
    ),
    line(
        "peak_torch_memory=",
        r"gpu_memory_utilization=(?P<gpu_memory_utilization>0?\.\d+|1(?:\.0+)?)",
        "0.6.3 worker/worker.py: Memory profiling results",
        rank=2,
    ),
    line(
        "torch peak memory increase:",
        r"torch peak memory increase: (?P<activation_peak_gib><N>)<G>",
        "0.8 to 0.33 utils/mem_utils.py MemoryProfilingResult, at DEBUG",
        rank=2,
    ),
    line(
        "non-torch forward increase",
        r"non-torch forward increase memory: (?P<non_torch_gib><N>)<G>",
        "0.8 to 0.26 utils/mem_utils.py MemoryProfilingResult, at DEBUG",
        rank=2,
    ),
    line(
        "Requested memory:",
        r"Initial free memory: (?P<free_gib><N>)<G>; Requested memory: "
        r"(?P<gpu_memory_utilization><N>) \(util\), (?P<requested_gib><N>)<G>",
        "0.10.2 to 0.33 v1/worker/gpu_worker.py, at DEBUG",
        rank=2,
    ),
    line(
        ", requested GPU memory:",
        r"Initial free memory: (?P<free_gib><N>)<G>, free memory: <N><G>, requested GPU memory: "
        r"(?P<requested_gib><N>)<G>",
        "0.9 to 0.10.1 v1/worker/gpu_worker.py, at DEBUG",
        rank=2,
    ),
    line(
        "worker requested memory",
        r"worker requested memory: (?P<requested_gib><N>)<G>",
        "0.14 to 0.33 v1/worker/gpu_worker.py, at DEBUG",
        rank=2,
    ),
    line(
        "KV cache memory reduced to",
        r"KV cache memory reduced to (?P<kv_cache_memory_gib><N>)<G>",
        "0.25 to 0.33 v1/worker/gpu_worker.py, after what the decoding of media takes",
        rank=2,
    ),
    line(
        "GiB memory for KV Cache",
        r"Initial free memory (?P<free_gib><N>)<G>, reserved (?P<kv_cache_memory_gib><N>)<G> "
        r"memory for KV Cache",
        "0.10.2 to 0.33 v1/worker/gpu_worker.py, with --kv-cache-memory-bytes",
        rank=2,
    ),
    line(
        "Error in memory profiling",
        r"Initial free memory (?P<free_gib><N>)<G>, current free memory",
        "0.9 to 0.33 v1/worker/gpu_worker.py",
        rank=2,
    ),
    line(
        "Estimated CUDA graph",
        r"Estimated CUDA graph memory: (?P<cudagraph_estimate_gib><N>)<G>",
        "0.18 to 0.33 v1/worker/gpu_model_runner.py",
    ),
    # --- the cache
    line(
        "Available KV cache memory",
        r"Available KV cache memory: (?P<kv_cache_memory_gib><N>)<G>",
        "0.9 to 0.33 v1/worker/gpu_worker.py",
    ),
    line(
        "KV cache size:",
        r"KV cache size: (?P<kv_cache_tokens><C>) tokens",
        "0.8 to 0.33 v1/core/kv_cache_utils.py",
    ),
    line(
        "Maximum concurrency for",
        r"Maximum concurrency for (?P<max_model_len><C>) tokens per request: "
        r"(?P<max_concurrency><N>)x",
        "0.6 to 0.33: executors, then v1/core/kv_cache_utils.py",
    ),
    line(
        "blocks: ",
        r"# (?!CPU)\w+ blocks: (?P<num_gpu_blocks>\d+)(?!\d)(?! \d+,)",
        "0.6 executor/gpu_executor.py (GPU), 0.7 executor_base.py (the platform's name), 0.7 v1",
    ),
    line(
        "num_gpu_blocks is:",
        r"num_gpu_blocks is: (?P<num_gpu_blocks>\d+)(?!\d)",
        "0.8 to 0.14 v1/metrics/loggers.py",
    ),
    line(
        "num_gpu_blocks_override=",
        r"Overriding num_gpu_blocks=\d+ with num_gpu_blocks_override=(?P<num_gpu_blocks>\d+)",
        "0.6 to 0.33 engine/llm_engine.py, v1/core/kv_cache_utils.py",
        rank=0,
    ),
    line(
        "Auto-fit max_model_len",
        r"Auto-fit max_model_len: reduced from \d+ to (?P<max_model_len>\d+) to fit in available "
        r"(?:KV cache|GPU) memory \((?P<kv_cache_memory_gib><N>)<G>",
        "0.14 to 0.28 v1/core/kv_cache_utils.py (GPU), to 0.33 kv_cache_planning.py (KV cache)",
        rank=2,
    ),
    line(
        "Setting attention block size",
        r"Setting attention block size to (?P<block_size>\d+) tokens",
        "0.10 to 0.33: hybrid models",
    ),
    # --- graphs, and the budget at the end
    line(
        "Graph capturing finished",
        r"Graph capturing finished in \d+ secs?, took (?P<cudagraph_gib><N>)<G>",
        "0.6 to 0.33 model runners",
    ),
    line(
        "graph pool memory:",
        r"CUDA graph pool memory: (?P<cudagraph_gib><N>)<G> \(actual\), "
        r"(?P<cudagraph_estimate_gib><N>)<G> \(estimated\)",
        "0.18 to 0.33 v1/worker/gpu_worker.py",
        rank=2,
    ),
    line(
        "on startup. Desired",
        r"Free memory on device (?:\S+ )?\((?P<free_gib><N>)/(?P<total_gib><N>)<G>\) on startup\. "
        r"Desired GPU memory utilization is \((?P<gpu_memory_utilization><N>), "
        r"(?P<requested_gib><N>)<G>\)",
        "0.10.2 to 0.33 v1/worker/gpu_worker.py",
    ),
    line(
        "for weight,",
        r"Actual usage is (?P<weights_gib><N>)<G> for weight, (?P<activation_peak_gib><N>)<G> for "
        r"peak activation, (?P<non_torch_gib><N>)<G> for non-torch memory, and "
        r"(?P<cudagraph_gib><N>)<G> for CUDAGraph memory",
        "0.10.2 to 0.26 v1/worker/gpu_worker.py",
        rank=2,
    ),
    line(
        "for consumed memory",
        r"(?<![\d.])(?P<activation_peak_gib><N>)<G> for peak activation, and "
        r"(?P<cudagraph_gib><N>)<G> for CUDAGraph memory",
        "0.27 to 0.33 v1/worker/gpu_worker.py; the peak includes the estimate of the graphs",
        rank=2,
    ),
    line(
        "kv cache memory in use is",
        r"Current kv cache memory in use is (?P<kv_cache_memory_gib><N>)<G>",
        "0.13 to 0.33 v1/worker/gpu_worker.py",
        rank=3,
    ),
    line(
        "kv cache memory in use is",
        r"Current kv cache memory in use is (?P<kv_cache_memory_bytes>\d+) bytes",
        "0.10.2 to 0.12 v1/worker/gpu_worker.py",
        rank=3,
    ),
    line(
        "is equivalent to --gpu-memory",
        r"The current --gpu-memory-utilization=(?P<gpu_memory_utilization><N>) is equivalent to",
        "0.18 to 0.33 v1/worker/gpu_worker.py",
        rank=3,
    ),
    line(
        "--gpu-memory-utilization from",
        r"--gpu-memory-utilization from (?P<gpu_memory_utilization><N>) to <N>",
        "0.18 to 0.33 v1/worker/gpu_worker.py, where the graphs are not charged",
        rank=3,
    ),
)
