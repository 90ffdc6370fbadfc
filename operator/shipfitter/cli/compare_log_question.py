"""The command that a log belongs to, asked as `shipfitter estimate` would be asked it."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from shipfitter.api.serve_flags import EVERY_FLAG, LISTS, SWITCHES
from shipfitter.cli.estimate import Question
from shipfitter.core.engine_log import EngineLog, Flag
from shipfitter.core.gpus import products, resolve_product
from shipfitter.core.refusals import Refusal
from shipfitter.errors import InvalidSpecError
from shipfitter.units import MIB

_MIB_PER_GIB = 1024
_RELEASE = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)")
# A total this far from the catalogue's is the same card; two decimals of GiB are 5 MiB already.
_SAME_TOTAL_MIB = 32
# What the engine's configuration states as it resolved it; asked for where no flag was listed.
_RESOLVED = ("pipeline_parallel_size", "data_parallel_size", "kv_cache_dtype", "enforce_eager")
_UNSAID = (None, "", False)
# Flags that name files or modules of the machine the log comes from.
_THERE = frozenset(("--config", "--chat-template", "--download-dir", "--model", "--revision"))


def question_of(
    log: EngineLog,
    *,
    gpu: str | None,
    gpu_memory_mib: float | None,
    engine_version: str | None,
    model_facts: Path | None,
) -> tuple[Question, tuple[str, ...]]:
    """What to ask, and what had to be guessed. Raises InvalidSpecError naming what is missing."""
    version, guessed = _version(log, engine_version)
    if log.model is None and model_facts is None:
        raise InvalidSpecError(("the log names no model: give --model-facts",))
    if not log.flags_are_complete and not log.resolved and not log.flags:
        guessed = (*guessed, "the log lists no flags: the engine's defaults")
    ranks = log.tensor_parallel_size
    if ranks is None and not log.flags_are_complete and log.ranks_heard > 1:
        ranks = log.ranks_heard
        guessed = (*guessed, f"tensor parallel {ranks}: as many ranks speak")
    memory_mib = gpu_memory_mib or _total_mib(log)
    card, seen = _card(log, gpu, memory_mib)
    question = Question(
        words=("vllm", "serve", log.model or "model", *_flags(log, ranks)),
        gpu=card,
        gpu_memory_mib=memory_mib,
        gpu_free_memory_mib=_free_mib(log),
        engine_version=version,
        model_facts=model_facts,
        environment=tuple(_environment(log)),
    )
    return question, (*guessed, *seen)


def _version(log: EngineLog, given: str | None) -> tuple[str | None, tuple[str, ...]]:
    stated = given or log.engine_version
    found = _RELEASE.match(stated or "")
    if found is None or found[1].startswith("0.1."):  # builds without tags call themselves 0.1
        return None, ("the log names no release: counted as the newest (else --engine-version)",)
    return found[1], ()


def _total_mib(log: EngineLog) -> float | None:
    """The card's memory: stated, or what the engine asked for divided by the share it asks for."""
    if log.total_gib is not None:
        return log.total_gib * _MIB_PER_GIB
    if log.requested_gib and log.gpu_memory_utilization:
        return log.requested_gib / log.gpu_memory_utilization * _MIB_PER_GIB
    return None


def _card(
    log: EngineLog, given: str | None, memory_mib: float | None
) -> tuple[str, tuple[str, ...]]:
    """The product: as given, as some line spells it, or the only one with this total."""
    if given is not None:
        return given, ()
    if log.gpu is not None and (row := resolve_product(log.gpu.replace("_", " "))) is not None:
        return row.product, ()
    if memory_mib is None:
        raise InvalidSpecError(("the log names no GPU and no total memory: give --gpu",))
    near = [
        row for row in products() if abs(row.cuda_total_bytes / MIB - memory_mib) < _SAME_TOTAL_MIB
    ]
    if near and len({row.compute_capability for row in near}) == 1:
        return near[0].product, (f"the GPU by its memory: {near[0].product} (else --gpu)",)
    return "unknown", ("the log names no GPU: known by its memory alone (else --gpu)",)


def _free_mib(log: EngineLog) -> float | None:
    """Others on the card: asked only where that is what the log is about."""
    if log.outcome != Refusal.FREE_MEMORY or log.free_gib is None:
        return None
    return log.free_gib * _MIB_PER_GIB


def _environment(log: EngineLog) -> Iterator[str]:
    if log.generation == "V0":
        yield "VLLM_USE_V1=0"
    if log.model_runner == "V2":
        yield "VLLM_USE_V2_MODEL_RUNNER=1"


def _flags(log: EngineLog, ranks: int | None) -> Iterator[str]:
    """The flags of the run; where the log lists none, what it says the engine resolved."""
    said: dict[str, Flag] = {_flag(name): value for name, value in log.flags.items()}
    stated: dict[str, Flag] = {
        "--tensor-parallel-size": ranks,
        "--gpu-memory-utilization": log.gpu_memory_utilization,
        "--max-num-batched-tokens": log.max_num_batched_tokens,
        "--max-model-len": log.max_model_len,
    }
    if not log.flags_are_complete:
        stated |= {_flag(name): log.resolved.get(name) for name in _RESOLVED}
    for flag, value in stated.items():
        if said.get(flag) is None:
            said[flag] = value
    for flag, value in said.items():
        if flag in EVERY_FLAG and flag not in _THERE:
            yield from _words(flag, value)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _words(flag: str, value: Flag) -> Iterator[str]:
    if flag in SWITCHES:
        if value in (True, "True"):
            yield flag
        elif value is False and flag == "--enable-prefix-caching":
            yield "--no-enable-prefix-caching"
        return
    if value in _UNSAID or value is True or (value == "auto" and flag != "--max-model-len"):
        return
    text = str(value)
    if text[:1] in "{[":
        yield from _literal_words(flag, text)
    elif text[:1] not in "<(":
        yield f"{flag}={text}"


def _literal_words(flag: str, text: str) -> Iterator[str]:
    """What Python prints of a mapping as JSON, of a list as words; nothing for other objects."""
    try:
        value = ast.literal_eval(text)
        if isinstance(value, dict):
            yield f"{flag}={json.dumps(value)}"
        elif flag in LISTS:
            yield from (flag, *(str(item) for item in value))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return
