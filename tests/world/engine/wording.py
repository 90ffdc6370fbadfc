"""The engine's sentences, by release; figures as it rounds them.

Source: vLLM 0.14 to 0.33: vllm/v1/worker/utils.py, vllm/v1/core/kv_cache_utils.py (0.33:
kv_cache_planning.py), vllm/v1/worker/gpu_worker.py, vllm/config/compilation.py, and public logs.
"""

from world.engine.planner import CacheFull, Plan
from world.engine.versions import Version

GIB = 2**30
MIB = 2**20
_MEMORY_PAGE = (
    "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
)


def gib(size_bytes: float) -> str:
    """Two decimals, trailing zeroes dropped save one: 16.0."""
    return f"{round(size_bytes / GIB, 2)}"


def free_memory(free: int, total: int, utilization: float, requested: int) -> str:
    return (
        f"Free memory on device cuda:0 ({gib(free)}/{gib(total)} GiB) on startup is less than "
        f"desired GPU memory utilization ({utilization}, {gib(requested)} GiB). Decrease GPU "
        "memory utilization or reduce GPU memory used by other processes."
    )


def no_blocks(version: Version) -> str:
    hint = " (for the CPU backend: VLLM_CPU_KVCACHE_SPACE)" if version >= (0, 22, 0) else ""
    return (
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        f"initializing the engine{hint}. {_MEMORY_PAGE}"
    )


def cannot_fit() -> str:
    return (
        "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single "
        "token. Try increasing `gpu_memory_utilization`."
    )


def cache_full(refusal: CacheFull, version: Version) -> str:
    model = "model's" if version >= (0, 22, 0) else "models's"
    estimate = (
        "Based on the available memory, the estimated maximum model length is "
        f"{refusal.estimated}. "
        if refusal.estimated > 0
        else ""
    )
    return (
        f"To serve at least one request with the {model} max seq len ({refusal.length}), "
        f"({gib(refusal.needed)} GiB KV cache is needed, which is larger than the available KV "
        f"cache memory ({gib(refusal.usable)} GiB). {estimate}Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine. "
        f"{_MEMORY_PAGE}"
    )


def too_few_states(sequences: int, blocks: int) -> str:
    return (
        f"max_num_seqs ({sequences}) exceeds available Mamba cache blocks ({blocks}). Each decode "
        "sequence requires one Mamba cache block, so CUDA graph capture cannot proceed. Please "
        f"lower max_num_seqs to at most {blocks} or increase gpu_memory_utilization."
    )


def out_of_memory(wanted: int, free: int, total: int, allocated: int) -> str:
    """What torch says; the sizes in the units it picks."""
    used = total - free
    return (
        f"CUDA out of memory. Tried to allocate {_torch_size(wanted)}. GPU 0 has a total capacity "
        f"of {total / GIB:.2f} GiB of which {_torch_size(free)} is free. Including non-PyTorch "
        f"memory, this process has {_torch_size(used)} memory in use. Of the allocated memory "
        f"{_torch_size(allocated)} is allocated by PyTorch, and 96.25 MiB is reserved by PyTorch "
        "but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation "
        "for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def _torch_size(size_bytes: int) -> str:
    if size_bytes >= GIB:
        return f"{size_bytes / GIB:.2f} GiB"
    return f"{max(0, size_bytes) / MIB:.2f} MiB"


def sampler_out_of_memory(sequences: int) -> str:
    return (
        f"CUDA out of memory occurred when warming up sampler with {sequences} dummy requests. "
        "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the "
        "engine."
    )


def loading_took(size_bytes: int, seconds: float, version: Version, runner: str) -> str:
    memory = "" if runner == "V2" and version < (0, 28, 0) else "memory "
    return f"Model loading took {gib(size_bytes)} GiB {memory}and {seconds:.6f} seconds"


def cache_lines(plan: Plan, version: Version) -> list[str]:
    """One line since 0.28."""
    size = f"GPU KV cache size: {plan.tokens:,} tokens"
    most = f"Maximum concurrency for {plan.length:,} tokens per request: {plan.concurrency:.2f}x"
    return [f"{size}, {most}"] if version >= (0, 28, 0) else [size, most]


def auto_fitted(before: int, after: int, available: int) -> str:
    if before == after:
        whole = f"full model context length {after} fits in available GPU memory"
        return f"Auto-fit max_model_len: {whole}"
    return (
        f"Auto-fit max_model_len: reduced from {before} to {after} to fit in available GPU memory "
        f"({gib(available)} GiB available for KV cache)"
    )


def budget(  # the figures of one line, in the order they are said
    *,
    version: Version,
    free: int,
    total: int,
    utilization: float,
    requested: int,
    weights: int,
    overhead: int,
    activation: int,
    graphs: int,
    graph_charged: int,
    cache: int,
) -> str:
    """The whole budget in one line; the wording changed with the accounting in 0.27."""
    if version >= (0, 27, 0):
        usage = (
            f"{gib(weights + overhead)} GiB for consumed memory (weights + non-torch), "
            f"{gib(activation + graph_charged)} GiB for peak activation, and {gib(graphs)} GiB for "
            "CUDAGraph memory"
        )
    else:
        usage = (
            f"{gib(weights)} GiB for weight, {gib(activation)} GiB for peak activation, "
            f"{gib(overhead)} GiB for non-torch memory, and {gib(graphs)} GiB for CUDAGraph memory"
        )
    peak = activation + (graph_charged if version >= (0, 27, 0) else 0)
    redundancy = 150 * MIB
    fitting = requested - weights - overhead - peak - graphs - redundancy
    whole = free - weights - overhead - peak - graphs - redundancy
    return (
        f"Free memory on device ({gib(free)}/{gib(total)} GiB) on startup. Desired GPU memory "
        f"utilization is ({utilization}, {gib(requested)} GiB). Actual usage is {usage}. Replace "
        f"gpu_memory_utilization config with `--kv-cache-memory={fitting}` ({gib(fitting)} GiB) to "
        f"fit into requested memory, or `--kv-cache-memory={whole}` ({gib(whole)} GiB) to fully "
        f"utilize gpu memory. Current kv cache memory in use is {gib(cache)} GiB."
    )
