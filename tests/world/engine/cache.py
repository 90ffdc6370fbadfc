"""From settings and config to the planner's layers: block sizes of hybrids, state pages, stages.

Source: vLLM 0.33 vllm/platforms/interface.py _align_hybrid_block_size,
vllm/v1/kv_cache_interface.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from world.engine.architecture import DTYPE_BYTES, Kept, kept_layers, text_config
from world.engine.planner import Layer, Rules, ceil
from world.engine.scenario import Device
from world.engine.settings import Settings
from world.engine.weights import stage_of


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Layers for the planner, its rules, and what the alignment did."""

    layers: list[Layer]
    rules: Rules
    attention_block: int
    padding_percent: float | None = None  # of a state page; None: nothing was aligned


def cache(
    settings: Settings, config: Mapping[str, Any], device: Device, given: Mapping[str, Any]
) -> Cache:
    """The cache this engine would keep on one rank."""
    kept = kept_layers(
        config,
        tensor_parallel_size=settings.tensor,
        cache_bytes=settings.cache_bytes,
        model_bytes=DTYPE_BYTES[settings.dtype],
    )
    block, state_page, padding = settings.block_size, 0, None
    states = [layer.state_bytes for layer in kept if layer.kind == "mamba"]
    token_bytes = [layer.token_bytes for layer in kept if layer.token_bytes]
    chunked = _exports_checkpoints(settings, config, device, given)
    if states and token_bytes:
        align = _alignment(settings, config, chunked=chunked)
        block = max(block, align * ceil(max(states), align * max(token_bytes)))
        state_page = block * max(token_bytes)
        padding = 100 * (state_page - max(states)) / max(states)
    rules = Rules(
        version=settings.version,
        in_flight_tokens=settings.in_flight_tokens,
        state_pages=_state_pages(settings, checkpoint=chunked),
        decode_context_parallel_size=settings.decode_context,
        hybrid_manager=not given.get("disable_hybrid_kv_cache_manager"),
    )
    layers = [
        _layer(layer, block, state_page, stage_of(index, len(kept), settings.pipeline), settings)
        for index, layer in enumerate(kept)
        if layer.kind != "none"
    ]
    return Cache(layers=layers, rules=rules, attention_block=block, padding_percent=padding)


def _layer(kept: Kept, block: int, state_page: int, stage: int, settings: Settings) -> Layer:
    if kept.kind == "mamba":
        own = block if settings.prefix_caching and state_page else settings.length
        return Layer(
            "mamba", own, kept.state_bytes, shape=kept.shape, stage=stage, padded=state_page
        )
    return Layer(
        kept.kind,
        block,
        block * kept.token_bytes,
        window=kept.window,
        shape=kept.shape,
        stage=stage,
    )


def _alignment(settings: Settings, config: Mapping[str, Any], *, chunked: bool) -> int:
    latent = text_config(config).get("kv_lora_rank") and settings.version >= (0, 27, 0)
    align = max(128 if latent else 16, settings.block_size)
    if chunked and "linear_num_value_heads" in text_config(config):
        align = math.lcm(align, 64)
    return align


def _exports_checkpoints(
    settings: Settings, config: Mapping[str, Any], device: Device, given: Mapping[str, Any]
) -> bool:
    """Whether align mode keeps one more page: Mamba2 from 0.32, GDN from 0.33 with FlashInfer."""
    if not settings.prefix_caching:
        return False
    text = text_config(config)
    if "linear_num_value_heads" in text:
        asked = str(given.get("gdn_prefill_backend", "auto"))
        major = device.compute_capability[0]
        has_kernel = major == 9 or (major in (10, 12) and text["linear_key_head_dim"] == 128)
        return settings.version >= (0, 33, 0) and asked in ("auto", "flashinfer") and has_kernel
    mamba2 = "ssm_state_size" in text or "mamba_n_heads" in text
    return settings.version >= (0, 32, 0) and mamba2


def _state_pages(settings: Settings, *, checkpoint: bool) -> int:
    if not settings.prefix_caching or settings.version < (0, 15, 0):
        return 1
    return 2 + int(checkpoint)
