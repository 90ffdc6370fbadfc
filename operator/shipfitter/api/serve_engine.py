"""The engine's settings in a `vllm serve` command: flags and variables, each under our own name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.api.engine_args import (
    Argument,
    PinnedValue,
    parse_integer,
    sizing_problem,
    sizing_value,
)
from shipfitter.api.engine_flags import SIZING_FLAGS, Takes
from shipfitter.api.serve_command import ServeCommand
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB, MIB

_LAYOUT_FIELDS = frozenset(ParallelLayout.__dataclass_fields__)
# Source: vLLM 0.6.4-0.7 vllm/config.py SchedulerConfig; 512 before.
_LEGACY_CHUNKED_TOKENS, _LEGACY_CHUNKED_TOKENS_OLD = 2048, 512
_LEGACY_LARGER_SINCE = EngineVersion(0, 6, 4)
# Source: vLLM 0.9-0.12 vllm/config: one value is the largest size, more are the sizes themselves.
_OLD_GRAPH_SIZES = ("--cuda-graph-sizes", "--cuda_graph_sizes")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([GM])(i?)B\s*")
_MODALITIES = ("image", "video", "audio")
_LIMIT = re.compile(r"(image|video|audio)\W+(?:count\W+)?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """How tokens are drafted."""

    method: str  # mtp, eagle, eagle3, ngram, draft_model, ...; "" where it is not said
    model: str | None
    num_tokens: int
    tensor_parallel_size: int | None = None  # None: the model's


def engine_settings(
    command: ServeCommand,
    version: EngineVersion,
    environment: Mapping[str, str],
    drafter: Drafter | None,
) -> EngineSettings:
    """The settings as asked; what is not asked stays None."""
    asked = _sized(command)
    layout = {name: asked.pop(name) for name in tuple(asked) if name in _LAYOUT_FIELDS}
    settings = EngineSettings(
        version=version,
        layout=ParallelLayout(
            **layout,  # type: ignore[arg-type]
            encoder_data_parallel=command.text("--mm-encoder-tp-mode") == "data",
        ),
        **asked,  # type: ignore[arg-type]
    )
    settings = _compiled(command, settings)
    settings = _by_environment(settings, environment)
    legacy = settings.rules.legacy_engine or settings.legacy_engine is True
    if legacy and asked.get("enable_chunked_prefill") is True:
        larger = version >= _LEGACY_LARGER_SINCE
        chunk = _LEGACY_CHUNKED_TOKENS if larger else _LEGACY_CHUNKED_TOKENS_OLD
        tokens = settings.max_num_batched_tokens or chunk
        settings = replace(settings, max_num_batched_tokens=tokens)
    backend = command.text("--attention-backend") or command.mapping("--attention-config").get(
        "backend", environment.get("VLLM_ATTENTION_BACKEND")
    )
    return replace(
        settings,
        num_speculative_tokens=drafter.num_tokens if drafter else 0,
        speculative_method=(drafter.method or None) if drafter else None,
        mamba_ssm_cache_dtype=command.text("--mamba-ssm-cache-dtype") or "auto",
        attention_backend=backend.upper() if isinstance(backend, str) else None,
        custom_all_reduce=command.switch("--disable-custom-all-reduce") is not True,
        **_modalities(command, settings),
    )


def _sized(command: ServeCommand) -> dict[str, PinnedValue]:
    """Every sizing flag by the name of its setting; the last mention wins."""
    asked: dict[str, PinnedValue] = {}
    for argument in command.arguments:
        flag = SIZING_FLAGS.get(argument.flag)
        if flag is None:
            continue
        if flag.takes is Takes.NOTHING:
            asked[flag.setting] = command.switch(argument.flag) is True
            continue
        value = bytes_with_unit(argument) or sizing_value(flag, argument)
        old_name = argument.tokens[0].partition("=")[0] in _OLD_GRAPH_SIZES
        if value is None:
            asked.pop(flag.setting, None)
        elif old_name and isinstance(value, tuple) and len(value) == 1:
            asked["max_cudagraph_capture_size"] = value[0]
        else:
            asked[flag.setting] = value
    return asked


def bytes_with_unit(argument: Argument) -> int | None:
    """Bytes written for people, "8 GiB", where the engine takes 8G; None for anything else."""
    if argument.flag != "--kv-cache-memory-bytes":
        return None
    found = _SIZE.fullmatch(" ".join(argument.values))
    if not found:
        return None
    unit = {"Gi": GIB, "Mi": MIB, "G": 10**9, "M": 10**6}[found[2] + found[3]]
    return int(float(found[1]) * unit)


def value_problem(argument: Argument) -> str | None:
    """What is wrong with the value of a sizing flag; None where nothing is."""
    return None if bytes_with_unit(argument) else sizing_problem(argument)


def _by_environment(settings: EngineSettings, environment: Mapping[str, str]) -> EngineSettings:
    """Variables that choose between two ways of counting.

    Source: vLLM vllm/envs.py.
    """
    runner = _chosen(environment, "VLLM_USE_V2_MODEL_RUNNER")
    newer = _chosen(environment, "VLLM_USE_V1")
    partition = environment.get("VLLM_PP_LAYER_PARTITION", "")
    counts = tuple(int(part) for part in partition.split(",") if part.strip().isdigit())
    return replace(
        settings,
        model_runner=None if runner is None else "V2" if runner else "V1",
        legacy_engine=None if newer is None else not newer,
        estimates_graphs=_chosen(environment, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"),
        flashinfer_sampler=_chosen(environment, "VLLM_USE_FLASHINFER_SAMPLER"),
        layout=replace(settings.layout, pipeline_partition=counts),
    )


def _chosen(environment: Mapping[str, str], name: str) -> bool | None:
    stated = environment.get(name, "")
    return None if stated == "" else stated.lower() in ("1", "true")


def _compiled(command: ServeCommand, settings: EngineSettings) -> EngineSettings:
    """Capture sizes and graph modes of --compilation-config and -O.

    Source: vLLM vllm/config/compilation.py, vllm/config/vllm.py OptimizationLevel.
    """
    config = command.mapping("--compilation-config")
    sizes, largest = config.get("cudagraph_capture_sizes"), config.get("max_cudagraph_capture_size")
    if isinstance(sizes, list) and all(isinstance(size, int) for size in sizes):
        settings = replace(settings, cudagraph_capture_sizes=tuple(sizes))
    if isinstance(largest, int):
        settings = replace(settings, max_cudagraph_capture_size=largest)
    level = str(
        command.text("--optimization-level")
        or config.get("mode", config.get("level", command.text("--compilation-config") or ""))
    ).upper()
    mode = _graph_mode(config, level)
    if mode == "NONE":
        return replace(settings, enforce_eager=True)
    return replace(settings, cudagraph_mode=mode)


def _graph_mode(config: Mapping[str, Any], level: str) -> str | None:
    if config.get("cudagraph_mode"):
        return str(config["cudagraph_mode"]).upper()
    if config.get("use_cudagraph") is False or level in ("0", "NONE"):
        return "NONE"
    if config.get("full_cuda_graph") is True:
        return "FULL"
    return "PIECEWISE" if level == "1" else None


def _modalities(command: ServeCommand, settings: EngineSettings) -> dict[str, Any]:
    """Items a prompt may hold; where none of any kind, the towers are not even loaded.

    Source: vLLM vllm/model_executor/models/interfaces.py SupportsMultiModal, from 0.12 on.
    """
    limits = mm_limits(command)
    text_only = {"image", "video"} <= set(limits) and not any(limits.values())
    profiled = limits or None
    if command.switch("--skip-mm-profiling") is True:
        profiled = dict.fromkeys(_MODALITIES, 0)
    return {
        "items_per_prompt": profiled,
        "language_model_only": settings.language_model_only or text_only,
    }


def mm_limits(command: ServeCommand) -> dict[str, int]:
    """Items of each modality one prompt may hold, however they are written."""
    text = command.text("--limit-mm-per-prompt") or ""
    limits = {name: int(count) for name, count in _LIMIT.findall(text)}
    for name, limit in command.mapping("--limit-mm-per-prompt").items():
        count = limit.get("count", 1) if isinstance(limit, Mapping) else limit
        if isinstance(count, int):
            limits[name] = count
    return limits


def drafter_of(command: ServeCommand) -> Drafter | None:
    """How the command drafts tokens, in any of the three spellings; None where it does not."""
    config = command.mapping("--speculative-config")
    bare = command.text("--speculative-config") or ""
    tokens = next(_counts(command, config), None)
    method = command.text("--spec-method") or config.get("method")
    if method is None and re.fullmatch(r"\w+", bare):
        method = bare
    model = command.text("--spec-model") or command.text("--speculative-model")
    model = model or config.get("model")
    if not (tokens or method or model):
        return None
    if model == "[ngram]":
        method, model = "ngram", None
    ranks = config.get("draft_tensor_parallel_size")
    return Drafter(
        method=str(method or ""),
        model=model,
        num_tokens=tokens or 1,
        tensor_parallel_size=ranks if isinstance(ranks, int) else None,
    )


def _counts(command: ServeCommand, config: Mapping[str, Any]) -> Iterator[int]:
    for flag in ("--spec-tokens", "--num-speculative-tokens"):
        if (count := command.count(flag)) is not None:
            yield count
    stated = parse_integer(str(config.get("num_speculative_tokens", "")))
    if stated is not None:
        yield stated
