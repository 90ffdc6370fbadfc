"""What stays allocated beyond weights inside the request, and what is in use before it counts."""

from shipfitter.core.activation import Activation
from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.estimate import Estimate
from shipfitter.core.model import ModelFacts
from shipfitter.core.sampler import penalty_state_bytes, sampler_scratch_bytes
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion
from shipfitter.units import GIB, MIB, ceil_div

# Source: cuBLAS's own defaults: 32 MiB a handle from Hopper on, 8 MiB before.
CUBLAS_WORKSPACE_BYTES = 32 * MIB
CUBLAS_WORKSPACE_BYTES_OLD = 8 * MIB
# Source: vLLM VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE.
FLASHINFER_WORKSPACE_BYTES = 394 * MIB
_WORKSPACE_BEFORE_PROFILING_ENDS = EngineVersion(0, 29, 0)


def _gib(low: float, point: float, high: float) -> Estimate:
    return Estimate(low=int(low * GIB), point=int(point * GIB), high=int(high * GIB))


# Growth outside torch after the first snapshot: kernels loaded on first use, communication.
# Measured, one GPU: 0.02 to 0.16 GiB on consumer and PCIe cards; on H100 0.13 (0.15 to 0.17),
# 0.24 to 0.27 from 0.18 on, one family 0.46.
GROWTH_ALONE = _gib(0.0, 0.08, 0.28)
GROWTH_ALONE_HOPPER = _gib(0.07, 0.25, 0.46)
GROWTH_ALONE_HOPPER_OLD = _gib(0.07, 0.13, 0.30)
# Measured, several GPUs: 0.2 to 0.37 GiB over PCIe, 0.95 once; on H100 0.13 without custom
# all-reduce (0.26), 2.06 to 2.21 with it (0.19, 40 starts), under 1.0 before 0.18.
GROWTH_PCIE = _gib(0.1, 0.3, 0.95)
GROWTH_HOPPER = _gib(0.1, 2.1, 2.25)
GROWTH_HOPPER_OLD = _gib(0.1, 0.5, 1.0)
# Communication is set up inside the request up to 0.10. Measured: 1.38 on two H200, 0.43 on four
# A100, 2.1 on eight.
GROWTH_WITH_COMMUNICATION = _gib(0.3, 1.2, 2.2)
# The card's memory is the machine's: other processes count. Measured: -0.05 to 8.29 GiB.
GROWTH_UNIFIED = _gib(0.0, 2.0, 8.3)
UNIFIED = ((8, 7), (11, 0), (12, 1))  # Jetson Orin and Thor, GB10
_HOPPER_GREW = EngineVersion(0, 18, 0)
_HOPPER_MAJORS = (9, 10)

# In use before the snapshot. Measured: 0.15 to 0.61 GiB alone, 1.51 to 1.53 under tensor
# parallelism, 1.99 to 2.05 with experts, 0.96 on PCIe cards.
OUTSIDE_ALONE = _gib(0.15, 0.5, 0.65)
OUTSIDE_TOGETHER = _gib(0.9, 1.5, 1.7)
OUTSIDE_TOGETHER_EXPERTS = _gib(0.9, 2.0, 2.5)


def overhead_parts(
    model: ModelFacts, settings: EngineSettings, gpu: Gpu, peak: Activation
) -> tuple[Estimate, ...]:
    """Persistent bytes of one rank beyond weights, each with its interval."""
    known = (
        peak.workspace_bytes
        + sampler_scratch_bytes(model, settings)
        + _cublas_bytes(gpu)
        + _sparse_buffers_bytes(model, settings)
    )
    if settings.rules.charges_what_is_consumed:
        known += penalty_state_bytes(model, settings) + _embeddings_bytes(model, settings)
    if uses_flashinfer(gpu) and settings.version >= _WORKSPACE_BEFORE_PROFILING_ENDS:
        known += FLASHINFER_WORKSPACE_BYTES
    return Estimate.exactly(known), growth_outside_torch(settings, gpu)


def growth_outside_torch(settings: EngineSettings, gpu: Gpu) -> Estimate:
    """Growth outside torch between the engine's first snapshot and the profile run's end."""
    capability = gpu.compute_capability or (0, 0)
    recent = settings.version >= _HOPPER_GREW
    if capability in UNIFIED:
        return GROWTH_UNIFIED
    if settings.layout.tensor_parallel_size > 1:
        return _growth_together(settings, capability, recent=recent)
    if capability[0] not in _HOPPER_MAJORS:
        return GROWTH_ALONE
    return GROWTH_ALONE_HOPPER if recent else GROWTH_ALONE_HOPPER_OLD


def _growth_together(
    settings: EngineSettings, capability: tuple[int, int], *, recent: bool
) -> Estimate:
    hopper = capability[0] in _HOPPER_MAJORS
    if not settings.rules.communication_outside and (hopper or capability == (8, 0)):
        return GROWTH_WITH_COMMUNICATION
    if not hopper:
        return GROWTH_PCIE
    return GROWTH_HOPPER if recent else GROWTH_HOPPER_OLD


def unprofiled_bytes(model: ModelFacts, settings: EngineSettings, gpu: Gpu, num_groups: int) -> int:
    """Persistent bytes that no term of the engine's sum holds: they take room it left alone.

    Block tables and, on FlashInfer cards before 0.29, its workspace come after profiling. Up to
    0.26 V2's penalty state comes before, where only weights are counted.
    """
    blocks = ceil_div(settings.max_model_len or 0, settings.block_size or 16)
    tables = 2 * (settings.max_num_seqs or 0) * blocks * 4 * num_groups
    later = 0
    if uses_flashinfer(gpu) and settings.version < _WORKSPACE_BEFORE_PROFILING_ENDS:
        later = FLASHINFER_WORKSPACE_BYTES
    if not settings.rules.charges_what_is_consumed:
        later += penalty_state_bytes(model, settings) + _embeddings_bytes(model, settings)
    return tables + later


def outside_bytes(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> Estimate:
    """In use before the engine looks: context, communication, and other tenants."""
    if gpu.free_bytes is not None:
        return Estimate.exactly(gpu.total_bytes - gpu.free_bytes)
    own = OUTSIDE_ALONE
    if settings.layout.tensor_parallel_size > 1:
        own = OUTSIDE_TOGETHER if model.moe is None else OUTSIDE_TOGETHER_EXPERTS
    taken = gpu.foreign_used_bytes
    return Estimate(low=own.low + taken, point=own.point + taken, high=own.high + taken)


def uses_flashinfer(gpu: Gpu) -> bool:
    """True where FlashInfer is the first attention backend: compute capability 10.x."""
    return gpu.compute_capability is not None and gpu.compute_capability[0] == 10


def _cublas_bytes(gpu: Gpu) -> int:
    modern = gpu.compute_capability is not None and gpu.compute_capability >= (9, 0)
    return CUBLAS_WORKSPACE_BYTES if modern else CUBLAS_WORKSPACE_BYTES_OLD


def _embeddings_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    """The buffer for embeddings that come from outside: multimodal models."""
    if not model.is_multimodal or settings.language_model_only:
        return 0
    return (settings.max_num_batched_tokens or 0) * model.hidden_size * model_dtype_bytes(model)


# Source: vLLM vllm/v1/attention/backends/mla/indexer.py and flashmla_sparse.py.
_SPARSE_LONG_TOKENS = 256 * 1024
_INDEXER_ROWS, _INDEXER_ROW_BYTES, _LATENT_ROW_BYTES = 8, 132, 576 * 2


def _sparse_buffers_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    """Prefill buffers of sparse attention: so many rows for each token of the longest request."""
    if not traits_of(model).is_sparse:
        return 0
    length = settings.max_model_len or 0
    factor = 5 if length <= _SPARSE_LONG_TOKENS else 2
    return factor * length * (_INDEXER_ROWS * _INDEXER_ROW_BYTES + _LATENT_ROW_BYTES)
