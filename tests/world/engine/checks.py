"""The refusals that need no GPU, in the engine's order and words.

Source: vLLM 0.33 vllm/config/parallel.py, scheduler.py, cache.py, model.py.
"""

from collections.abc import Mapping
from typing import Any

from world.engine.architecture import heads, text_config
from world.engine.config_error import ConfigError
from world.engine.scenario import Device
from world.engine.settings import Settings


def check(
    settings: Settings, given: Mapping[str, Any], config: Mapping[str, Any], device: Device
) -> None:
    """ConfigError from the first check that fails."""
    query, kv_heads, _ = heads(text_config(config))
    world = settings.tensor * settings.pipeline
    nodes = given.get("nnodes", 1)
    if world > device.count * nodes and given.get("distributed_executor_backend") != "ray":
        raise ConfigError(
            "ParallelConfig",
            f"World size ({world}) is larger than the number of available GPUs ({device.count}) in "
            "this node. If this is intentional and you are using:\n- ray, set "
            "'--distributed-executor-backend ray'.\n- multiple nodes, set '--nnodes' "
            "appropriately.",
        )
    if query and query % settings.tensor:
        raise ConfigError(
            "VllmConfig",
            f"Total number of attention heads ({query}) must be divisible by tensor parallel size "
            f"({settings.tensor}).",
        )
    if settings.batched_tokens < settings.sequences:
        raise ConfigError(
            "SchedulerConfig",
            f"max_num_batched_tokens ({settings.batched_tokens}) must be greater than or equal to "
            f"max_num_seqs ({settings.sequences}).",
        )
    if settings.batched_tokens < settings.length and given.get("enable_chunked_prefill") is False:
        raise ConfigError(
            "SchedulerConfig",
            f"max_num_batched_tokens ({settings.batched_tokens}) is smaller than max_model_len "
            f"({settings.length}). This effectively limits the maximum sequence length to "
            "max_num_batched_tokens and makes vLLM reject longer sequences. Please increase "
            "max_num_batched_tokens or decrease max_model_len.",
        )
    if not 0 < settings.utilization <= 1:
        raise ConfigError(
            "CacheConfig",
            "GPU memory utilization must be less than 1.0 and greater than 0. Got "
            f"{settings.utilization}.",
        )
    if settings.tensor % settings.decode_context:
        raise ConfigError(
            "ParallelConfig",
            f"tp_size={settings.tensor} must be divisible by dcp_size={settings.decode_context}.",
        )
    if kv_heads and kv_heads % settings.tensor and settings.tensor % kv_heads:
        raise AssertionError(f"{kv_heads} key-value heads over {settings.tensor} ranks")
