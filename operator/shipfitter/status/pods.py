"""A pod as far as decisions and conditions need it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedEngine:
    """A started engine's own figures. Source: vLLM /metrics, vllm:cache_config_info."""

    num_gpu_blocks: int
    kv_cache_tokens: int
    max_concurrency: float
    block_size: int = 0  # tokens of an attention block; 0 where it does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePod:
    """One pod of a variant, as far as decisions need it."""

    name: str
    variant: str
    ready: bool
    phase: str
    node: str = ""
    waiting_for_gpu_since: float | None = None  # unschedulable since (epoch seconds)
    unschedulable: tuple[str, ...] = ()  # what nodes lack, by the scheduler's words
    template_hash: str = ""
    restarts: int = 0
    waiting_reason: str = ""  # CrashLoopBackOff, ImagePullBackOff, ...
    termination_message: str = ""
    exit_code: int | None = None
    terminating: bool = False
    gpus: int = 0  # GPUs it requests
    gpu_resource: str = ""  # under which name; empty: under whatever its node offers
    created_seconds: float = 0.0
    ended_reason: str = ""  # OOMKilled, Error, ...
    address: str = ""
    cost: int = 0  # of taking it away: of two pods the cheaper one goes first
    serves: bool = True  # False: a worker of a group over several nodes
    observed: ObservedEngine | None = None  # what it says of its cache, once it serves

    @property
    def broken(self) -> bool:
        """Whether its engine ended badly and does not serve now."""
        return not self.ready and self.exit_code not in (None, 0)
