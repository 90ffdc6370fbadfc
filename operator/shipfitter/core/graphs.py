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
# layers, median error 8 %), V2 starts of 0.28 and 0.31 (0.21 and 0.23 GiB), V0 (0.17 to 0.8).
FIRST_BYTES = 256 * MIB
FIRST_BYTES_SMALL = 100 * MIB  # V0 and V2
LAYER_BYTES = 17 * MIB // 100
LAYER_BYTES_V2 = 12 * MIB // 100
LAYER_BYTES_LEGACY = 25 * MIB // 100
# V1 before 0.10 took three times as much for the same graphs: 1.4 GiB for 67 sizes, 28 layers.
LAYER_BYTES_OLD = 60 * MIB // 100
_SMALLER_SINCE = EngineVersion(0, 10, 0)
# Experts launch more kernels in each piece; recurrent layers did until 0.19: 2.4 to 2.8 GiB for 48
# such layers in 0.10, 1.6 for 32 in 0.18, 1.1 for 64 in 0.26.
EXPERTS_PERCENT = 120
RECURRENT_PERCENT = 200
_LIGHTER_RECURRENCE_SINCE = EngineVersion(0, 20, 0)
# What runs took of that: nine in ten within these bounds, and under tensor parallelism, where
# communication registers its buffers in every graph, up to the last.
DENSE_PERCENT = (50, 135)
OTHER_PERCENT = (30, 180)
TOGETHER_PERCENT = 230
_SMALLER_TOGETHER_SINCE = EngineVersion(0, 11, 0)
# Source: vLLM vllm/envs.py VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS, off until 0.20.
_ESTIMATES_SINCE = EngineVersion(0, 18, 0)

_WITHOUT_PIECES = frozenset({"FULL", "FULL_DECODE_ONLY"})
_OF_ONE_KIND = frozenset({"FULL", "PIECEWISE"})


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
    pieces = () if settings.cudagraph_mode in _WITHOUT_PIECES else sizes
    if settings.cudagraph_mode in _OF_ONE_KIND:
        full = sizes if settings.cudagraph_mode == "FULL" else ()
    first, per_layer = _constants(settings)
    layers = len(model.layers) // settings.layout.pipeline_parallel_size
    captured = (len(pieces) + len(full)) * layers * per_layer
    recurrent = traits_of(model).has_state
    if model.moe is not None:
        captured = captured * EXPERTS_PERCENT // 100
    if recurrent and settings.version < _LIGHTER_RECURRENCE_SINCE:
        captured = captured * RECURRENT_PERCENT // 100
    low, high = DENSE_PERCENT if model.moe is None and not recurrent else OTHER_PERCENT
    if settings.layout.tensor_parallel_size > 1 and settings.version < _SMALLER_TOGETHER_SINCE:
        high = TOGETHER_PERCENT
    return Estimate.around(first + captured, low_percent=low, high_percent=high)


def _constants(settings: EngineSettings) -> tuple[int, int]:
    if settings.model_runner == "V2":
        return FIRST_BYTES_SMALL, LAYER_BYTES_V2
    if settings.rules.legacy_engine:
        return FIRST_BYTES_SMALL, LAYER_BYTES_LEGACY
    if settings.version < _SMALLER_SINCE:
        return FIRST_BYTES, LAYER_BYTES_OLD
    return FIRST_BYTES, LAYER_BYTES


def charges_graphs(settings: EngineSettings) -> bool:
    """Whether this release and runner subtract their own estimate of it from the cache.

    Source: vLLM vllm/v1/worker/gpu_worker.py; V2's estimate was nothing until 0.29.
    """
    rules = settings.rules
    if settings.estimates_graphs is False:
        return False
    if settings.model_runner == "V2":
        return rules.charges_graphs_on_v2
    asked = settings.estimates_graphs is True and settings.version >= _ESTIMATES_SINCE
    return rules.charges_graphs or asked
