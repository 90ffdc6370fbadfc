"""What a `vllm serve` command asks of the engine: its flags and variables as settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shipfitter.api.engine_args import Argument, PinnedValue, sizing_problem, sizing_value
from shipfitter.api.engine_flags import SIZING_FLAGS, Takes
from shipfitter.api.serve_command import ServeCommand
from shipfitter.api.serve_flags import GONE_SINCE, SINGLES, SWITCHES
from shipfitter.api.serve_notes import unmodelled, unmodelled_bytes
from shipfitter.core.additions import AdapterSlots
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.weights import ParallelLayout
from shipfitter.errors import InvalidSpecError
from shipfitter.units import GIB

_LAYOUT_FIELDS = frozenset(ParallelLayout.__dataclass_fields__)
_LAST_LEGACY, _FIRST_V1 = EngineVersion(0, 7, 3), EngineVersion(0, 8, 0)
_LEGACY_CHOICE = (EngineVersion(0, 7, 0), EngineVersion(0, 11, 0))  # both engines in one release
# Source: vLLM 0.6.4-0.7 vllm/config.py SchedulerConfig; 512 before.
_LEGACY_CHUNKED_TOKENS, _LEGACY_CHUNKED_TOKENS_OLD = 2048, 512
_LEGACY_LARGER_SINCE = EngineVersion(0, 6, 4)
# Source: vLLM 0.9-0.12 vllm/config: one value is the largest size, more are the sizes themselves.
_OLD_GRAPH_SIZES = ("--cuda-graph-sizes", "--cuda_graph_sizes")
# Source: vLLM 0.12 vllm/lora/layers/fused_moe.py (absent in 0.10).
_EXPERT_ADAPTERS_SINCE = EngineVersion(0, 12, 0)
_DTYPES: Mapping[str, str] = {"half": "float16", "float": "float32"}
_KNOWN_DTYPES = ("auto", "bfloat16", "float16", "float32")
_JSON_FLAGS = ("--hf-overrides", "--compilation-config", "--speculative-config", "--eplb-config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """How tokens are drafted."""

    method: str  # mtp, eagle, eagle3, ngram, draft_model, ...; "" where it is not said
    model: str | None
    num_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """All of a command that decides memory."""

    engine: EngineSettings  # as asked; None is the engine's default
    stated_version: EngineVersion  # what the user named; `engine` may count as another
    dtype: str = "auto"
    quantization: str | None = None
    auto_length: bool = False
    long_length_allowed: bool = False
    nodes: int | None = None
    config_overrides: Mapping[str, Any] = field(default_factory=dict)
    whole_attention: bool = False  # --disable-sliding-window
    drafter: Drafter | None = None
    adapters: AdapterSlots | None = None
    offloaded_bytes: int = 0  # of each rank's weights, in host memory
    redundant_experts: int = 0
    assumptions: tuple[str, ...] = ()


def serve_settings(
    command: ServeCommand, version: EngineVersion, environment: Mapping[str, str]
) -> ServeSettings:
    """The settings a command asks for; `environment` holds the engine's variables.

    Raises InvalidSpecError with every value that the engine would not take.
    """
    problems = [problem for a in command.arguments if (problem := _problem(a))]
    problems += _json_problems(command)
    if problems:
        raise InvalidSpecError(tuple(problems))
    counted, notes = _counted_version(version, environment)
    drafter = _drafter(command)
    found = unmodelled(command, environment)
    engine = replace(_engine(command, counted, drafter), extra_bytes=unmodelled_bytes(found))
    overrides, dtype = _config_overrides(command), command.text("--dtype") or "auto"
    gone = sorted({a.flag for a in command.arguments if counted >= _since(GONE_SINCE.get(a.flag))})
    return ServeSettings(
        engine=engine,
        stated_version=version,
        dtype=_DTYPES.get(dtype, dtype),
        quantization=_quantization(command),
        auto_length=(command.text("--max-model-len") or "").lower() in ("auto", "-1"),
        long_length_allowed=_is_set(environment, "VLLM_ALLOW_LONG_MAX_MODEL_LEN"),
        nodes=_count(command, "--nnodes"),
        config_overrides=overrides,
        whole_attention=command.switch("--disable-sliding-window") is True,
        drafter=drafter,
        adapters=_adapters(command, counted),
        offloaded_bytes=int(_number(command, "--cpu-offload-gb") * GIB),
        redundant_experts=_redundant_experts(command),
        assumptions=(
            *notes,
            *(f"vLLM {version} no longer takes {flag}; it is read as left out" for flag in gone),
            *(each.note for each in found),
        ),
    )


def _problem(argument: Argument) -> str | None:
    if argument.flag in SWITCHES and argument.values:
        return None  # the command's own reading took care of True and False
    problem = sizing_problem(argument)
    if problem is None and argument.flag in SINGLES and not argument.values:
        return f"{argument.flag} takes a value, got nothing"
    if argument.flag == "--dtype" and (value := argument.values[0]) not in (
        *_KNOWN_DTYPES, *_DTYPES,
    ):  # fmt: skip
        return f"--dtype takes {', '.join(_KNOWN_DTYPES)}, got {value}"
    return problem


def _json_problems(command: ServeCommand) -> list[str]:
    problems = []
    for argument in command.arguments:
        whole = argument.flag in _JSON_FLAGS and argument.values
        if whole and not _reads_as_json(" ".join(argument.values), argument.flag):
            got = " ".join(argument.values)
            problems.append(f"{argument.flag} takes JSON in quotes, got {got}")
    return problems


def _reads_as_json(text: str, flag: str) -> bool:
    """A compilation config may be a bare level: --compilation-config 3."""
    if flag == "--compilation-config" and text.strip().isdigit():
        return True
    alone = ServeCommand(
        model=None, arguments=(Argument(flag=flag, values=(text,), tokens=(flag, text)),)
    )
    return bool(alone.mapping(flag)) or text.strip() == "{}"


def _counted_version(
    version: EngineVersion, environment: Mapping[str, str]
) -> tuple[EngineVersion, tuple[str, ...]]:
    """The release whose rules hold: some had both engines, and a variable chose."""
    chosen = environment.get("VLLM_USE_V1")
    if chosen is None or not _LEGACY_CHOICE[0] <= version < _LEGACY_CHOICE[1]:
        return version, ()
    if chosen == "0" and version >= _FIRST_V1:
        return _LAST_LEGACY, (f"the engine before V1, counted as vLLM {_LAST_LEGACY}",)
    if chosen == "1" and version < _FIRST_V1:
        return _FIRST_V1, (f"the V1 engine, counted as vLLM {_FIRST_V1}",)
    return version, ()


def _engine(
    command: ServeCommand, version: EngineVersion, drafter: Drafter | None
) -> EngineSettings:
    asked: dict[str, PinnedValue] = {}
    for argument in command.arguments:
        flag = SIZING_FLAGS.get(argument.flag)
        if flag is None:
            continue
        if flag.takes is Takes.NOTHING:
            asked[flag.setting] = command.switch(argument.flag) is True
            continue
        value = sizing_value(flag, argument)
        if value is None:
            asked.pop(flag.setting, None)
        elif argument.tokens[0].partition("=")[0] in _OLD_GRAPH_SIZES and len(value) == 1:  # type: ignore[arg-type]
            asked["max_cudagraph_capture_size"] = value[0]  # type: ignore[index]
        else:
            asked[flag.setting] = value
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
    if settings.rules.legacy_engine and asked.get("enable_chunked_prefill") is True:
        larger = version >= _LEGACY_LARGER_SINCE
        chunk = _LEGACY_CHUNKED_TOKENS if larger else _LEGACY_CHUNKED_TOKENS_OLD
        settings = replace(
            settings, max_num_batched_tokens=settings.max_num_batched_tokens or chunk
        )
    return replace(
        settings,
        num_speculative_tokens=drafter.num_tokens if drafter else 0,
        speculative_method=drafter.method or None if drafter else None,
        mamba_ssm_cache_dtype=command.text("--mamba-ssm-cache-dtype") or "auto",
        language_model_only=settings.language_model_only or _takes_text_only(command),
    )


def _compiled(command: ServeCommand, settings: EngineSettings) -> EngineSettings:
    """Capture sizes and graph modes inside --compilation-config; -O0 is eager."""
    config = command.mapping("--compilation-config")
    sizes, largest = config.get("cudagraph_capture_sizes"), config.get("max_cudagraph_capture_size")
    if isinstance(sizes, list):
        settings = replace(settings, cudagraph_capture_sizes=tuple(int(size) for size in sizes))
    if isinstance(largest, int):
        settings = replace(settings, max_cudagraph_capture_size=largest)
    mode = str(config.get("cudagraph_mode", "")).upper()
    level = str(config.get("mode", config.get("level", ""))).upper()
    stated = command.text("--optimization-level") or command.text("--compilation-config")
    if mode == "NONE" or ((level in ("0", "NONE") or stated == "0") and not mode):
        settings = replace(settings, enforce_eager=True)
    return settings


def _takes_text_only(command: ServeCommand) -> bool:
    """Every modality limited to nothing: the towers are not even loaded.

    Source: vLLM vllm/model_executor/models/interfaces.py SupportsMultiModal, from 0.12 on.
    """
    limits = mm_limits(command)
    return bool(limits) and {"image", "video"} <= set(limits) and not any(limits.values())


def mm_limits(command: ServeCommand) -> dict[str, int]:
    """Items of each modality one prompt may hold, in both spellings (JSON, image=4,video=0)."""
    limits = command.mapping("--limit-mm-per-prompt")
    text = command.text("--limit-mm-per-prompt") or ""
    if not limits and "=" in text:
        limits = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    counts = {
        name: limit.get("count", 1) if isinstance(limit, Mapping) else limit
        for name, limit in limits.items()
    }
    return {name: int(count) for name, count in counts.items() if str(count).isdigit()}


def _quantization(command: ServeCommand) -> str | None:
    stated = command.text("--quantization")
    if command.text("--load-format") == "bitsandbytes":
        return stated or "bitsandbytes"
    return None if stated in (None, "None", "none") else stated


def _config_overrides(command: ServeCommand) -> Mapping[str, Any]:
    overrides = command.mapping("--hf-overrides")
    if scaling := command.mapping("--rope-scaling"):
        overrides["rope_scaling"] = scaling
    return overrides


def _drafter(command: ServeCommand) -> Drafter | None:
    config = command.mapping("--speculative-config")
    tokens = (
        _count(command, "--spec-tokens")
        or _count(command, "--num-speculative-tokens")
        or config.get("num_speculative_tokens")
    )
    method = command.text("--spec-method") or config.get("method") or ""
    model = (
        command.text("--spec-model") or command.text("--speculative-model") or config.get("model")
    )
    if not (tokens or method or model):
        return None
    if model == "[ngram]":
        method, model = "ngram", None
    return Drafter(method=str(method), model=model, num_tokens=int(tokens or 1))


def _adapters(command: ServeCommand, version: EngineVersion) -> AdapterSlots | None:
    if command.switch("--enable-lora") is not True:
        return None
    return AdapterSlots(
        max_loras=_count(command, "--max-loras") or 1,
        max_rank=_count(command, "--max-lora-rank") or 16,
        fully_sharded=command.switch("--fully-sharded-loras") is True,
        on_experts=version >= _EXPERT_ADAPTERS_SINCE,
    )


def _redundant_experts(command: ServeCommand) -> int:
    if command.switch("--enable-eplb") is not True:
        return 0
    config = command.mapping("--eplb-config")
    stated = config.get("num_redundant_experts") or _count(command, "--num-redundant-experts")
    return int(stated or 0)


def _count(command: ServeCommand, flag: str) -> int | None:
    text = command.text(flag)
    return int(text) if text is not None and text.isdigit() else None


def _number(command: ServeCommand, flag: str) -> float:
    try:
        return float(command.text(flag) or 0)
    except ValueError:
        return 0.0


def _since(release: tuple[int, int] | None) -> EngineVersion:
    return EngineVersion(*(release or (999, 0)), 0)


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "0").lower() in ("1", "true")
