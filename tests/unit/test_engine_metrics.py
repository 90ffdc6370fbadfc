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


FEWEST = ObservedEngine(
    num_gpu_blocks=1000, kv_cache_tokens=16_000, max_concurrency=0.0, block_size=16
)
STATED = ObservedEngine(
    num_gpu_blocks=2422, kv_cache_tokens=38_752, max_concurrency=2.23, block_size=16
)
PAGES = {
    "tokens are stated since 0.24": (NEW, STATED),
    "before, blocks times their size": (OLD, FEWEST),
    "of several engines the one with fewest blocks counts": (NEW + OLD, FEWEST),
    "nothing is said yet": ("vllm:num_requests_running 0\n", None),
    "not known yet": ('vllm:cache_config_info{num_gpu_blocks="None"} 1.0\n', None),
}


@pytest.mark.parametrize("page", PAGES)
def test_the_cache_is_read_from_the_metrics(page):
    text, want = PAGES[page]
    assert parse_capacity(text) == want
