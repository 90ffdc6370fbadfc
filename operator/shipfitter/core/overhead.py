"""What stays allocated beyond weights inside the request, and what is in use before it counts."""

from shipfitter.core.activation import Activation
from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.estimate import Estimate, together
from shipfitter.core.model import ModelFacts
from shipfitter.core.processors import processors_of
from shipfitter.core.sampler import penalty_state_bytes, sampler_scratch_bytes
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion
from shipfitter.units import GIB, MIB, ceil_div

NVFP4_GROUP = 16  # weights that share a scale; no other format has groups so small

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
# 0.24 to 0.27 from 0.18 on, one family 0.46. V0: 0.01 to 0.44. ROCm: 0.46 to 0.73.
GROWTH_ALONE = _gib(-0.05, 0.08, 0.28)  # less than nothing under WSL
GROWTH_ALONE_LEGACY = _gib(0.0, 0.1, 0.45)
GROWTH_ALONE_HOPPER = _gib(0.07, 0.25, 0.46)
GROWTH_ALONE_HOPPER_OLD = _gib(0.07, 0.13, 0.30)
GROWTH_ROCM = _gib(0.3, 0.55, 0.9)
GROWTH_OF_UNKNOWN_CARDS = _gib(-0.05, 0.1, 0.7)
# Measured, several GPUs: 0.2 to 0.37 GiB over PCIe, 0.95 once; on Hopper 2.06 to 2.21 (0.19, 40
# starts), under 1.0 before 0.18, 0.2 once in 0.31, 0.13 and about 2.3 without custom all-reduce.
GROWTH_PCIE = _gib(0.1, 0.3, 0.95)
GROWTH_WITHOUT_CUSTOM_REDUCE = _gib(0.1, 1.0, 2.4)
GROWTH_HOPPER = _gib(0.1, 2.1, 2.25)
GROWTH_HOPPER_LATER = _gib(0.1, 1.0, 2.25)
GROWTH_HOPPER_OLD = _gib(0.1, 0.5, 1.0)
# Communication is set up inside the request up to 0.10. Measured: 1.38 on two H200, 0.43 on four
# A100, 2.1 on eight.
GROWTH_WITH_COMMUNICATION = _gib(0.3, 1.2, 2.2)
# The card's memory is the machine's: other processes count. Measured: -0.05 to 8.29 GiB.
GROWTH_UNIFIED = _gib(0.0, 2.0, 8.3)
UNIFIED = ((8, 7), (11, 0), (12, 1))  # Jetson Orin and Thor, GB10
_HOPPER_GREW = EngineVersion(0, 18, 0)
_HOPPER_LATER = EngineVersion(0, 26, 0)
_HOPPER_MAJORS = (9, 10)

# In use before the snapshot. Measured, alone: 0.16 GiB on T4, 0.23 on L4 and 5060 Ti, 0.4 to 0.61
# on larger cards. Under tensor parallelism: 1.51 to 1.55 on H100, 1.99 to 2.07 with experts; 0.96
# on four PCIe cards. Stages: 1.43 to 1.48 on H100.
OUTSIDE_SMALL = _gib(0.1, 0.2, 0.4)
OUTSIDE_ALONE = _gib(0.15, 0.5, 0.65)
OUTSIDE_DESKTOP = _gib(0.1, 0.3, 0.8)  # small cards that also show a desktop: 0.78 once
OUTSIDE_ROCM = _gib(0.3, 0.6, 2.0)  # 0.33 on MI300X
# 0.45 GiB on two MI50 of 32, 17 on eight MI355X of 288: up to so much of the card.
OUTSIDE_ROCM_TOGETHER_PERCENT = (1, 6)
OUTSIDE_TOGETHER = _gib(1.4, 1.5, 1.7)
OUTSIDE_TOGETHER_EXPERTS = _gib(1.4, 2.0, 2.5)
OUTSIDE_TOGETHER_PCIE = _gib(0.3, 0.6, 1.0)
_SMALL_CARD_BYTES = 17 * GIB


def overhead_parts(
    model: ModelFacts, settings: EngineSettings, gpu: Gpu, peak: Activation
) -> tuple[Estimate, ...]:
    """Persistent bytes of one rank beyond weights, each with its interval."""
    scratch = sampler_scratch_bytes(model, settings, processors_of(gpu))
    workspace = Estimate.around(
        peak.workspace_bytes, low_percent=WORKSPACE_LOW_PERCENT, high_percent=100
    )
    known = _cublas_bytes(gpu) + _sparse_buffers_bytes(model, settings)
    if settings.rules.charges_what_is_consumed:
        known += penalty_state_bytes(model, settings) + _embeddings_bytes(model, settings)
    if uses_flashinfer(gpu) and settings.version >= _WORKSPACE_BEFORE_PROFILING_ENDS:
        known += FLASHINFER_WORKSPACE_BYTES
    return (
        Estimate.exactly(known),
        together(workspace, _other_experts_kernels(model, settings)),
        Estimate(low=0, point=scratch, high=scratch),
        growth_outside_torch(settings, gpu),
    )


# The experts' workspace follows the tokens a little less than in 0.32: two of eight hidden rows,
# by the slope of three starts of 0.20.
WORKSPACE_LOW_PERCENT = 75
# NVFP4 experts have kernels that hold more than Marlin's: 1.8 GiB once, 11.5 once.
OTHER_KERNELS = _gib(0.0, 0.0, 2.0)


def _other_experts_kernels(model: ModelFacts, settings: EngineSettings) -> Estimate:
    quantization = model.quantization
    nvfp4 = quantization is not None and quantization.group_size == NVFP4_GROUP
    if model.moe is None or not nvfp4 or not settings.rules.keeps_experts_workspace:
        return Estimate.exactly(0)
    return OTHER_KERNELS


def growth_outside_torch(settings: EngineSettings, gpu: Gpu) -> Estimate:
    """Growth outside torch between the engine's first snapshot and the profile run's end."""
    capability = gpu.compute_capability
    if capability is None or gpu.product.startswith("AMD"):
        return GROWTH_ROCM if gpu.product.startswith("AMD") else GROWTH_OF_UNKNOWN_CARDS
    if capability in UNIFIED:
        return GROWTH_UNIFIED
    if settings.layout.tensor_parallel_size > 1:
        return _growth_together(settings, capability)
    return _growth_alone(settings, capability)


def _growth_alone(settings: EngineSettings, capability: tuple[int, int]) -> Estimate:
    if settings.rules.legacy_engine:
        return GROWTH_ALONE_LEGACY
    if capability[0] not in _HOPPER_MAJORS:
        return GROWTH_ALONE
    recent = settings.version >= _HOPPER_GREW
    return GROWTH_ALONE_HOPPER if recent else GROWTH_ALONE_HOPPER_OLD


def _growth_together(settings: EngineSettings, capability: tuple[int, int]) -> Estimate:
    hopper = capability[0] in _HOPPER_MAJORS
    if not settings.rules.communication_outside and (hopper or capability == (8, 0)):
        return GROWTH_WITH_COMMUNICATION
    if not hopper:
        return GROWTH_PCIE
    if not settings.custom_all_reduce:
        return GROWTH_WITHOUT_CUSTOM_REDUCE
    if settings.version < _HOPPER_GREW:
        return GROWTH_HOPPER_OLD
    return GROWTH_HOPPER_LATER if settings.version >= _HOPPER_LATER else GROWTH_HOPPER


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
    own = _own_use(model, settings, gpu)
    taken = gpu.foreign_used_bytes
    return Estimate(low=own.low + taken, point=own.point + taken, high=own.high + taken)


def _own_use(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> Estimate:
    """Context, and communication where that is set up before the snapshot."""
    together = settings.layout.world_size > 1 and settings.rules.communication_outside
    if gpu.product.startswith("AMD"):
        return _own_use_on_rocm(gpu, together=together)
    if not together:
        if gpu.total_bytes > _SMALL_CARD_BYTES:
            return OUTSIDE_ALONE
        return OUTSIDE_DESKTOP if "GeForce" in gpu.product else OUTSIDE_SMALL
    if gpu.compute_capability is None or gpu.compute_capability[0] not in _HOPPER_MAJORS:
        return OUTSIDE_TOGETHER_PCIE
    return OUTSIDE_TOGETHER if model.moe is None else OUTSIDE_TOGETHER_EXPERTS


def _own_use_on_rocm(gpu: Gpu, *, together: bool) -> Estimate:
    if not together:
        return OUTSIDE_ROCM
    point, most = (gpu.total_bytes * share // 100 for share in OUTSIDE_ROCM_TOGETHER_PERCENT)
    return Estimate(
        low=OUTSIDE_ROCM.low,
        point=max(OUTSIDE_ROCM.point, point),
        high=max(OUTSIDE_ROCM.high, most),
    )


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


# DeepSeek-V4: rows of four prefills are gathered in bf16.
# Source: vLLM 0.20 vllm/model_executor/layers/deepseek_v4_attention.py PREFILL_CHUNK_SIZE.
_PREFILLS_AT_ONCE, _FINEST_COMPRESSION = 4, 4


def _sparse_buffers_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    """Prefill buffers of sparse attention: so many rows for each token of the longest request."""
    length = settings.max_model_len or 0
    if traits_of(model).is_packed:
        gathered = length // _FINEST_COMPRESSION + (settings.max_num_batched_tokens or 0)
        return _PREFILLS_AT_ONCE * gathered * model.head_dim * 2
    if not traits_of(model).is_sparse:
        return 0
    factor = 5 if length <= _SPARSE_LONG_TOKENS else 2
    return factor * length * (_INDEXER_ROWS * _INDEXER_ROW_BYTES + _LATENT_ROW_BYTES)
