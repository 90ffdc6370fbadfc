"""What a running engine says of its cache."""

import pytest

from shipfitter.engine import parse_capacity
from shipfitter.status.pods import ObservedEngine

NEW = (
    "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
    'vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",'
    'kv_cache_max_concurrency="2.23",kv_cache_size_tokens="38752",num_gpu_blocks="2422"} 1.0\n'
)
OLD = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="1000"} 1.0\n'


@pytest.mark.parametrize(
    ("page", "want"),
    [
        pytest.param(NEW, ObservedEngine(num_gpu_blocks=2422, kv_cache_tokens=38_752, max_concurrency=2.23), id="tokens are stated since 0.24"),
        pytest.param(OLD, ObservedEngine(num_gpu_blocks=1000, kv_cache_tokens=16_000, max_concurrency=0.0), id="before, blocks times their size"),
        pytest.param(NEW + OLD, ObservedEngine(num_gpu_blocks=1000, kv_cache_tokens=16_000, max_concurrency=0.0), id="the engine with fewest blocks counts"),
        pytest.param("vllm:num_requests_running 0\n", None, id="nothing is said yet"),
        pytest.param('vllm:cache_config_info{num_gpu_blocks="None"} 1.0\n', None, id="not known yet"),
    ],
)  # fmt: skip
def test_the_cache_is_read_from_the_metrics(page, want):
    assert parse_capacity(page) == want
