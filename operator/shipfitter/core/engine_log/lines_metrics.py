"""What a pasted page of /metrics states of the cache.

Source: vLLM v1/metrics/loggers.py: labels are the fields of CacheConfig.
"""

from shipfitter.core.engine_log.line import Line, line

METRICS_LINES: tuple[Line, ...] = (
    line(
        "cache_config_info{",
        r"cache_config_info\{[^}]*\bnum_gpu_blocks=\"(?P<num_gpu_blocks>\d+)\"",
        "0.6 to 0.33 /metrics, pasted",
        rank=2,
    ),
    line(
        "cache_config_info{",
        r"cache_config_info\{[^}]*\bgpu_memory_utilization=\"(?P<gpu_memory_utilization><N>)\"",
        "0.6 to 0.33 /metrics, pasted",
        rank=3,
    ),
    line(
        "cache_config_info{",
        r"cache_config_info\{[^}]*\bkv_cache_max_concurrency=\"(?P<max_concurrency><N>)\"",
        "0.24 to 0.33 /metrics, pasted",
        rank=2,
    ),
    line(
        "cache_config_info{",
        r"cache_config_info\{[^}]*\bkv_cache_size_tokens=\"(?P<kv_cache_tokens>\d+)\"",
        "0.24 to 0.33 /metrics, pasted",
        rank=2,
    ),
)
