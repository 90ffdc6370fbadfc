"""How hard a plan is tried, and what it is known by once it was."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_AT_ONCE = 2048  # one client's process manages no more
WAVES = 2  # the first fills the engines, the second finds them full
MOST_OUTPUT_TOKENS = 256
# A prompt read by the engine's tokenizer may be a little longer than it was made to be.
ROOM_TOKENS = 32
_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How hard the plan is tried."""

    at_once: int
    input_tokens: int
    output_tokens: int

    def record(self) -> dict[str, int]:
        """As the Job's annotation and status.verify keep it."""
        return {
            "atOnce": self.at_once,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
        }

    @property
    def requests(self) -> int:
        """All requests of the test."""
        return WAVES * self.at_once


def plan_hash(record: Mapping[str, Any]) -> str:
    """What a plan is verified as: its inputs and the figures its engines are started with."""
    keys = (
        "pool", "gpuProduct", "gpusPerReplica", "tensorParallelSize", "pipelineParallelSize",
        "nodesPerReplica", "modelUri", "kvCacheDtype", "maxModelLen", "maxNumSeqs",
        "maxNumBatchedTokens", "gpuMemoryUtilization", "maxCudagraphCaptureSize",
    )  # fmt: skip
    variants = [[each.get(key) for key in keys] for each in record.get("variants") or ()]
    text = json.dumps([record.get("inputsHash"), variants], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def load_of(typical_tokens: int, longest_tokens: int, sequences: int) -> Load:
    """Requests that hold `typical_tokens` on average while they run, as many as the plan takes.

    >>> load_of(2048, 131_072, 96)
    Load(at_once=96, input_tokens=1920, output_tokens=256)
    >>> load_of(8192, 1024, 4)
    Load(at_once=4, input_tokens=736, output_tokens=256)
    """
    output = max(1, min(MOST_OUTPUT_TOKENS, typical_tokens // 4, longest_tokens // 4))
    wanted = typical_tokens - output // 2  # held: all of the prompt, half of the answer
    room = longest_tokens - output - ROOM_TOKENS
    return Load(
        at_once=max(1, min(MOST_AT_ONCE, sequences)),
        input_tokens=max(1, min(wanted, room)),
        output_tokens=output,
    )
