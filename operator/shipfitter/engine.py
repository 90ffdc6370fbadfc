"""The serving engine's HTTP: what it says of its own cache once it serves."""

import re
import urllib.error
import urllib.request

from shipfitter.status.pods import ObservedEngine

METRICS_PORT = 8000
MOST_BYTES = 4 * 1024 * 1024  # an engine with many models prints some 200 kB
_INFO = re.compile(r"^vllm:cache_config_info\{(?P<labels>.*)\} ", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def read_capacity(address: str, *, timeout_seconds: float = 3.0) -> ObservedEngine | None:
    """The cache a started engine reports at /metrics; None while it does not answer or say."""
    url = f"http://{address}:{METRICS_PORT}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=timeout_seconds) as answer:
            text = answer.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, urllib.error.URLError, ValueError):
        return None
    return parse_capacity(text)


def parse_capacity(metrics: str) -> ObservedEngine | None:
    """The cache's figures in a page of metrics; None where they are not among them.

    With several engines (data parallel) the one with fewest blocks counts. Tokens and concurrency
    are stated since 0.24; before, blocks times their size is what the engine itself printed.
    Source: vLLM 0.33 vllm/v1/metrics/loggers.py (labels are the fields of CacheConfig).
    """
    engines = [dict(_LABEL.findall(found["labels"])) for found in _INFO.finditer(metrics)]
    counted = [labels for labels in engines if labels.get("num_gpu_blocks", "").isdigit()]
    if not counted:
        return None
    least = min(counted, key=lambda labels: int(labels["num_gpu_blocks"]))
    blocks = int(least["num_gpu_blocks"])
    size = int(least["block_size"]) if least.get("block_size", "").isdigit() else 0
    return ObservedEngine(
        num_gpu_blocks=blocks,
        kv_cache_tokens=int(_number(least.get("kv_cache_size_tokens")) or blocks * size),
        max_concurrency=_number(least.get("kv_cache_max_concurrency")) or 0.0,
        block_size=size,
    )


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
