"""Engine settings as status keeps them: sizes by name, the rest only where it is not usual."""

import json
from dataclasses import asdict, fields, replace
from typing import Any

from shipfitter.api.model_deployment_status import VariantStatus
from shipfitter.core.capture import capture_sizes
from shipfitter.core.engines import EngineSettings, EngineVersion, Learnt
from shipfitter.core.estimate import Estimate
from shipfitter.core.weights import ParallelLayout

# Settings that every record holds under a name of its own.
_NAMED = (
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "enable_prefix_caching",
    "max_cudagraph_capture_size",
    "async_scheduling",
    "model_runner",
)
_OTHERWISE_NAMED = ("version", "layout", "block_size", "cudagraph_capture_sizes")


def settings_record(settings: EngineSettings) -> dict[str, Any]:
    """The fields of a VariantStatus that hold the settings."""
    layout = settings.layout
    record: dict[str, Any] = {name: getattr(settings, name) for name in _NAMED}
    record |= {
        "engine_version": str(settings.version),
        "tensor_parallel_size": layout.tensor_parallel_size,
        "pipeline_parallel_size": layout.pipeline_parallel_size,
        "attention_block_size": settings.block_size,
    }
    unusual = _unusual(settings, EngineSettings(version=settings.version), _setting_names())
    unusual |= _unusual(layout, ParallelLayout(), _layout_names())
    if unusual:
        record["settings"] = {name: _text(value) for name, value in sorted(unusual.items())}
    if settings.cudagraph_capture_sizes != _usual_sizes(settings):
        record["cudagraph_capture_sizes"] = settings.cudagraph_capture_sizes
    return record


def _setting_names() -> tuple[str, ...]:
    names = (field.name for field in fields(EngineSettings))
    return tuple(name for name in names if name not in (*_NAMED, *_OTHERWISE_NAMED))


def _layout_names() -> tuple[str, ...]:
    sizes = ("tensor_parallel_size", "pipeline_parallel_size")
    return tuple(field.name for field in fields(ParallelLayout) if field.name not in sizes)


def _unusual(value: object, usual: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: getattr(value, name) for name in names if getattr(value, name) != getattr(usual, name)
    }


def _usual_sizes(settings: EngineSettings) -> tuple[int, ...] | None:
    """The capture list that follows from the largest size."""
    if settings.enforce_eager:
        return ()
    largest, seqs = settings.max_cudagraph_capture_size, settings.max_num_seqs
    if largest is None or seqs is None or settings.max_num_batched_tokens is None:
        return None
    return capture_sizes(
        largest=largest,
        fine_steps=settings.rules.fine_capture_steps,
        max_num_seqs=seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        tokens_per_sequence=settings.tokens_per_sequence,
    )


def read_settings(record: VariantStatus) -> EngineSettings:
    """The settings. Raises UnknownEngineError for a release we do not know.

    A setting that only a newer release of ours knows is passed over: a downgrade rolls nothing.
    """
    unusual = {name: _value(name, text) for name, text in (record.settings or {}).items()}
    layout = ParallelLayout(
        tensor_parallel_size=record.tensor_parallel_size,
        pipeline_parallel_size=record.pipeline_parallel_size,
        **{name: unusual[name] for name in _layout_names() if name in unusual},
    )
    settings = EngineSettings(
        version=EngineVersion.parse(record.engine_version or ""),
        layout=layout,
        block_size=record.attention_block_size,
        cudagraph_capture_sizes=record.cudagraph_capture_sizes,
        **{name: getattr(record, name) for name in _NAMED},
        **{name: unusual[name] for name in _setting_names() if name in unusual},
    )
    if record.cudagraph_capture_sizes is None:
        return replace(settings, cudagraph_capture_sizes=_usual_sizes(settings))
    return settings


def _text(value: Any) -> str:
    return json.dumps(asdict(value) if isinstance(value, Estimate | Learnt) else value)


# Settings that are small records of their own.
_RECORDS = {"extra_bytes": Estimate, "calibrated": Learnt}


def _value(name: str, text: str) -> Any:
    value = json.loads(text)
    if name in _RECORDS and isinstance(value, dict):
        return _RECORDS[name](**value)
    return tuple(value) if isinstance(value, list) else value
