"""The part of the start that plans the cache: what it says and what it refuses.

Source: vLLM 0.33 vllm/v1/core/kv_cache_planning.py, vllm/config/compilation.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from world.engine import wording
from world.engine.cache import Cache
from world.engine.engine_logging import EngineLog
from world.engine.planner import CacheFull, NoBlocks, Plan, plan
from world.engine.refused import Refused
from world.engine.settings import Settings


def planned_cache(
    log: EngineLog,
    settings: Settings,
    kept: Cache,
    available: Sequence[int],
    given: Mapping[str, Any],
) -> Plan:
    """The plan, said as the engine says it; Refused where one request or one state does not fit."""
    _say_alignment(log, kept)
    try:
        planned = plan(
            kept.layers,
            kept.rules,
            available=available,
            length=settings.length,
            auto_fit=settings.auto_fit,
            blocks_override=given.get("num_gpu_blocks_override"),
        )
    except CacheFull as refusal:
        text = wording.cache_full(refusal, settings.version)
        raise Refused("planner", f"ValueError: {text}") from None
    except NoBlocks:
        nothing_left = min(available) <= 0 or not settings.auto_fit
        text = wording.no_blocks(settings.version) if nothing_left else wording.cannot_fit()
        raise Refused("planner", f"ValueError: {text}") from None
    origin = "v1.core.kv_cache_planning:1102"
    if settings.auto_fit:
        log.say(origin, wording.auto_fitted(settings.length, planned.length, min(available)))
    for line in wording.cache_lines(planned, settings.version):
        log.say(origin, line)
    _check_states(settings, kept, planned)
    return planned


def bytes_of_blocks(planned: Plan) -> int:
    """What the blocks take on a rank of the first stage."""
    per_block = (
        sum(layer.page_bytes for layer in group if layer.stage == 0) for group in planned.groups
    )
    return planned.blocks * max(per_block, default=0)


def _say_alignment(log: EngineLog, kept: Cache) -> None:
    if kept.padding_percent is None:
        return
    log.say(
        "platforms.interface:604",
        f"Setting attention block size to {kept.attention_block} tokens to ensure that "
        "attention page size is >= mamba page size.",
    )
    log.say(
        "platforms.interface:628",
        f"Padding mamba page size by {kept.padding_percent:.2f}% to ensure that mamba page "
        "size and attention page size are exactly equal.",
    )


def _check_states(settings: Settings, kept: Cache, planned: Plan) -> None:
    has_states = any(layer.kind == "mamba" for layer in kept.layers)
    if not has_states or settings.eager or settings.version < (0, 20, 0):
        return
    if settings.sequences > planned.blocks:
        text = wording.too_few_states(settings.sequences, planned.blocks)
        raise Refused("states", f"ValueError: {text}")
