"""CUDA graphs: what capturing takes, and how much of it the engine subtracts from the cache."""

from shipfitter.core.capture import full_decode_sizes
from shipfitter.core.engines import EngineSettings
from shipfitter.core.estimate import Estimate
from shipfitter.core.model import ModelFacts
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion
from shipfitter.units import MIB

# The first capture of each kind loads kernels and takes library workspaces; every further one
# takes its share per layer. Measured: 59 starts of 0.19 on H100 (0.64 to 1.85 GiB for 26 to 80
# layers, median error 8 %), V2 starts of 0.28 and 0.31 (0.21 and 0.23 GiB).
FIRST_BYTES = 256 * MIB
FIRST_BYTES_V2 = 100 * MIB
LAYER_BYTES = 17 * MIB // 100
LAYER_BYTES_V2 = 12 * MIB // 100
# Before 0.10 the same graphs took three times as much: 1.4 GiB for 67 sizes and 28 layers.
LAYER_BYTES_OLD = 60 * MIB // 100
_SMALLER_SINCE = EngineVersion(0, 10, 0)
# Experts and recurrent layers launch more kernels in each piece: half as much again, each.
MORE_KERNELS_PERCENT = 150
LOW_PERCENT, HIGH_PERCENT = 30, 220


def graph_bytes(model: ModelFacts, settings: EngineSettings) -> Estimate:
    """Bytes that capturing takes on one rank; a first estimate with a wide interval."""
    sizes = settings.cudagraph_capture_sizes or ()
    if settings.enforce_eager or not sizes:
        return Estimate.exactly(0)
    full = full_decode_sizes(
        sizes,
        settings.rules,
        max_num_seqs=settings.max_num_seqs or 0,
        tokens_per_sequence=settings.tokens_per_sequence,
    )
    first, per_layer = _constants(settings)
    layers = len(model.layers) // settings.layout.pipeline_parallel_size
    captured = (len(sizes) + len(full)) * layers * per_layer
    if model.moe is not None:
        captured = captured * MORE_KERNELS_PERCENT // 100
    if traits_of(model).has_state:
        captured = captured * MORE_KERNELS_PERCENT // 100
    return Estimate.around(first + captured, low_percent=LOW_PERCENT, high_percent=HIGH_PERCENT)


def _constants(settings: EngineSettings) -> tuple[int, int]:
    if settings.model_runner == "V2":
        return FIRST_BYTES_V2, LAYER_BYTES_V2
    if settings.version < _SMALLER_SINCE:
        return FIRST_BYTES, LAYER_BYTES_OLD
    return FIRST_BYTES, LAYER_BYTES


def charges_graphs(settings: EngineSettings) -> bool:
    """Whether this release and runner subtract their own estimate of it from the cache.

    Source: vLLM vllm/v1/worker/gpu_worker.py; V2's estimate was nothing until 0.29.
    """
    rules = settings.rules
    return rules.charges_graphs_on_v2 if settings.model_runner == "V2" else rules.charges_graphs
