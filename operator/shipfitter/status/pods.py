"""A pod as far as decisions and conditions need it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePod:
    """One pod of a variant, as far as decisions need it."""

    name: str
    variant: str
    ready: bool
    phase: str
    node: str = ""
    waiting_for_gpu_since: float | None = None  # unschedulable since (epoch seconds)
    template_hash: str = ""
    restarts: int = 0
    waiting_reason: str = ""  # CrashLoopBackOff, ImagePullBackOff, ...
    termination_message: str = ""
    exit_code: int | None = None
    terminating: bool = False
    gpus: int = 0  # GPUs it requests
