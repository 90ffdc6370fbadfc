"""How an engine says that memory does not do.

Read in vLLM 0.6.6, 0.7.3, 0.14.1, 0.17.1, 0.20.0, 0.24.0, 0.27.1 and 0.33.0, and in public logs of
the releases between; the file is named above each group.
"""

from shipfitter.core.engine_log.sentences import OUT_OF_MEMORY, Sentence, say
from shipfitter.core.refusals import Refusal

MEMORY: tuple[Sentence, ...] = (
    # v1/core/kv_cache_utils.py, 0.33 kv_cache_planning.py: check_enough_kv_cache_memory
    say(
        Refusal.KV_CACHE_TOO_SMALL,
        "To serve at least one request",
        r"To serve at least one request with the models?'s max seq len \((?P<max_model_len>\d+)\)"
        r"(?:, \((?P<kv_needed_gib><N>)\s*Gi?B KV cache is needed)?"
        r"(?:, which is larger than the available KV cache memory "
        r"\((?P<kv_available_gib><N>)\s*Gi?B\))?"
        r"(?:\. Based on the available memory, the estimated maximum model length is "
        r"(?P<estimated_max_model_len>\d+)\.)?",
    ),
    say(
        Refusal.KV_CACHE_TOO_SMALL,
        "estimated maximum model length",
        r"(?:\((?P<kv_needed_gib><N>)\s*Gi?B KV cache is needed, which is larger than the )?"
        r"(?:available KV cache memory \((?P<kv_available_gib><N>)\s*Gi?B\)\. )?"
        r"(?:Based on the available memory, )?(?:the )?estimated maximum model length is "
        r"(?P<estimated_max_model_len>\d+)\.",
    ),
    say(
        Refusal.KV_CACHE_TOO_SMALL,
        "KV cache is needed, which is larger",
        r"\((?P<kv_needed_gib><N>)\s*Gi?B KV cache is needed, which is larger than the available "
        r"KV cache memory \((?P<kv_available_gib><N>)\s*Gi?B\)",
    ),
    # worker/worker.py raise_if_cache_size_invalid, to 0.9
    say(
        Refusal.KV_CACHE_TOO_SMALL,
        "maximum number of tokens that can be stored",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens that "
        r"can be stored in KV cache \((?P<kv_cache_tokens>\d+)\)",
    ),
    say(
        Refusal.NO_CACHE_BLOCKS,
        "No available memory for the cache",
        r"No available memory for the cache blocks",
    ),
    say(Refusal.NO_CACHE_BLOCKS, "Cannot auto-fit", r"Cannot auto-fit max_model_len"),
    # multimodal/gpu_ipc_memory.py; v1/worker/cpu_worker.py
    say(
        Refusal.NO_CACHE_BLOCKS,
        "decoding reserves",
        r"frontend multimodal GPU decoding reserves <N> GiB",
    ),
    say(Refusal.NO_CACHE_BLOCKS, "leaving none for", r"leaving none for the KV cache"),
    say(
        Refusal.FREE_MEMORY,
        "Available memory on node",
        r"Available memory on node \S+ \(<N>/<N> GiB\) on (?:startup|kv cache allocation) is less "
        r"than (?:desired CPU memory utilization|requested memory)",
    ),
    # v1/worker/utils.py request_memory; v1/worker/gpu_worker.py before 0.14
    say(
        Refusal.FREE_MEMORY,
        "on startup is less than",
        r"Free memory on device (?:\S+ )?\((?P<free_gib><N>)/(?P<total_gib><N>)\s*GiB\) on startup "
        r"is less than (?:the )?(?:desired GPU memory utilization|engine's budget after excluding "
        r"external process's weights) "
        r"\((?P<gpu_memory_utilization><N>), (?P<requested_gib><N>)\s*GiB\)",
    ),
    say(
        Refusal.FREE_MEMORY,
        "Externally held weights",
        r"Externally held weights on device .{0,80} exceed the desired GPU memory utilization "
        r"\((?P<gpu_memory_utilization><N>), (?P<requested_gib><N>)\s*GiB\)",
    ),
    # v1/worker/gpu_model_runner.py _dummy_sampler_run, pooler
    say(
        Refusal.OUT_OF_MEMORY_SAMPLER,
        "when warming up",
        r"out of memory occurred when warming up (?:sampler|pooler)(?: \([^)]*\))? with "
        r"(?P<max_num_seqs>\d+) dummy requests",
    ),
    say(
        Refusal.OUT_OF_MEMORY_LOAD,
        "insufficient memory to allocate",
        r"Failed to create \w+ linear weights\. This may be caused by insufficient memory",
    ),
    say(
        Refusal.OUT_OF_MEMORY_LOAD,
        "Failed to load model - not enough",
        r"Failed to load model - not enough GPU memory"
        r"(?:.{0,400}?Tried to allocate (?P<tried_gib><SIZE>))?"
        r"(?:.{0,80}?total capaci?ty of (?P<total_gib><SIZE>) of which (?P<free_gib><SIZE>) is "
        r"free)?",
    ),
    # config/compilation.py
    say(
        Refusal.STATE_BLOCKS_TOO_FEW,
        "exceeds available Mamba",
        r"max_num_seqs \((?P<max_num_seqs>\d+)\) exceeds available Mamba cache blocks "
        r"\((?P<state_blocks>\d+)\)",
    ),
    # torch's allocators
    say(
        OUT_OF_MEMORY,
        "out of memory",
        r"(?:CUDA|HIP|XPU)\]?:? (?:\w+ )?(?:error: )?out of memory(?! occurred)"
        r"(?:\. Tried to allocate (?P<tried_gib><SIZE>))?"
        r"(?:.{0,40}?total capaci?ty of (?P<total_gib><SIZE>) of which (?P<free_gib><SIZE>) is "
        r"free)?|CUDA Error: out of memory at|OutOfMemoryError: (?!CUDA|HIP|XPU|Task|Requested)|"
        r"Cuda failure \d*\s*'out of memory'|cudaErrorMemoryAllocation",
    ),
    say(OUT_OF_MEMORY, "CUBLAS_STATUS_ALLOC_FAILED", r"CUBLAS_STATUS_ALLOC_FAILED"),
)
