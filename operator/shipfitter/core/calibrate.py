"""Learning from engines: the running difference between observed and predicted cache memory."""

import hashlib
from dataclasses import dataclass, replace

from shipfitter.core.engines import EngineSettings, Learnt
from shipfitter.core.estimate import Estimate, sum_of
from shipfitter.core.model import ModelFacts

MOST_SHARE = 0.10  # of a GPU: a larger difference is another cause, not a correction
REMEMBERED = 10  # observations that weigh; older ones fade
ODD_SPREADS = 3  # an observation further off moves the estimate no further than this
LEAST_SPREAD_SHARE = 0.005  # of a GPU: engines differ by this much from start to start


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationKey:
    """Among which engines a difference is learnt and used."""

    gpu_product: str
    engine_minor: str
    architecture: str
    weight_format: str
    tensor_parallel_size: int
    image: str = ""  # of engines the operator does not know
    arguments_hash: str = ""  # where extra arguments change memory

    @property
    def name(self) -> str:
        """The object's name: readable, and unique by a hash of the whole key."""
        parts = (self.gpu_product, self.architecture, f"tp{self.tensor_parallel_size}")
        text = "-".join(parts).lower()
        readable = "".join(c if c.isalnum() or c == "-" else "-" for c in text)[:50].strip("-")
        digest = hashlib.sha256(repr(self).encode()).hexdigest()[:8]
        return f"{readable}-{digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The running estimate of one key; bytes per GPU."""

    residual_bytes: int = 0
    spread_bytes: int = 0
    observations: int = 0


def key_for(
    model: ModelFacts,
    settings: EngineSettings,
    product: str,
    *,
    image: str = "",
    arguments: str = "",
) -> CalibrationKey:
    """The key of an engine that runs with these settings on that product."""
    return CalibrationKey(
        gpu_product=product,
        engine_minor=f"{settings.version.major}.{settings.version.minor}",
        architecture=model.architecture,
        weight_format=model.quantization.method if model.quantization else model.dtype,
        tensor_parallel_size=settings.layout.tensor_parallel_size,
        image=image,
        arguments_hash=arguments,
    )


def fold(learning: Learning, difference_bytes: int, total_bytes: int) -> Learning:
    """The estimate after one more observation (observed less predicted, of a GPU of that size).

    A robust running mean: from the second observation on, one that lies far off counts only as far
    as the usual spread reaches, so an odd run moves little and a lasting change wins in a few.
    """
    most = int(total_bytes * MOST_SHARE)
    seen = max(-most, min(most, difference_bytes))
    least = int(total_bytes * LEAST_SPREAD_SHARE)
    count = learning.observations + 1
    if learning.observations == 0:
        return Learning(residual_bytes=seen, spread_bytes=least, observations=1)
    off = seen - learning.residual_bytes
    reach = ODD_SPREADS * max(learning.spread_bytes, least)
    pull = max(-reach, min(reach, off))
    weight = min(count, REMEMBERED)
    spread = learning.spread_bytes + (abs(off) - learning.spread_bytes) // weight
    return Learning(
        residual_bytes=learning.residual_bytes + pull // weight,
        spread_bytes=max(least, min(most, spread)),
        observations=count,
    )


def with_learning(
    settings: EngineSettings, learning: Learning | None, total_bytes: int
) -> EngineSettings:
    """The settings corrected by what was learnt; never by more than a tenth of the GPU."""
    if learning is None or learning.observations == 0:
        return settings
    most = int(total_bytes * MOST_SHARE)
    residual = max(-most, min(most, learning.residual_bytes))
    return replace(
        settings,
        extra_bytes=sum_of((settings.extra_bytes, Estimate.exactly(-residual))),
        calibrated=Learnt(learning.spread_bytes, learning.observations),
    )
