"""What can go wrong with a hub, switchable while it runs."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Faults:
    """All quiet by default; `POST /_control` with these names as JSON changes them."""

    down: bool = False  # connections are closed without an answer
    delay_seconds: float = 0.0  # before every answer
    status: int = 0  # answer everything with this status: 429, 500, 503
    retry_after_seconds: int = 0  # header beside such a status
    status_times: int = -1  # only for this many requests; -1: until switched off
    lying_sizes: bool = False  # the API and HEAD state other sizes than the files have
    ignore_ranges: bool = False  # whole files where a range was asked
    garbled_headers: bool = False  # safetensors headers are no JSON
    huge_headers: bool = False  # safetensors files claim a header of 2^62 bytes
    cut_after_bytes: int = -1  # bodies end early, the connection drops

    def changed(self, wanted: dict[str, Any]) -> Self:
        """These faults with some of them switched; an unknown name is a mistake in the test."""
        known = {field.name for field in fields(self)}
        unknown = set(wanted) - known
        if unknown:
            raise ValueError(f"no such fault: {sorted(unknown)}; there are {sorted(known)}")
        return replace(self, **wanted)
