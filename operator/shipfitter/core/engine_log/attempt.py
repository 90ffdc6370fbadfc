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
from shipfitter.core.engine_log.failures import CONSEQUENCES, refusal_said, root_cause
from shipfitter.core.engine_log.figures import Value, decided, figure
from shipfitter.core.engine_log.lines import statements
from shipfitter.core.engine_log.phases import (
    Phase,
    begins_start,
    frames_of,
    is_stopping,
    out_of_memory_in,
    phase_begun,
)
from shipfitter.core.engine_log.refusals import OUT_OF_MEMORY, Said, sentences
from shipfitter.core.refusals import Refusal

# Refused before a worker starts: a start that went on was not refused so.
_BY_CONFIGURATION = frozenset(
    (
        Refusal.MAX_MODEL_LEN_TOO_LONG,
        Refusal.UNSUPPORTED_ARCHITECTURE,
        Refusal.TOKEN_REQUIRED,
        Refusal.DRIVER_MISMATCH,
    )
)
# Refused when every rank had loaded: one that loads afterwards is of another start.
_AFTER_LOADING = frozenset(
    (Refusal.KV_CACHE_TOO_SMALL, Refusal.NO_CACHE_BLOCKS, Refusal.STATE_BLOCKS_TOO_FEW)
)
_WHEN_SERVING = frozenset((*CONSEQUENCES, Refusal.OUT_OF_MEMORY_SERVING))
_HARMLESS_LEVELS = frozenset(("DEBUG", "INFO", "WARNING"))
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)"
)
_EMPTY_EXCEPTIONS = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|EngineDeadError|"
    r"Engine process failed to start|CancelledError|SystemExit|KeyboardInterrupt|"
    r"^(?:litellm|openai)\."  # of clients, whose services speak in the same text
)
_FRONT_GIVES_UP = re.compile(r"Engine core initialization failed|Engine process failed to start")
_FLAG_FACTS = ("model", "tensor_parallel_size", "gpu_memory_utilization", "max_model_len")
_READERS: tuple[tuple[Callable[[str], Mapping[str, Flag] | None], int, str], ...] = (
    (configured_flags, 1, "withconfig:"),
    (listed_flags, 2, "args:"),
    (commanded_flags, 4, "vllm"),
    (commanded_flags, 4, "--model"),
)


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
        self._gave_up = False
        self._is_stopped = False  # by somebody, not by a failure
        self._ranks_heard = 1

    def is_over_before(self, record: Record) -> bool:
        """Whether this message begins another start: an engine introduces itself once more.

        In excerpts without such lines, one that loads after the front gave up, or after it was up.
        """
        phase = max(self._phases.values(), default=Phase.CONFIGURING)
        if phase_begun(record) == Phase.LOADING and record.has_head:
            planned = any(failure.kind in _AFTER_LOADING for _, failure in self._failures)
            return self._gave_up or planned or phase >= Phase.INITIALIZED
        if not begins_start(record):
            return False
        again = self._introduced and not _is_rank_of_many(record)
        return bool(self._failures) or (phase >= Phase.PROFILING and again)

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
        self._is_stopped = self._is_stopped or (not self._failures and is_stopping(record))
        for said in sorted(sentences(record), key=lambda said: said.at):
            self._hear_refusal(record, said)
        self._hear_exception(record)

    def facts(self) -> EngineLog:
        """All of it, each fact by the line that goes before the others."""
        refusal = root_cause([failure for _, failure in self._failures], self._exception)
        values = {fact: decided(fact, stated) for fact, stated in self._stated.items()}
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
        name, value = figure(fact, text)
        if value is not None:
            self._stated.setdefault(name, []).append((rank, value))

    def _hear_flags(self, record: Record) -> None:
        for read, rank, needle in _READERS:
            if needle not in record.masked or (read is commanded_flags and record.has_head):
                continue
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
            if value is None or isinstance(value, bool) or str(value).startswith("-"):
                continue  # -1: the engine finds the length
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
        if self._is_stopped and kind in CONSEQUENCES:
            return
        refusal = refusal_said(kind, said)
        self._failures.append((_engine_of(record.speaker), refusal))
        self._gave_up = self._gave_up or bool(_FRONT_GIVES_UP.search(record.text))
        if kind not in CONSEQUENCES:
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
        if self._phase(record.speaker) < Phase.SERVING and not self._is_stopped:
            self._exception = " ".join(text.split())[:600]
            failure = EngineRefusal(kind=Refusal.OTHER, message=self._exception)
            self._failures.append((_engine_of(record.speaker), failure))


def _is_rank_of_many(record: Record) -> bool:
    return bool(re.search(r"DP\d|rank=", record.speaker))


def _engine_of(speaker: str) -> str:
    """The data-parallel engine that a process belongs to; one name for all without such ranks."""
    found = re.search(r"DP(\d+)", speaker) or re.match(r"EngineCore_(\d+)", speaker)
    return f"DP{found[1]}" if found else ""
