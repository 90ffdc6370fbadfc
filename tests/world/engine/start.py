"""The engine's start, in its order: each phase may be the last one.

Source: vLLM 0.33 vllm/v1/engine/core.py, vllm/v1/worker/gpu_worker.py.
"""

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from world.engine import wording
from world.engine.cache import Cache, cache
from world.engine.checkpoint import Checkpoint
from world.engine.compile_cache import CompileCache
from world.engine.engine_logging import EngineLog
from world.engine.group import Follower, Leader, node_count, node_rank, own_stages
from world.engine.memory import Memory, memory
from world.engine.planner import Plan
from world.engine.planning import bytes_of_blocks, planned_cache
from world.engine.refused import Refused
from world.engine.scenario import GIB, PHASES, Device, Scenario
from world.engine.settings import Settings
from world.engine.weights import Ranks, weight_bytes


@dataclass(frozen=True, kw_only=True)
class Started:
    """What serves."""

    settings: Settings
    plan: Plan
    cache_bytes: int
    cache: Cache
    given: Mapping[str, Any]
    left_bytes: int = 0  # of the device, beside all that a start takes
    is_short: bool = False  # of memory, once it works


@dataclass(kw_only=True)
class Start:
    """One start of one engine."""

    log: EngineLog
    settings: Settings
    checkpoint: Checkpoint
    device: Device
    scenario: Scenario
    given: Mapping[str, Any]

    def run(self, leader: Leader | None = None) -> Started:
        """All phases; Refused from the first that fails."""
        settings, config = self.settings, self.checkpoint.config
        if leader is not None:
            leader.wait_joined()
        compiled = CompileCache(settings)
        figures = memory(
            settings, config, self.device, self.scenario, compiled_before=compiled.is_warm
        )
        self._speak_as_worker()
        self._check_free_memory(figures)
        if self.scenario.says:
            raise Refused("load", self.scenario.says)
        weights = self._load(figures)
        self._profile(figures, self._own(weights))
        compiled.keep()
        available = [self._available(figures, held) for held in weights]
        self.log.say(
            "v1.worker.gpu_worker:461",
            f"Available KV cache memory: {wording.gib(available[0])} GiB",
        )
        if leader is not None:
            available = leader.least(available)
        self._speak_as_core()
        kept = cache(settings, config, self.device, self.given)
        planned = planned_cache(self.log, settings, kept, available, self.given)
        cache_bytes = bytes_of_blocks(planned)
        self._speak_as_worker()
        used = self._capture(figures, self._own(weights), cache_bytes)
        if leader is not None:
            leader.finish(cache_bytes)
        self._speak_as_core()
        self.log.say(
            "v1.engine.core:312",
            "init engine (profile, create kv cache, warmup model) took "
            f"{self.scenario.start_delay_seconds:.2f} seconds",
        )
        self._say_budget(figures, max(weights), cache_bytes)
        return Started(
            settings=settings,
            plan=planned,
            cache_bytes=cache_bytes,
            cache=kept,
            given=self.given,
            left_bytes=figures.free - used,
            is_short=self._is_short("run", figures, used),
        )

    def follow(self, follower: Follower) -> None:
        """The phases of a node that serves nothing; Refused from the first that fails."""
        follower.join()
        figures = memory(self.settings, self.checkpoint.config, self.device, self.scenario)
        self._speak_as_worker()
        self._check_free_memory(figures)
        weights = self._load(figures)
        self._profile(figures, self._own(weights))
        follower.say(available=[self._available(figures, held) for held in weights])
        self._capture(figures, self._own(weights), follower.wait_for_cache())
        follower.say(done=True)

    def _own(self, weights: list[int]) -> int:
        """What the fullest rank of this node holds."""
        nodes, rank = node_count(self.given), node_rank(self.given)
        return max(weights[stage] for stage in own_stages(len(weights), nodes, rank))

    def _speak_as_worker(self) -> None:
        if self.settings.tensor * self.settings.pipeline > 1:
            first = own_stages(
                self.settings.pipeline, node_count(self.given), node_rank(self.given)
            ).start
            stage = f"PP{first}_" if self.settings.pipeline > 1 else ""
            self.log.speak_as(f"Worker_{stage}TP0")
        else:
            self._speak_as_core()

    def _speak_as_core(self) -> None:
        self.log.speak_as("EngineCore")

    def _enter(self, phase: str) -> None:
        if self.scenario.hang_in == phase:
            while True:
                signal.pause()

    def _check_free_memory(self, figures: Memory) -> None:
        if figures.free < figures.requested:
            text = wording.free_memory(
                figures.free, figures.total, self.settings.utilization, figures.requested
            )
            raise Refused("free memory", f"ValueError: {text}")

    def _load(self, figures: Memory) -> list[int]:
        settings = self.settings
        self.log.say(
            "v1.worker.gpu.model_runner:236", f"Starting to load model {settings.model}..."
        )
        self._enter("load")
        started = time.monotonic()
        time.sleep(self.scenario.start_delay_seconds / 2)
        ranks = Ranks(
            tensor=settings.tensor,
            pipeline=settings.pipeline,
            data=settings.data,
            experts_whole=settings.expert_parallel,
        )
        if self.scenario.weights_gib is not None:
            held = [int(self.scenario.weights_gib * GIB)] * settings.pipeline
        else:
            held = weight_bytes(self.checkpoint, ranks)
        peak = self._own(held) + int(self.scenario.load_peak_gib * GIB)
        self._need_room("load", figures, used=0, wanted=peak)
        self.log.say(
            "v1.worker.gpu.model_runner:262",
            wording.loading_took(
                held[0], time.monotonic() - started, settings.version, settings.runner
            ),
        )
        return held

    def _profile(self, figures: Memory, weights: int) -> None:
        self._enter("profile")
        wanted = figures.overhead + figures.activation
        self._need_room("profile", figures, used=weights, wanted=wanted)
        if figures.graph_estimate and self.settings.version >= (0, 18, 0):
            self.log.say(
                "v1.worker.gpu.model_runner:702",
                f"Estimated CUDA graph memory: {wording.gib(figures.graph_estimate)} GiB total",
            )

    def _available(self, figures: Memory, weights: int) -> int:
        if named := self.given.get("kv_cache_memory_bytes"):
            return int(named)
        return (
            figures.requested
            - weights
            - figures.overhead
            - figures.activation
            - figures.graph_charged
        )

    def _need_room(self, phase: str, figures: Memory, *, used: int, wanted: int) -> None:
        if not self._is_short(phase, figures, used + wanted):
            return
        left = max(0, figures.free - used)
        missing = max(wanted - left, 256 * 2**20)
        shown = min(left, missing // 2)  # the allocator gave the rest away before this request
        text = wording.out_of_memory(missing, shown, figures.total, figures.free - shown)
        raise Refused(phase, f"torch.OutOfMemoryError: {text}")

    def _is_short(self, phase: str, figures: Memory, wanted: int) -> bool:
        begun = PHASES.index(phase) >= PHASES.index(self.scenario.taken_in)
        taken = int(self.scenario.taken_gib * GIB) if begun else 0
        return wanted > figures.free - taken or self.scenario.oom_in == phase

    def _capture(self, figures: Memory, weights: int, cache_bytes: int) -> int:
        """What is in use at the end."""
        settings = self.settings
        used = weights + figures.overhead
        self._need_room("cache", figures, used=used, wanted=cache_bytes)
        used += cache_bytes
        time.sleep(self.scenario.start_delay_seconds / 2)
        if not settings.eager:
            self._enter("graphs")
            self._need_room("graphs", figures, used=used, wanted=figures.graphs)
            self.log.say(
                "v1.worker.gpu.model_runner:811",
                f"Graph capturing finished in {round(self.scenario.start_delay_seconds)} secs, "
                f"took {wording.gib(figures.graphs)} GiB",
            )
        captured = 0 if settings.eager else figures.graphs
        self._warm_up_sampler(figures, used + captured)
        return used + captured

    def _warm_up_sampler(self, figures: Memory, used: int) -> None:
        self._enter("sampler")
        try:
            self._need_room("sampler", figures, used=used, wanted=figures.sampler)
        except Refused:
            if self.settings.runner == "V2":
                raise
            text = wording.sampler_out_of_memory(self.settings.sequences)
            raise Refused("sampler", f"RuntimeError: {text}") from None

    def _say_budget(self, figures: Memory, weights: int, cache_bytes: int) -> None:
        settings = self.settings
        say = self.log.say if settings.version >= (0, 26, 0) else self.log.whisper
        say(
            "v1.worker.gpu_worker:598",
            wording.budget(
                version=settings.version,
                free=figures.free,
                total=figures.total,
                utilization=settings.utilization,
                requested=figures.requested,
                weights=weights,
                overhead=figures.overhead,
                activation=figures.activation,
                graphs=0 if settings.eager else figures.graphs,
                graph_charged=figures.graph_charged,
                cache=cache_bytes,
            ),
        )
