"""The bytes of one rank beside weights and cache, by plain formulas; a scenario may replace each.

Source: vLLM 0.32 run on meta tensors for the forward and sampler terms, public logs for the rest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from world.engine.architecture import heads, text_config
from world.engine.scenario import GIB, Device, Scenario
from world.engine.settings import Settings

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What the engine will measure on a rank; bytes."""

    total: int
    free: int  # at the snapshot, after context and communication
    requested: int
    overhead: int  # persistent beside weights, inside the request
    activation: int  # transient peak of the profile run
    graph_estimate: int
    graph_charged: int  # what of the estimate the release takes off the cache
    graphs: int  # as captured
    sampler: int  # warm-up after capture


def memory(
    settings: Settings,
    config: Mapping[str, Any],
    device: Device,
    scenario: Scenario,
    *,
    compiled_before: bool = False,
) -> Memory:
    """The figures for this device; those the scenario names are taken as they are."""
    text = text_config(config)
    vocabulary = int(text.get("vocab_size") or 262208)
    sampled = min(settings.sequences, settings.batched_tokens) * vocabulary
    estimate = _graph_bytes(settings, text)
    charged = settings.version >= (0, 20, 0) and (
        settings.runner == "V1" or settings.version >= (0, 29, 0)
    )
    estimate = _given(scenario.graph_estimate_gib, estimate)
    context = _given(scenario.context_gib, _context_bytes(settings))
    return Memory(
        total=device.total_bytes,
        free=device.free_bytes - (0 if device.free_is_measured_after_context else context),
        requested=math.ceil(device.total_bytes * settings.utilization),
        overhead=_given(scenario.overhead_gib, _overhead_bytes(settings, text, sampled)),
        activation=_given(
            _named_activation_gib(settings, scenario),
            _activation_bytes(settings, config, vocabulary, sampled, compiled_before),
        ),
        graph_estimate=estimate,
        graph_charged=estimate if charged else 0,
        graphs=_given(scenario.graphs_gib, _graph_bytes(settings, text)),
        sampler=_given(scenario.sampler_gib, 4 * sampled),
    )


def _named_activation_gib(settings: Settings, scenario: Scenario) -> float | None:
    if scenario.activation_mib_per_token is None:
        return scenario.activation_gib
    return scenario.activation_mib_per_token * settings.batched_tokens / 1024


def _given(named_gib: float | None, computed: int) -> int:
    return computed if named_gib is None else int(named_gib * GIB)


def _context_bytes(settings: Settings) -> int:
    if settings.tensor * settings.pipeline == 1:
        return int(0.53 * GIB)
    return int((2.0 if settings.is_moe else 1.5) * GIB)


def _overhead_bytes(settings: Settings, text: Mapping[str, Any], sampled: int) -> int:
    growth = int((0.1 if settings.tensor == 1 else 0.25) * GIB)
    penalties = 4 * sampled + sampled // 8 if settings.runner == "V2" else 0
    return growth + penalties + _expert_workspace(settings, text)


def _expert_workspace(settings: Settings, text: Mapping[str, Any]) -> int:
    if not settings.is_moe:
        return 0
    chosen = int(text.get("num_experts_per_tok") or text.get("experts_per_token") or 1)
    inner = int(text.get("moe_intermediate_size") or text["intermediate_size"])
    if not settings.expert_parallel:
        inner //= settings.tensor * settings.data
    hidden = int(text["hidden_size"])
    return settings.batched_tokens * chosen * (max(inner, hidden) + max(2 * inner, hidden)) * 2


def _activation_bytes(
    settings: Settings,
    config: Mapping[str, Any],
    vocabulary: int,
    sampled: int,
    compiled_before: bool,
) -> int:
    text = text_config(config)
    tokens, ranks = settings.batched_tokens, settings.tensor
    hidden = int(text["hidden_size"])
    inner = int(text.get("intermediate_size") or 4 * hidden)
    query, kv_heads, head_dim = heads(text)
    attention = query * head_dim // ranks
    if settings.is_moe:
        keys = max(1, kv_heads // ranks) * head_dim
        wide = max(attention + 2 * keys + 3 * attention + keys + 2 * hidden, 7 * hidden + attention)
    else:
        wide = 3 * inner // ranks + 2 * hidden + attention
    forward = tokens * 2 * wide
    held = tokens * hidden * 2
    if settings.runner == "V1":
        sampler = (14 if settings.version >= (0, 17, 0) else 38.5) * sampled + held
    elif settings.version >= (0, 33, 0):
        sampler = 8 * sampled + held
    else:
        sampler = (2 if ranks == 1 else 4 + 2 / ranks) * sampled + held
    cold = not compiled_before and ranks == 1 and not settings.eager
    table = vocabulary * hidden * 2 + 2 * held if cold and "vision_config" not in config else 0
    return int(max(forward, sampler, table))


def _graph_bytes(settings: Settings, text: Mapping[str, Any]) -> int:
    """0.15 MiB a captured size and layer, twice that under TP, and a first one."""
    if settings.eager:
        return 0
    sizes = len(settings.captured_sizes)
    sizes += len([size for size in settings.captured_sizes if size <= settings.sequences])
    layers = int(text.get("num_hidden_layers") or 1) / settings.pipeline
    each = 0.15 * MIB * (1 if settings.tensor == 1 else 2)
    return int(64 * MIB + sizes * layers * each)
