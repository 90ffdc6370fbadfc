"""Flags and variables whose memory is not counted one by one: said, and the interval made wider."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shipfitter.api.serve_command import ServeCommand
from shipfitter.core.estimate import Estimate, sum_of
from shipfitter.units import GIB


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """What we do not count exactly: in words, and what it may take on each rank."""

    note: str
    low_gib: float = 0.0
    point_gib: float = 0.0
    high_gib: float = 0.0

    @property
    def bytes(self) -> Estimate:
        """The interval in bytes."""
        return Estimate(
            low=int(self.low_gib * GIB), point=int(self.point_gib * GIB),
            high=int(self.high_gib * GIB),
        )  # fmt: skip


Asked = Callable[[ServeCommand, Mapping[str, str]], bool]


def _on(flag: str) -> Asked:
    return lambda command, _: command.switch(flag) is True


def _given(*flags: str) -> Asked:
    return lambda command, _: any(
        command.text(flag) not in (None, "0", "0.0", "{}") or bool(command.mapping(flag))
        for flag in flags
    )


def _has_copies(command: ServeCommand) -> bool:
    """What exchanges tokens between data-parallel ranks is not there without them."""
    return (command.count("--data-parallel-size") or 1) > 1


def _two_batches(command: ServeCommand, _: Mapping[str, str]) -> bool:
    return command.switch("--enable-dbo") is True and _has_copies(command)


def _deep_ep(command: ServeCommand, environment: Mapping[str, str]) -> bool:
    stated = command.text("--all2all-backend") or environment.get("VLLM_ALL2ALL_BACKEND", "")
    return stated.startswith(("deepep", "pplx", "mori", "nixl")) and _has_copies(command)


def _pools(command: ServeCommand, _: Mapping[str, str]) -> bool:
    return command.text("--runner") == "pooling" or (command.text("--task") or "generate") not in (
        "generate",
        "auto",
    )


# Sizes: published reports of 0.10 to 0.33 where there are any (buffers between experts 0.1 to
# 10 GiB; expert balancing 0.1 to 1); else read from the source as an order of magnitude.
_TABLE: tuple[tuple[Asked, Unmodelled], ...] = (
    (_two_batches, Unmodelled("--enable-dbo: a second set of work buffers", 0.0, 0.5, 2.0)),
    (_deep_ep, Unmodelled("--all2all-backend: buffers between experts", 0.1, 1.0, 6.0)),
    (_on("--enable-eplb"), Unmodelled("--enable-eplb: buffers to move experts", 0.0, 0.2, 1.0)),
    (
        _on("--enable-sleep-mode"),
        Unmodelled("--enable-sleep-mode: its allocator rounds up", 0.0, 0.05, 0.3),
    ),
    (
        _given("--kv-transfer-config", "--ec-transfer-config"),
        Unmodelled("--kv-transfer-config: staging buffers of the connector", 0.0, 0.1, 0.6),
    ),
    (
        _given("--offload-group-size", "--cpu-offload-params", "--offload-params"),
        Unmodelled("offloaded layers are counted as if they stayed on the GPU", -4.0, 0.0, 0.5),
    ),
    (
        _given("--prefill-context-parallel-size"),
        Unmodelled("--prefill-context-parallel-size is not counted", 0.0, 0.0, 1.0),
    ),
    (
        _given("--kv-cache-dtype-skip-layers"),
        Unmodelled("--kv-cache-dtype-skip-layers: those layers are counted like the others"),
    ),
    (
        lambda command, _: (
            command.text("--mamba-cache-mode") == "all"
            or bool(command.text("--mamba-block-size") or command.text("--mamba-cache-dtype"))
        ),
        Unmodelled("pages of recurrent layers are counted at the engine's defaults"),
    ),
    (
        _given("--mm-processor-kwargs"),
        Unmodelled("--mm-processor-kwargs: items are counted at the model's own sizes"),
    ),
    (
        _given("--model-class-overrides", "--worker-cls", "--scheduler-cls"),
        Unmodelled("classes of your own are counted as the engine's", -0.5, 0.0, 1.0),
    ),
    (
        _on("--enable-prompt-embeds"),
        Unmodelled("--enable-prompt-embeds: input buffers", 0.0, 0.1, 0.3),
    ),
    (_on("--swa-bounded-replay"), Unmodelled("--swa-bounded-replay is not counted", 0.0, 0.0, 0.3)),
    (_on("--use-replayssm"), Unmodelled("--use-replayssm is not counted", 0.0, 0.1, 0.5)),
    (
        lambda command, _: (command.text("--moe-backend") or "").endswith("b12x"),
        Unmodelled("--moe-backend flashinfer_b12x: its workspace, 11 GiB in one report", 0, 0, 12),
    ),
    (_pools, Unmodelled("a pooling model: its head and pooler are counted as a sampler's")),
)  # fmt: skip


def unmodelled(command: ServeCommand, environment: Mapping[str, str]) -> tuple[Unmodelled, ...]:
    """Everything in the command that is not counted exactly, or is counted only here."""
    found = [each for asked, each in _TABLE if asked(command, environment)]
    reserved_gib = command.number("--mm-ipc-gpu-memory-gb")
    if reserved_gib:
        found.append(Unmodelled("", reserved_gib, reserved_gib, reserved_gib))
    return tuple(found)


def uncounted_drafter(name: str) -> Unmodelled:
    """A drafter whose config cannot be had, or is none that we know: heads to small models."""
    return Unmodelled(f"the draft model {name} is not counted: its weights and cache", 0.1, 0.8, 4)


def assumed_drafter(name: str) -> Unmodelled:
    """A head whose config cannot be had."""
    return Unmodelled(
        f"the draft model {name} is taken for a head of one layer like the model's own", -0.3, 0, 1
    )


def unmodelled_bytes(found: tuple[Unmodelled, ...]) -> Estimate:
    """All of it together, on each rank."""
    counted = [each.bytes for each in found if (each.low_gib, each.high_gib) != (0, 0)]
    return sum_of(counted) if counted else Estimate.exactly(0)
