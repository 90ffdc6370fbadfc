"""Each wording that a release prints, as its source formats it, and what is read from it.

Read in vLLM 0.6.1, 0.6.3, 0.6.6, 0.7.0, 0.7.3, 0.8.5, 0.9.2, 0.10.0, 0.10.2 and each minor release
from 0.11 to 0.33; a row names the first and the last of them that print it so.
"""

import pytest

from shipfitter.core.engine_log import read_log

HEAD = "(EngineCore_DP0 pid=321) INFO 10-21 09:12:44 [gpu_worker.py:298] "
OLD_HEAD = "INFO 10-21 09:12:44 worker.py:241] "


def stated(text):
    return {fact: value for fact, value in read_log(text).read().items() if value is not None}


def figures(releases, line, **want):
    return pytest.param(line, want, id=f"{releases}: {line[:60]}")


@pytest.mark.parametrize("head", [HEAD, OLD_HEAD], ids=["V1 head", "V0 head"])
@pytest.mark.parametrize(
    ("line", "want"),
    [
        figures("0.6.1-0.7", "Loading model weights took 14.9888 GB", weightsGib=14.9888),
        figures("0.8-0.10", "Model loading took 14.9889 GiB and 3.214 seconds", weightsGib=14.9889),
        figures(
            "0.11-0.13", "Model loading took 7.4500 GiB memory and 3.214567 seconds",
            weightsGib=7.45,
        ),
        figures(
            "0.14-0.33", "Model loading took 16.0 GiB memory and 3.214567 seconds", weightsGib=16.0
        ),
        figures(
            "0.14-0.27, V2 runner", "Model loading took 15.27 GiB and 3.214567 seconds",
            weightsGib=15.27,
        ),
        figures("0.6.1-0.7", "# GPU blocks: 27890, # CPU blocks: 2048", numGpuBlocks=27890),
        figures("0.7.0", "# CUDA blocks: 27890, # CPU blocks: 2048", numGpuBlocks=27890),
        figures("0.7.3-0.10", "# cuda blocks: 27890, # CPU blocks: 2048", numGpuBlocks=27890),
        figures("0.7-0.10, ROCm", "# rocm blocks: 17, # CPU blocks: 2048", numGpuBlocks=17),
        figures("0.6.6-0.7, V1", "# GPU blocks: 27890", numGpuBlocks=27890),
        figures("0.6.1, a CPU", "# CPU blocks: 2048"),
        figures(
            "0.6.3-0.7", "Maximum concurrency for 8192 tokens per request: 54.47x",
            maxModelLen=8192, maxConcurrency=54.47,
        ),
        figures(
            "0.8-0.27", "Maximum concurrency for 131,072 tokens per request: 3.12x",
            maxModelLen=131072, maxConcurrency=3.12,
        ),
        figures("0.8-0.27", "GPU KV cache size: 409,600 tokens", kvCacheTokens=409600),
        figures(
            "0.28-0.29",
            "GPU KV cache size: 409,600 tokens, Maximum concurrency for 131,072 tokens per "
            "request: 3.12x",
            kvCacheTokens=409600, maxModelLen=131072, maxConcurrency=3.12,
        ),
        figures(
            "0.30-0.33, cache on the host as well",
            "GPU + host KV cache size: 409,600 tokens, Maximum concurrency for 131,072 tokens per "
            "request: 3.12x",
            kvCacheTokens=409600, maxModelLen=131072, maxConcurrency=3.12,
        ),
        figures("0.8.0-0.33", "Available KV cache memory: 56.21 GiB", kvCacheMemoryGib=56.21),
        figures("0.8.0-0.33", "Available KV cache memory: -2.3 GiB", kvCacheMemoryGib=-2.3),
        figures("0.6.6-0.33", "Graph capturing finished in 12 secs, took 0.31 GiB",
                cudagraphGib=0.31),
        figures("0.8-0.33", "Graph capturing finished in 12 secs, took -0.19 GiB",
                cudagraphGib=-0.19),
        figures("0.6.1-0.6.3", "Graph capturing finished in 12 secs."),
        figures(
            "0.18-0.33",
            "CUDA graph pool memory: 0.41 GiB (actual), 0.83 GiB (estimated), difference: 0.42 GiB "
            "(102.4%).",
            cudagraphGib=0.41,
        ),
        figures("0.18-0.33", "Estimated CUDA graph memory: 0.83 GiB total"),
        figures(
            "0.6.6-0.10.0",
            "Memory profiling takes 1.31 seconds\nthe current vLLM instance can use "
            "total_gpu_memory (23.64GiB) x gpu_memory_utilization (0.90) = 21.28GiB\nmodel weights "
            "take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes "
            "1.20GiB; the rest of the memory reserved for KV Cache is 5.00GiB.",
            totalGib=23.64, gpuMemoryUtilization=0.9, requestedGib=21.28, weightsGib=14.99,
            nonTorchGib=0.09, activationPeakGib=1.2, kvCacheMemoryGib=5.0,
        ),
        figures(
            "0.9-0.26, DEBUG",
            "Memory profiling takes 4.21 seconds. Total non KV cache memory: 18.10GiB; torch peak "
            "memory increase: 2.84GiB; non-torch forward increase memory: 0.26GiB; weights memory: "
            "14.99GiB.",
            weightsGib=14.99, activationPeakGib=2.84, nonTorchGib=0.26,
        ),
        figures(
            "0.9-0.10.0, DEBUG",
            "Initial free memory: 78.66 GiB, free memory: 60.10 GiB, requested GPU memory: "
            "71.27 GiB",
            freeGib=78.66, requestedGib=71.27,
        ),
        figures(
            "0.10.2-0.13, DEBUG",
            "Initial free memory: 78.66 GiB; Requested memory: 0.90 (util), 71.27 GiB",
            freeGib=78.66, gpuMemoryUtilization=0.9, requestedGib=71.27,
        ),
        figures(
            "0.14-0.33, DEBUG",
            "Initial free memory: 78.66 GiB; Requested memory: 0.920000 (util), 72.85 GiB",
            freeGib=78.66, gpuMemoryUtilization=0.92, requestedGib=72.85,
        ),
        figures("0.14-0.33, DEBUG", "worker requested memory: 72.85GiB", requestedGib=72.85),
        figures(
            "0.10.2-0.11",
            "Initial free memory 78.66 GiB, reserved 20.00GiB memory for KV Cache as specified by "
            "kv_cache_memory_bytes config and skipped memory profiling. This does does not respect "
            "the gpu_memory_utilization config.",
            freeGib=78.66, kvCacheMemoryGib=20.0,
        ),
        figures(
            "0.12-0.33",
            "Initial free memory 78.66 GiB, reserved 20.0 GiB memory for KV Cache as specified by "
            "kv_cache_memory_bytes config and skipped memory profiling.",
            freeGib=78.66, kvCacheMemoryGib=20.0,
        ),
        figures(
            "0.10.2",
            "Free memory on device (78.66/79.19 GiB) on startup. Desired GPU memory utilization is "
            "(0.9, 71.27 GiB). Actual usage is 14.99 GiB for weight, 5.64 GiB for peak activation, "
            "0.13 GiB for non-torch memory, and 0.67 GiB for CUDAGraph memory. Replace "
            "gpu_memory_utilization config with `--kv-cache-memory=53397651456` to fit into "
            "requested memory, or `--kv-cache-memory=61332594688` to fully utilize gpu memory. "
            "Current kv cache memory in use is 54268264448 bytes.",
            freeGib=78.66, totalGib=79.19, gpuMemoryUtilization=0.9, requestedGib=71.27,
            weightsGib=14.99, activationPeakGib=5.64, nonTorchGib=0.13, cudagraphGib=0.67,
            kvCacheMemoryGib=50.54,
        ),
        figures(
            "0.11-0.26",
            "Free memory on device (78.66/79.19 GiB) on startup. Desired GPU memory utilization is "
            "(0.9, 71.27 GiB). Actual usage is 14.99 GiB for weight, 5.64 GiB for peak activation, "
            "0.13 GiB for non-torch memory, and 0.67 GiB for CUDAGraph memory. Replace "
            "gpu_memory_utilization config with `--kv-cache-memory=53397651456` (49.73 GiB) to fit "
            "into requested memory, or `--kv-cache-memory=61332594688` (57.12 GiB) to fully "
            "utilize gpu memory. Current kv cache memory in use is 50.54 GiB.",
            freeGib=78.66, totalGib=79.19, gpuMemoryUtilization=0.9, requestedGib=71.27,
            weightsGib=14.99, activationPeakGib=5.64, nonTorchGib=0.13, cudagraphGib=0.67,
            kvCacheMemoryGib=50.54,
        ),
        figures(
            "0.27-0.33",
            "Free memory on device (78.66/79.19 GiB) on startup. Desired GPU memory utilization is "
            "(0.92, 72.85 GiB). Actual usage is 15.26 GiB for consumed memory (weights + "
            "non-torch), 1.44 GiB for peak activation, and 0.3 GiB for CUDAGraph memory. Replace "
            "gpu_memory_utilization config with `--kv-cache-memory=59818115072` (55.71 GiB) to fit "
            "into requested memory, or `--kv-cache-memory=66057142272` (61.52 GiB) to fully "
            "utilize gpu memory. Current kv cache memory in use is 56.21 GiB.",
            freeGib=78.66, totalGib=79.19, gpuMemoryUtilization=0.92, requestedGib=72.85,
            activationPeakGib=1.44, cudagraphGib=0.3, kvCacheMemoryGib=56.21,
        ),
        figures(
            "0.14-0.28",
            "Auto-fit max_model_len: reduced from 262144 to 151984 to fit in available GPU memory "
            "(4.99 GiB available for KV cache)",
            maxModelLen=151984, kvCacheMemoryGib=4.99,
        ),
        figures(
            "0.29-0.33",
            "Auto-fit max_model_len: reduced from 262144 to 151984 to fit in available KV cache "
            "memory (4.99 GiB GPU)",
            maxModelLen=151984, kvCacheMemoryGib=4.99,
        ),
        figures(
            "0.14-0.28",
            "Auto-fit max_model_len: full model context length 40960 fits in available GPU memory",
        ),
        figures(
            "0.25-0.33",
            "Reserving 2.0 GiB of GPU memory for frontend multimodal decoding (1.0 GiB raw-frame "
            "semaphore budget, 1.0 GiB decoder+CUDA-context across 1 API server(s) @ 1.0 GiB/"
            "server); KV cache memory reduced to 8.31 GiB.",
            kvCacheMemoryGib=8.31,
        ),
        figures(
            "0.6-0.33", "Overriding num_gpu_blocks=1000 with num_gpu_blocks_override=512",
            numGpuBlocks=512,
        ),
        figures(
            "0.8-0.11",
            "Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 6425",
            numGpuBlocks=6425,
        ),
        figures(
            "0.12-0.33",
            "2 Engines: vllm cache_config_info with initialization after num_gpu_blocks is: 6425",
            numGpuBlocks=6425,
        ),
        figures(
            "0.18-0.19",
            "In v0.19, CUDA graph memory profiling will be enabled by default (VLLM_MEMORY_PROFILER"
            "_ESTIMATE_CUDAGRAPHS=1), which more accurately accounts for CUDA graph memory during "
            "KV cache allocation. To try it now, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 "
            "and increase --gpu-memory-utilization from 0.9000 to 0.9137 to maintain the same "
            "effective KV cache size.",
            gpuMemoryUtilization=0.9,
        ),
        figures(
            "0.20-0.33",
            "CUDA graph memory profiling is enabled (default since v0.21.0). The current "
            "--gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9063 "
            "without CUDA graph memory profiling. To maintain the same effective KV cache size as "
            "before, increase --gpu-memory-utilization to 0.9337. To disable, set "
            "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0.",
            gpuMemoryUtilization=0.92,
        ),
        figures("0.6-0.33", "vLLM API server version 0.6.6.post1", engineVersion="0.6.6.post1"),
        figures(
            "0.10", "vLLM API server version 0.10.1.dev1+gbcc0a3cbe",
            engineVersion="0.10.1.dev1+gbcc0a3cbe",
        ),
        figures("0.9-0.33", "Using max model len 40960", maxModelLen=40960),
        figures(
            "0.24-0.33, /metrics",
            'vllm:cache_config_info{block_size="16",gpu_memory_utilization="0.9",kv_cache_max_'
            'concurrency="3.12",kv_cache_size_tokens="409600",num_gpu_blocks="25600"} 1.0',
            gpuMemoryUtilization=0.9, maxConcurrency=3.12, kvCacheTokens=409600,
            numGpuBlocks=25600,
        ),
        figures(
            "0.14-0.33, a length that the engine finds",
            "non-default args: {'model': 'a/b', 'max_model_len': -1}", model="a/b",
        ),
    ],
)  # fmt: skip
def test_the_figures_of_a_line(head, line, want):
    assert stated(head + line.replace("\n", "\n" + head)) == want
