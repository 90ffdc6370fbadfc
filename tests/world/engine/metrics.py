"""`/metrics` as Prometheus text: the names and labels a scraper reads from the real engine.

Source: vLLM 0.32 /metrics of a running server; vLLM 0.33 vllm/v1/metrics/loggers.py.
"""

from dataclasses import dataclass
from typing import Any

from world.engine.start import Started


@dataclass(kw_only=True)
class Load:
    """What the engine does at the moment; a test may set it."""

    running: int = 0
    waiting: int = 0
    kv_cache_usage_perc: float = 0.0
    preemptions: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0


def exposition(started: Started, load: Load) -> str:
    """The page."""
    labels = _labels({"engine": 0, "model_name": started.settings.served_names[0]})
    lines = [
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
        "# TYPE vllm:cache_config_info gauge",
        f"vllm:cache_config_info{_labels(cache_config(started))} 1.0",
    ]
    for name, kind, text, value in (
        ("num_requests_running", "gauge", "Number of requests in execution.", load.running),
        ("num_requests_waiting", "gauge", "Number of requests waiting.", load.waiting),
        (
            "kv_cache_usage_perc",
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
            load.kv_cache_usage_perc,
        ),
        ("engine_sleep_state", "gauge", "Engine sleep state.", 0),
        ("num_preemptions_total", "counter", "Number of preemptions.", load.preemptions),
        ("prompt_tokens_total", "counter", "Prefill tokens processed.", load.prompt_tokens),
        ("generation_tokens_total", "counter", "Tokens generated.", load.generated_tokens),
        ("prefix_cache_queries_total", "counter", "Prefix cache queries.", load.prompt_tokens),
        ("prefix_cache_hits_total", "counter", "Prefix cache hits.", 0),
    ):
        lines += [f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} {kind}"]
        lines.append(f"vllm:{name}{labels} {float(value)}")
    finished = _labels(
        {
            "engine": 0,
            "finished_reason": "length",
            "model_name": started.settings.served_names[0],
        }
    )
    lines += [
        "# HELP vllm:request_success_total Count of successfully processed requests.",
        "# TYPE vllm:request_success_total counter",
        f"vllm:request_success_total{finished} {float(load.requests)}",
    ]
    return "\n".join(lines) + "\n"


def cache_config(started: Started) -> dict[str, Any]:
    """The engine's CacheConfig as labels; some came with later releases."""
    settings, planned, given = started.settings, started.plan, started.given
    mode = "align" if settings.is_hybrid and settings.prefix_caching else "none"
    info: dict[str, Any] = {
        "block_size": planned.block_size,
        "cache_dtype": settings.cache_dtype,
        "calculate_kv_scales": False,
        "cpu_offload_gb": 0,
        "enable_prefix_caching": settings.prefix_caching,
        "engine": 0,
        "gpu_memory_utilization": settings.utilization,
        "is_attention_free": False,
        "kv_cache_memory_bytes": given.get("kv_cache_memory_bytes"),
        "mamba_block_size": started.cache.attention_block if mode == "align" else None,
        "mamba_cache_dtype": given.get("mamba_cache_dtype", "auto"),
        "mamba_cache_mode": mode,
        "num_cpu_blocks": None,
        "num_gpu_blocks": planned.blocks,
        "num_gpu_blocks_override": given.get("num_gpu_blocks_override"),
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": None,
    }
    if settings.version >= (0, 24, 0):
        info["kv_cache_max_concurrency"] = planned.concurrency
        info["kv_cache_size_tokens"] = planned.tokens
    if settings.version >= (0, 31, 0):
        info["effective_attention_block_size"] = started.cache.attention_block
    return dict(sorted(info.items()))


def _labels(values: dict[str, Any]) -> str:
    escaped = (
        (key, str(value).replace("\\", "\\\\").replace('"', '\\"')) for key, value in values.items()
    )
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped) + "}"
