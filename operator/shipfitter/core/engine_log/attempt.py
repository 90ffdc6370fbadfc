"""One start of an engine, heard message by message: facts, phases, and what went wrong."""

import re
from collections.abc import Callable, Mapping

from shipfitter.core.engine_log.arguments import (
    Flag,
    commanded_flags,
    configured_flags,
    listed_flags,
)
from shipfitter.core.engine_log.cleaning import Record
from shipfitter.core.engine_log.facts import EngineLog, EngineRefusal
from shipfitter.core.engine_log.lines import statements
from shipfitter.core.engine_log.phases import (
    Phase,
    begins_start,
    frames_of,
    out_of_memory_in,
    phase_begun,
)
from shipfitter.core.engine_log.refusals import OUT_OF_MEMORY, Said, sentences
from shipfitter.core.refusals import Refusal

_GIB, _MIB = 2**30, 2**20
_UNITS = {"b": 1, "k": 2**10, "m": _MIB, "g": _GIB, "t": 2**40}
_WHOLE = frozenset(
    (
        "tensor_parallel_size",
        "max_model_len",
        "derived_max_model_len",
        "kv_cache_tokens",
        "num_gpu_blocks",
        "estimated_max_model_len",
        "block_size",
        "max_num_batched_tokens",
        "max_num_seqs",
        "state_blocks",
        "exit_code",
    )
)
_TEXTS = frozenset(("model", "engine_version", "gpu", "generation", "model_runner"))
# Which of several figures decides: the least of what is left, else the most of what is taken.
_LEAST = frozenset(
    ("kv_cache_memory_gib", "kv_cache_tokens", "num_gpu_blocks", "max_concurrency", "free_gib")
)
_MOST = frozenset(
    ("weights_gib", "activation_peak_gib", "non_torch_gib", "cudagraph_gib", "requested_gib")
)
# What follows from another failure as often as it is one; among themselves in this order.
_CONSEQUENCES = (Refusal.HOST_OUT_OF_MEMORY, Refusal.COMMUNICATION, Refusal.OTHER)
# Refused before a worker starts: a start that went on was not refused so.
_BY_CONFIGURATION = frozenset(
    (
        Refusal.MAX_MODEL_LEN_TOO_LONG,
        Refusal.UNSUPPORTED_ARCHITECTURE,
        Refusal.TOKEN_REQUIRED,
        Refusal.DRIVER_MISMATCH,
    )
)
_WHEN_SERVING = frozenset((*_CONSEQUENCES, Refusal.OUT_OF_MEMORY_SERVING))
_HARMLESS_LEVELS = frozenset(("DEBUG", "INFO", "WARNING"))
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)"
)
_EMPTY_EXCEPTIONS = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|EngineDeadError|"
    r"Engine process failed to start|CancelledError|SystemExit|KeyboardInterrupt"
)
_FLAG_FACTS = ("model", "tensor_parallel_size", "gpu_memory_utilization", "max_model_len")

Value = str | int | float


class Attempt:
    """What has been heard of one start so far."""

    def __init__(self) -> None:
        self._stated: dict[str, list[tuple[int, Value]]] = {}
        self._flags: dict[str, Flag] = {}
        self._resolved: dict[str, Flag] = {}
        self._flags_are_complete = False
        self._phases: dict[str, Phase] = {}
        self._frames: dict[str, set[str]] = {}
        self._failures: list[tuple[str, EngineRefusal]] = []  # of which engine
        self._exception = ""  # the last one that was raised outside the logger's other lines
        self._introduced = False
        self._ranks_heard = 1

    def is_over_before(self, record: Record) -> bool:
        """Whether this message begins another start: an engine introduces itself once more."""
        if not begins_start(record):
            return False
        came_far = max(self._phases.values(), default=Phase.CONFIGURING) >= Phase.PROFILING
        return bool(self._failures) or (
            came_far and self._introduced and not _is_rank_of_many(record)
        )

    def hear(self, record: Record) -> None:
        """Take in one message."""
        self._introduced = self._introduced or begins_start(record)
        if rank := re.search(r"TP(\d{1,3})\b|rank=(\d{1,3})\b", record.speaker):
            self._ranks_heard = max(self._ranks_heard, int(rank[1] or rank[2]) + 1)
        for statement in statements(record):
            self._state(statement.fact, statement.value, statement.rank)
        self._hear_flags(record)
        self._hear_frames(record)
        begun = phase_begun(record)
        if begun is not None:
            self._advance(record.speaker, begun)
        for said in sorted(sentences(record), key=lambda said: said.at):
            self._hear_refusal(record, said)
        self._hear_exception(record)

    def facts(self) -> EngineLog:
        """All of it, each fact by the line that goes before the others."""
        refusal = self._refusal()
        values = {fact: _decided(fact, stated) for fact, stated in self._stated.items()}
        phase = max(self._phases.values(), default=Phase.CONFIGURING)
        return EngineLog(
            **values,  # type: ignore[arg-type]  # the tables name its fields
            flags=dict(self._flags),
            resolved=dict(self._resolved),
            ranks_heard=self._ranks_heard,
            flags_are_complete=self._flags_are_complete,
            started=refusal is None and phase >= Phase.WARMING,
            refusal=refusal,
        )

    def _state(self, fact: str, text: str, rank: int) -> None:
        name, value = _number(fact, text)
        if value is not None:
            self._stated.setdefault(name, []).append((rank, value))

    def _hear_flags(self, record: Record) -> None:
        readers: tuple[tuple[Callable[[str], Mapping[str, Flag] | None], int], ...] = (
            (configured_flags, 1),
            (listed_flags, 2),
        )
        if not record.has_head:
            readers = (*readers, (commanded_flags, 4))
        for read, rank in readers:
            found = next((flags for text in record.texts if (flags := read(text))), None)
            if found is None:
                continue
            if read is configured_flags:
                self._resolved = {**found, **self._resolved}
            elif read is listed_flags:
                self._flags_are_complete = True
                self._flags = {**self._flags, **found}
            else:
                self._flags = {**found, **self._flags}
            self._state_flags(found, rank)

    def _state_flags(self, flags: Mapping[str, Flag], rank: int) -> None:
        for fact in _FLAG_FACTS:
            value = flags.get(fact)
            if fact == "model" and value is None:
                value = flags.get("model_tag")
            if value is None or isinstance(value, bool):
                continue
            # The resolved length stands in the configuration; a flag may say `auto` or 32k.
            self._state(fact, str(value), rank + (1 if fact == "max_model_len" else 0))

    def _hear_frames(self, record: Record) -> None:
        for name in frames_of(record):
            if name:
                self._frames.setdefault(record.speaker, set()).add(name)
            else:
                self._frames[record.speaker] = set()

    def _advance(self, speaker: str, begun: Phase) -> None:
        engine = "" if begun == Phase.SERVING else _engine_of(speaker)
        self._failures = [
            (whose, failure)
            for whose, failure in self._failures
            if not self._survived(whose, failure, engine, begun)
        ]
        self._phases[engine] = max(begun, self._phases.get(engine, Phase.CONFIGURING))

    def _survived(self, whose: str, failure: EngineRefusal, engine: str, begun: Phase) -> bool:
        """Whether the start went on after it: a warning, a second try, a slower way."""
        if begun == Phase.SERVING:
            return self._phases.get("", Phase.CONFIGURING) < Phase.SERVING
        if begun == Phase.INITIALIZED:
            return whose == engine and self._phases.get(engine, begun) < Phase.INITIALIZED
        return begun >= Phase.PROFILING and failure.kind in _BY_CONFIGURATION

    def _phase(self, speaker: str) -> Phase:
        """How far the engine of this speaker is; all serve when the front does."""
        everywhere = self._phases.get("", Phase.CONFIGURING)
        return max(everywhere, self._phases.get(_engine_of(speaker), Phase.CONFIGURING))

    def _hear_refusal(self, record: Record, said: Said) -> None:
        if record.level in _HARMLESS_LEVELS and said.at < record.own_length:
            return
        kind = said.kind
        phase = self._phase(record.speaker)
        if kind == OUT_OF_MEMORY:
            kind = out_of_memory_in(frozenset(self._frames.get(record.speaker, ())), phase)
        kind = Refusal(kind)
        if phase == Phase.SERVING and kind not in _WHEN_SERVING:
            return
        refusal = _refusal(kind, said, self._stated)
        self._failures.append((_engine_of(record.speaker), refusal))
        if kind not in _CONSEQUENCES:
            self._state_refusal(refusal)

    def _state_refusal(self, refusal: EngineRefusal) -> None:
        """The facts that a refusal states, beside those of ordinary lines."""
        memory_of_card = refusal.tried_gib is not None
        for fact in (
            "kv_needed_gib",
            "kv_available_gib",
            "estimated_max_model_len",
            "max_model_len",
            "kv_cache_tokens",
            "free_gib",
            "total_gib",
            "requested_gib",
            "gpu_memory_utilization",
            "tensor_parallel_size",
        ):
            value = getattr(refusal, fact)
            if value is None or (memory_of_card and fact == "free_gib"):
                continue  # free when an allocation failed is not what was free at the start
            rank = 2 if memory_of_card or fact == "tensor_parallel_size" else 1
            self._stated.setdefault(fact, []).append((rank, value))

    def _hear_exception(self, record: Record) -> None:
        text = record.text.strip()
        if record.level in _HARMLESS_LEVELS or not _EXCEPTION.match(text):
            return
        if _EMPTY_EXCEPTIONS.search(text):
            return
        if self._phase(record.speaker) < Phase.SERVING:
            self._exception = " ".join(text.split())[:600]
            failure = EngineRefusal(kind=Refusal.OTHER, message=self._exception)
            self._failures.append((_engine_of(record.speaker), failure))

    def _refusal(self) -> EngineRefusal | None:
        """The cause that was said last; else the likeliest of what looks like a consequence."""
        failures = [failure for _, failure in self._failures]
        causes = [failure for failure in failures if failure.kind not in _CONSEQUENCES]
        if causes:
            return _merged([cause for cause in causes if cause.kind == causes[-1].kind])
        for kind in _CONSEQUENCES:
            for failure in failures:
                if failure.kind == kind:
                    named = kind == Refusal.OTHER and self._exception
                    return EngineRefusal(kind=kind, message=self._exception) if named else failure
        return None


def _is_rank_of_many(record: Record) -> bool:
    return bool(re.search(r"DP\d|rank=", record.speaker))


def _engine_of(speaker: str) -> str:
    """The data-parallel engine that a process belongs to; one name for all without such ranks."""
    found = re.search(r"DP(\d+)", speaker) or re.match(r"EngineCore_(\d+)", speaker)
    return f"DP{found[1]}" if found else ""


def _number(fact: str, text: str) -> tuple[str, Value | None]:
    if fact in _TEXTS:
        return fact, text.strip()
    name, scale = fact, 1.0
    if fact.endswith("_bytes"):
        name, scale = fact.removesuffix("_bytes") + "_gib", 1 / _GIB
    try:
        if fact in _WHOLE:
            return name, int(text.replace(",", ""))
        value = float(text) * scale
        return name, round(value, 2) if scale != 1.0 else value
    except (ValueError, OverflowError):
        return name, None


def _decided(fact: str, stated: list[tuple[int, Value]]) -> Value:
    rank = min(rank for rank, _ in stated)
    values = [value for one, value in stated if one == rank]
    if fact in _LEAST:
        return min(values)
    if fact in _MOST:
        return max(values)
    return values[0]


def _refusal(
    kind: Refusal, said: Said, stated: Mapping[str, list[tuple[int, Value]]]
) -> EngineRefusal:
    figures: dict[str, Value] = {}
    for name, text in said.figures.items():
        value = _size_gib(text) if text[-1:].isalpha() else _number(name, text)[1]
        if value is not None and name != "rest":
            figures[name] = value
    return EngineRefusal(kind=kind, message=said.message, **figures)  # type: ignore[arg-type]


def _size_gib(text: str) -> float | None:
    found = re.fullmatch(r"([\d.]+)\s*([a-zA-Z]+)", text)
    if found is None:
        return None
    return round(float(found[1]) * _UNITS[found[2][0].lower()] / _GIB, 2)


def _merged(same: list[EngineRefusal]) -> EngineRefusal:
    """One refusal said several times, by ranks and along a chain of exceptions: all its figures."""
    fullest = max(same, key=_figures_named)
    names = [name for name in EngineRefusal.__slots__ if name not in ("kind", "message")]
    figures = {
        name: next((v for one in (fullest, *same) if (v := getattr(one, name)) is not None), None)
        for name in names
    }
    told = next((one for one in same if one.max_num_seqs is not None), fullest)
    return EngineRefusal(kind=fullest.kind, message=told.message, **figures)


def _figures_named(refusal: EngineRefusal) -> int:
    return sum(
        getattr(refusal, name) is not None
        for name in EngineRefusal.__slots__
        if name not in ("kind", "message")
    )
