"""What a `vllm serve` command asks for, as far as it decides memory."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shipfitter.api.engine_args import Argument
from shipfitter.api.serve_command import ServeCommand, is_json, read_object
from shipfitter.api.serve_engine import (
    Drafter,
    bytes_with_unit,
    drafter_of,
    engine_settings,
    value_problem,
)
from shipfitter.api.serve_flags import GONE_SINCE, SINGLES, SWITCHES
from shipfitter.api.serve_notes import unmodelled, unmodelled_bytes
from shipfitter.core.additions import AdapterSlots
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.errors import InvalidSpecError
from shipfitter.units import GIB

_HAD_NEXT_ENGINE, _FIRST_V1 = EngineVersion(0, 7, 0), EngineVersion(0, 8, 0)
# Source: vLLM 0.12 vllm/lora/layers/fused_moe.py (absent in 0.10).
_EXPERT_ADAPTERS_SINCE = EngineVersion(0, 12, 0)
_DTYPES: Mapping[str, str] = {"half": "float16", "float": "float32"}
_KNOWN_DTYPES = ("auto", "bfloat16", "float16", "float32")
_OBJECTS = (
    "--hf-overrides",
    "--compilation-config",
    "--speculative-config",
    "--eplb-config",
    "--rope-scaling",
)
# What some releases take bare: --compilation-config 3, --speculative-config mtp in reports.
_BARE = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """All of a command that decides memory."""

    engine: EngineSettings  # as asked; None is the engine's default
    dtype: str = "auto"
    quantization: str | None = None
    auto_length: bool = False
    long_length_allowed: bool = False
    nodes: int | None = None
    config_overrides: Mapping[str, Any] = field(default_factory=dict)
    whole_attention: bool = False  # --disable-sliding-window
    performance_mode: str = "balanced"
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
    problems = tuple(problem for a in command.arguments for problem in _problems(a))
    if problems:
        raise InvalidSpecError(problems)
    counted, notes = _counted_version(version, environment)
    drafter = drafter_of(command)
    found = unmodelled(command, environment)
    engine = engine_settings(command, counted, environment, drafter)
    dtype = command.text("--dtype") or "auto"
    return ServeSettings(
        engine=replace(engine, extra_bytes=unmodelled_bytes(found)),
        dtype=_DTYPES.get(dtype, dtype),
        quantization=_quantization(command),
        auto_length=(command.text("--max-model-len") or "").lower() in ("auto", "-1"),
        long_length_allowed=environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") in ("1", "true"),
        nodes=command.count("--nnodes"),
        config_overrides=_config_overrides(command),
        whole_attention=command.switch("--disable-sliding-window") is True,
        performance_mode=command.text("--performance-mode") or "balanced",
        drafter=drafter,
        adapters=_adapters(command, counted),
        offloaded_bytes=int(command.number("--cpu-offload-gb") * GIB),
        redundant_experts=_redundant_experts(command),
        assumptions=(
            *notes,
            *dict.fromkeys(_as_read(command, version)),
            *(each.note for each in found if each.note),
        ),
    )


def _problems(argument: Argument) -> Iterator[str]:
    text = " ".join(argument.values)
    if argument.flag in SWITCHES:
        return  # the command's own reading took care of True and False
    if argument.flag in SINGLES and not argument.values:
        yield f"{argument.flag} takes a value, got nothing"
    elif problem := value_problem(argument):
        yield problem
    elif argument.flag == "--dtype" and text not in (*_KNOWN_DTYPES, *_DTYPES):
        yield f"--dtype takes {', '.join(_KNOWN_DTYPES)}, got {text}"
    elif argument.flag in _OBJECTS and read_object(text) is None and not _BARE.fullmatch(text):
        yield f"{argument.flag} takes JSON in quotes, got {text}"


def _as_read(command: ServeCommand, version: EngineVersion) -> Iterator[str]:
    """Values and flags that the engine itself would not take as they stand."""
    for argument in command.arguments:
        text = " ".join(argument.values)
        written = argument.tokens[0].partition("=")[0].replace("_", "-")
        release = GONE_SINCE.get(written) or GONE_SINCE.get(argument.flag)
        if release and version >= EngineVersion(*release, 0):
            yield f"vLLM {version} no longer takes {written}"
        if bytes_with_unit(argument):
            yield f"{argument.flag} {text}: the engine takes a whole number, like 8G"
        if argument.flag in _OBJECTS and not is_json(text):
            yield f"{argument.flag} {text}: the engine takes JSON in quotes"


def _counted_version(
    version: EngineVersion, environment: Mapping[str, str]
) -> tuple[EngineVersion, tuple[str, ...]]:
    """The release whose rules hold: 0.7 had the next engine in it, and a variable chose."""
    chosen = environment.get("VLLM_USE_V1") == "1"
    if chosen and _HAD_NEXT_ENGINE <= version < _FIRST_V1:
        return _FIRST_V1, (f"the V1 engine, counted as vLLM {_FIRST_V1}",)
    return version, ()


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


def _adapters(command: ServeCommand, version: EngineVersion) -> AdapterSlots | None:
    if command.switch("--enable-lora") is not True:
        return None
    return AdapterSlots(
        max_loras=command.count("--max-loras") or 1,
        max_rank=command.count("--max-lora-rank") or 16,
        fully_sharded=command.switch("--fully-sharded-loras") is True,
        on_experts=version >= _EXPERT_ADAPTERS_SINCE,
    )


def _redundant_experts(command: ServeCommand) -> int:
    if command.switch("--enable-eplb") is not True:
        return 0
    stated = command.mapping("--eplb-config").get("num_redundant_experts")
    return int(stated or command.count("--num-redundant-experts") or 0)
