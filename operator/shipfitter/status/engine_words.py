"""An engine's last words as a reason and an advice."""

from dataclasses import dataclass

from shipfitter.core.engine_log import EngineRefusal
from shipfitter.core.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Advice:
    """The reason a condition carries, and what a person does about it."""

    reason: str
    advice: str


_MEMORY = "a smaller plan is tried by itself"

ADVICE: dict[Refusal, Advice] = {
    Refusal.KV_CACHE_TOO_SMALL: Advice("KVCacheTooSmall", _MEMORY),
    Refusal.NO_CACHE_BLOCKS: Advice("KVCacheTooSmall", _MEMORY),
    Refusal.STATE_BLOCKS_TOO_FEW: Advice("StateBlocksTooFew", _MEMORY),
    Refusal.FREE_MEMORY: Advice("EngineOutOfMemory", "others hold memory of this GPU; " + _MEMORY),
    Refusal.OUT_OF_MEMORY_LOAD: Advice("EngineOutOfMemory", "more GPUs are tried by themselves"),
    Refusal.OUT_OF_MEMORY_PROFILE: Advice("EngineOutOfMemory", _MEMORY),
    Refusal.OUT_OF_MEMORY_SAMPLER: Advice("EngineOutOfMemory", _MEMORY),
    Refusal.OUT_OF_MEMORY_GRAPHS: Advice("EngineOutOfMemory", _MEMORY),
    Refusal.OUT_OF_MEMORY_SERVING: Advice("EngineOutOfMemory", _MEMORY),
    Refusal.HOST_OUT_OF_MEMORY: Advice(
        "HostOutOfMemory", "raise spec.resources.limits.memory, or leave it out"
    ),
    Refusal.DRIVER_MISMATCH: Advice(
        "DriverMismatch", "upgrade the node's driver, or set an older spec.engine.image"
    ),
    Refusal.COMMUNICATION: Advice(
        "EngineCommunication", "check NCCL, /dev/shm and the links between the GPUs"
    ),
    Refusal.TOKEN_REQUIRED: Advice(
        "TokenRequired", "name a Secret with access to the model in spec.model.tokenSecretRef"
    ),
    Refusal.UNSUPPORTED_ARCHITECTURE: Advice(
        "EngineUnsupported", "set a newer spec.engine.image that knows this model"
    ),
    Refusal.UNSUPPORTED_QUANTIZATION: Advice(
        "EngineUnsupported", "name another form of the model, or another GPU in spec.gpus.products"
    ),
    Refusal.INVALID_PARALLELISM: Advice(
        "EngineUnsupported", "leave out spec.gpus.tensorParallelSize and the flags that pin it"
    ),
    Refusal.MAX_MODEL_LEN_TOO_LONG: Advice(
        "EngineUnsupported", "lower spec.workload.maxModelLen to the model's own limit"
    ),
}
OTHER = Advice("EngineFailed", "kubectl logs --previous shows the rest")


# Where the engine's own advice begins: ours follows, and conditions are short.
_ENGINES_ADVICE = ("Try increasing", "Please try", "Decrease GPU memory", "See https", "Executor")
LONGEST_WORDS = 600


def spoken(refusal: EngineRefusal) -> str:
    """The engine's sentence with its figures, without its advice."""
    words = refusal.message.strip()
    for start in _ENGINES_ADVICE:
        words = words.partition(start)[0]
    return words.strip(" .")[:LONGEST_WORDS] or refusal.message.strip()[:LONGEST_WORDS]


def advice_for(refusal: EngineRefusal) -> Advice:
    """What to make of a refusal."""
    return ADVICE.get(refusal.kind, OTHER)
