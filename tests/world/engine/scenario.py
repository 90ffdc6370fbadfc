"""The device this engine finds, and what is to happen to it; from the environment.

ENGINE_STUB_SCENARIO is JSON or the path of a JSON file with the fields of `Scenario`.
ENGINE_STUB_DEVICE is what the node says of its GPUs: {"total_bytes": …, "free_bytes": …} and
optionally "name", "nominal_bytes", "compute_capability", "count". The scenario goes before it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

GIB = 2**30

PHASES = ("load", "profile", "cache", "graphs", "sampler", "run")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is said of the device and of the start; None: as the engine works it out itself."""

    total_gib: float | None = None
    free_gib: float | None = None  # at the engine's snapshot, context and communication taken off
    context_gib: float | None = None  # what context and communication take from a node's free
    nominal_gib: float | None = None  # what the driver calls total; decides the default tier
    name: str | None = None
    compute_capability: str | None = None  # "9.0"
    gpus: int | None = None  # visible to this process
    weights_gib: float | None = None  # on each rank
    load_peak_gib: float = 0.0  # while loading, above the weights
    overhead_gib: float | None = None  # persistent beyond weights, inside the request
    activation_gib: float | None = None
    activation_mib_per_token: float | None = None  # the same for each batched token
    graphs_gib: float | None = None  # as captured
    graph_estimate_gib: float | None = None  # as charged before capture
    sampler_gib: float | None = None  # warm-up after capture
    serving_gib: float = 0.0  # what several requests at once take besides all that was counted
    taken_gib: float = 0.0  # by somebody else, from the phase `taken_in` on
    taken_in: str = "load"
    oom_in: str | None = None  # one of PHASES, whatever the figures say
    says: str | None = None  # the core's last words, whatever the figures say
    start_delay_seconds: float = 0.3
    join_seconds: float = 60.0  # how long a leader waits for its followers, and they for it
    hang_in: str | None = None  # a phase that never ends: "load"
    crash_after_seconds: float | None = None  # once it serves
    exit_code: int = 1  # of that crash; negative: killed by that signal
    running: int = 0  # what /metrics says
    waiting: int = 0
    kv_cache_usage_perc: float = 0.0
    preemptions: int = 0

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Scenario":
        """From ENGINE_STUB_SCENARIO; everything by default without it."""
        given = environment.get("ENGINE_STUB_SCENARIO", "")
        if not given:
            return cls()
        text = given if given.lstrip().startswith("{") else Path(given).read_text("utf-8")
        wanted: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        if unknown := set(wanted) - known:
            raise SystemExit(f"engine stub: no such scenario field: {sorted(unknown)}")
        for phase in map(wanted.get, ("oom_in", "hang_in", "taken_in")):
            if phase is not None and phase not in PHASES:
                raise SystemExit(f"engine stub: no phase {phase!r}; there are {PHASES}")
        return cls(**wanted)


@dataclass(frozen=True, kw_only=True)
class Device:
    """One GPU as the engine sees it, and how many of them."""

    total_bytes: int
    free_bytes: int  # before this engine's context
    free_is_measured_after_context: bool
    nominal_bytes: int
    name: str
    compute_capability: tuple[int, int]
    count: int


def read_device(scenario: Scenario, environment: Mapping[str, str] = os.environ) -> Device | None:
    """The device of the scenario, else of the node; None where nobody says there is one."""
    node = json.loads(environment.get("ENGINE_STUB_DEVICE") or "{}")
    total = int(scenario.total_gib * GIB) if scenario.total_gib else node.get("total_bytes")
    visible = _visible_gpus(scenario, node, environment)
    if not total or visible == 0:
        return None
    free = int(scenario.free_gib * GIB) if scenario.free_gib else None
    capability = scenario.compute_capability or str(node.get("compute_capability", "9.0"))
    major, _, minor = capability.partition(".")
    nominal = int(scenario.nominal_gib * GIB) if scenario.nominal_gib else None
    return Device(
        total_bytes=int(total),
        free_bytes=free if free is not None else int(node.get("free_bytes", total)),
        free_is_measured_after_context=free is not None,
        nominal_bytes=nominal or int(node.get("nominal_bytes", total)),
        name=scenario.name or str(node.get("name", "NVIDIA GPU")),
        compute_capability=(int(major), int(minor or 0)),
        count=visible,
    )


def _visible_gpus(
    scenario: Scenario, node: Mapping[str, Any], environment: Mapping[str, str]
) -> int:
    if scenario.gpus is not None:
        return scenario.gpus
    count = int(node.get("count", 1))
    named = environment.get("NVIDIA_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES"))
    if named is None or named == "all":
        return count
    if named in ("", "none", "void"):
        return 0
    return len([device for device in named.split(",") if device.strip()])
