"""The model a command names: from a file of facts, a folder, what comes with us, or the hub."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shipfitter.api.serve_settings import ServeSettings
from shipfitter.core.additions import (
    with_adapter_slots,
    with_redundant_experts,
    with_weights_in_host_memory,
    without_windows,
)
from shipfitter.core.loading import loaded_as
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.errors import InvalidSpecError, ModelNotFoundError
from shipfitter.hub import Checkpoint
from shipfitter.known_models import known_config

HUB_TIMEOUT_SECONDS = 20.0


def estimated_model(
    name: str | None, settings: ServeSettings, *, facts_file: Path | None, revision: str | None
) -> ModelFacts:
    """The facts of the model as the command's flags make the engine load it.

    Raises InvalidSpecError, UnknownArchitectureError, or what the hub refuses.
    """
    checkpoint = _checkpoint(name, facts_file=facts_file, revision=revision)
    config = _overridden(checkpoint.config, settings.config_overrides)
    facts = model_facts(
        config,
        name=checkpoint.name,
        tensors=checkpoint.tensors,
        checkpoint_bytes=checkpoint.stored_bytes,
        revision=checkpoint.revision,
    )
    facts = loaded_as(facts, dtype=settings.dtype, quantization=settings.quantization)
    if settings.whole_attention:
        facts = without_windows(facts)
    if settings.redundant_experts:
        facts = with_redundant_experts(facts, settings.redundant_experts)
    if settings.adapters is not None:
        facts = with_adapter_slots(facts, settings.adapters)
    if settings.offloaded_bytes:
        facts = with_weights_in_host_memory(facts, settings.engine.layout, settings.offloaded_bytes)
    return facts


def _checkpoint(name: str | None, *, facts_file: Path | None, revision: str | None) -> Checkpoint:
    if facts_file is not None:
        return _from_file(facts_file, name)
    if name is None:
        raise InvalidSpecError(
            ("the command names no model: write it after `vllm serve`, or give --model-facts",)
        )
    return checkpoint_of(name, revision=revision)


def checkpoint_of(name: str, *, revision: str | None = None, offline: bool = False) -> Checkpoint:
    """What a folder, our own list or the hub holds of a name. Raises what the hub refuses."""
    if Path(name).is_dir():
        from shipfitter.hub import read_checkpoint

        return read_checkpoint(name, name=name)
    if name.startswith(("/", "./", "../")):
        raise ModelNotFoundError(f"{name}: no such folder; give --model-facts, or a folder's path")
    known = known_config(name)
    if known is not None and revision in (None, "main"):
        config, weights_bytes = known
        return Checkpoint(name=name, config=config, stored_bytes=weights_bytes)
    if offline:
        raise ModelNotFoundError(f"{name} is not known without a hub")
    from shipfitter.hub import fetch_checkpoint

    return fetch_checkpoint(
        name,
        revision=revision,
        endpoint=os.environ.get("HF_ENDPOINT"),
        token=os.environ.get("HF_TOKEN"),
        timeout_seconds=HUB_TIMEOUT_SECONDS,
    )


def _from_file(path: Path, name: str | None) -> Checkpoint:
    """{"config": {...}, "weights": {"total_bytes": N}}; the bytes may be absent."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSpecError((f"--model-facts {path}: {error.strerror}",)) from error
    except ValueError as error:
        raise InvalidSpecError((f"--model-facts {path}: not JSON: {error}",)) from error
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise InvalidSpecError(
            (
                f'--model-facts {path}: has no "config"; write {{"config": {{...}}, "weights": '
                '{"total_bytes": N}}, the content of config.json and the size of the weight files',
            )
        )
    weights = content.get("weights")
    total_bytes = weights.get("total_bytes") if isinstance(weights, dict) else None
    if total_bytes is not None and (not isinstance(total_bytes, int) or total_bytes <= 0):
        raise InvalidSpecError(
            (f"--model-facts {path}: weights.total_bytes is a number of bytes, got {total_bytes}",)
        )
    stated = content.get("model")
    return Checkpoint(
        name=name or (stated if isinstance(stated, str) else path.stem),
        config=config,
        stored_bytes=total_bytes,
    )


def _overridden(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config with --hf-overrides on top; nested objects are merged key by key.

    Source: vLLM vllm/transformers_utils/config.py get_config.
    """
    merged = dict(config)
    for key, value in overrides.items():
        present = merged.get(key)
        nested = isinstance(present, Mapping) and isinstance(value, Mapping)
        merged[key] = _overridden(present, value) if nested else value  # type: ignore[arg-type]
    return merged
