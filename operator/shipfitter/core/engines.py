"""The engine's settings on one card, and what it fills in where nothing is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shipfitter.core.cache_dtype import cache_dtype_for, is_one_byte
from shipfitter.core.capture import capture_sizes, largest_capture_size
from shipfitter.core.defaults import (
    batch_tier,
    block_tokens,
    caches_prefixes,
    model_runner,
    whole_item_tokens,
)
from shipfitter.core.estimate import Estimate
from shipfitter.core.lengths import derived_max_model_len
from shipfitter.core.model import ModelFacts
from shipfitter.core.releases import rules_for
from shipfitter.core.rules import EngineRules
from shipfitter.core.versions import NEWEST_KNOWN, EngineVersion
from shipfitter.core.weights import ParallelLayout

__all__ = ["EngineSettings", "EngineVersion", "Gpu", "Learnt", "derived_max_model_len", "resolve"]


@dataclass(frozen=True, slots=True)
class Learnt:
    """How far predictions of this kind were from what engines then had."""

    spread_bytes: int
    observations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Everything that decides the engine's memory on one rank; the planner writes each as a flag.

    None means "as the engine derives it"; `resolve` leaves no None.
    """

    version: EngineVersion
    layout: ParallelLayout = field(default_factory=ParallelLayout)
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_dtype: str = "auto"
    block_size: int | None = None
    enable_prefix_caching: bool | None = None
    enforce_eager: bool = False
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    max_cudagraph_capture_size: int | None = None
    async_scheduling: bool | None = None
    model_runner: str | None = None  # V1 | V2
    enable_chunked_prefill: bool = True
    disable_hybrid_kv_cache_manager: bool = False
    num_speculative_tokens: int = 0
    decode_context_parallel_size: int = 1
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    compile_cache_warm: bool = False
    mamba_ssm_cache_dtype: str = "auto"  # dtype of recurrent state; auto = the model's
    language_model_only: bool = False  # no modality towers: nothing of them is profiled
    # What flags that are not counted one by one hold on each rank beyond all else.
    extra_bytes: Estimate = field(default_factory=lambda: Estimate.exactly(0))
    # What was learnt of engines like this one; its point is already in extra_bytes.
    calibrated: Learnt | None = None
    speculative_method: str | None = None  # None with drafts: the checkpoint's own layers
    items_per_prompt: Mapping[str, int] | None = None  # --limit-mm-per-prompt: image, video, audio
    cudagraph_mode: str | None = None  # PIECEWISE, FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE
    attention_backend: str | None = None  # FLASH_ATTN, FLASHINFER, TRITON_ATTN, ...
    custom_all_reduce: bool = True
    flashinfer_sampler: bool | None = None  # VLLM_USE_FLASHINFER_SAMPLER
    estimates_graphs: bool | None = None  # VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS
    legacy_engine: bool | None = None  # VLLM_USE_V1=0, while there were two engines (0.8 to 0.10)
    max_loras: int = 0  # 0: no --enable-lora
    max_lora_rank: int = 16
    fully_sharded_loras: bool = False

    @classmethod
    def latest(cls) -> "EngineSettings":
        """Nothing asked of the newest release we have a row for."""
        return cls(version=NEWEST_KNOWN)

    @property
    def rules(self) -> EngineRules:
        """How this release counts."""
        return rules_for(self.version)

    @property
    def tokens_per_sequence(self) -> int:
        """Tokens a decode step computes for one request: itself and its drafts."""
        return 1 + self.num_speculative_tokens

    @property
    def drafts_with_own_layers(self) -> bool:
        """True where the checkpoint's multi-token-prediction layers make the drafts."""
        method = self.speculative_method
        return self.num_speculative_tokens > 0 and (method is None or "mtp" in method)

    @property
    def max_concurrent_batches(self) -> int:
        """Batches in flight at once. Source: vLLM vllm/config/vllm.py max_concurrent_batches."""
        stages = self.layout.pipeline_parallel_size
        asynchronous = self.async_scheduling
        if asynchronous is None:
            asynchronous = self.rules.asynchronous_by_default
        if not asynchronous:
            return stages
        if self.model_runner == "V2":
            return stages + 1
        return 2 if stages == 1 else stages

    @property
    def in_flight_tokens(self) -> int:
        """Tokens for which window and chunk layers keep room beyond what they look back on."""
        batches = self.max_concurrent_batches if self.rules.reserves_batches_in_flight else 1
        return batches * (self.max_num_batched_tokens or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The card as the budget needs it."""

    product: str
    total_bytes: int  # what CUDA calls total
    free_bytes: int | None = None  # measured after context and communication, where known
    foreign_used_bytes: int = 0  # held by other tenants: less free by that much
    nominal_bytes: int = 0  # NVML's total: decides the engine's default tier; 0 = total_bytes
    compute_capability: tuple[int, int] | None = None
    nvlink: bool = False


def resolve(settings: EngineSettings, model: ModelFacts, gpu: Gpu) -> EngineSettings:
    """The settings with every None replaced by the engine's default for version, model and card."""
    settings = _under_its_engine(settings, gpu)
    rules = settings.rules
    version = settings.version
    length = settings.max_model_len or derived_max_model_len(model, version)
    seqs, tokens = _batch_sizes(settings, model, gpu, length)
    cache_dtype = cache_dtype_for(model, settings.kv_cache_dtype, version, gpu.compute_capability)
    sizes, largest = _captured(settings, model, gpu, seqs=seqs, tokens=tokens)
    asynchronous = settings.async_scheduling
    utilization = settings.gpu_memory_utilization
    return replace(
        settings,
        max_model_len=length,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        gpu_memory_utilization=rules.default_utilization if utilization is None else utilization,
        block_size=settings.block_size
        or block_tokens(
            model,
            version,
            compute_capability=gpu.compute_capability,
            one_byte_cache=is_one_byte(cache_dtype),
            backend=settings.attention_backend,
        ),
        enable_prefix_caching=caches_prefixes(model, rules, settings.enable_prefix_caching),
        cudagraph_capture_sizes=sizes,
        max_cudagraph_capture_size=largest,
        async_scheduling=rules.asynchronous_by_default if asynchronous is None else asynchronous,
        model_runner=settings.model_runner or model_runner(model, version),
    )


# While both engines were in one package, V0 ran on cards below compute capability 8.0 and where it
# was asked for; it counted as in its last release of its own.
# Source: vLLM 0.8 to 0.10 vllm/engine/arg_utils.py _is_v1_supported_oracle.
_LAST_OF_ITS_OWN = EngineVersion(0, 7, 3)
_ONE_ENGINE_SINCE = EngineVersion(0, 11, 0)
_SECOND_ENGINE_CAPABILITY = (8, 0)


def _under_its_engine(settings: EngineSettings, gpu: Gpu) -> EngineSettings:
    """The settings with the release whose engine runs, where a package holds two."""
    if settings.version >= _ONE_ENGINE_SINCE or settings.version <= _LAST_OF_ITS_OWN:
        return settings
    old_card = (gpu.compute_capability or _SECOND_ENGINE_CAPABILITY) < _SECOND_ENGINE_CAPABILITY
    legacy = old_card if settings.legacy_engine is None else settings.legacy_engine
    return replace(settings, version=_LAST_OF_ITS_OWN) if legacy else settings


def _batch_sizes(
    settings: EngineSettings, model: ModelFacts, gpu: Gpu, length: int
) -> tuple[int, int]:
    """Sequences and batched tokens. Source: vLLM vllm/engine/arg_utils.py _set_default_max_num_*"""
    rules = settings.rules
    tier = batch_tier(
        rules,
        product=gpu.product,
        nominal_bytes=gpu.nominal_bytes or gpu.total_bytes,
        compute_capability=gpu.compute_capability,
    )
    seqs = settings.max_num_seqs or tier.max_num_seqs
    tokens = settings.max_num_batched_tokens
    if tokens is None:
        tokens = tier.max_num_batched_tokens
        if not settings.enable_chunked_prefill:
            tokens = max(tokens, length)
        elif rules.legacy_engine and (length <= _LEGACY_CHUNKED_FROM or model.is_multimodal):
            tokens = max(length, _LEGACY_BATCHED_TOKENS)
        if not settings.language_model_only:
            tokens = max(tokens, whole_item_tokens(model, settings.version))
        if rules.caps_batched_tokens:
            tokens = min(tokens, seqs * length)
    return settings.max_num_seqs or min(seqs, tokens), tokens


# The engine before V1 prefilled in chunks only above this length, multimodal prompts never.
# Source: vLLM 0.6-0.7 vllm/engine/arg_utils.py create_engine_config.
_LEGACY_CHUNKED_FROM = 32768
_LEGACY_BATCHED_TOKENS = 2048


def _captured(
    settings: EngineSettings, model: ModelFacts, gpu: Gpu, *, seqs: int, tokens: int
) -> tuple[tuple[int, ...], int]:
    """The captured sizes and the largest of them; none when eager."""
    rules = settings.rules
    if settings.enforce_eager:
        return (), 0
    if settings.cudagraph_capture_sizes is not None:
        sizes = tuple(sorted(settings.cudagraph_capture_sizes))
        return sizes, max(sizes, default=0)
    largest = settings.max_cudagraph_capture_size
    if largest is None:
        largest = largest_capture_size(
            rules,
            architecture=model.architecture,
            compute_capability=gpu.compute_capability,
            max_num_seqs=seqs,
            max_num_batched_tokens=tokens,
            tokens_per_sequence=settings.tokens_per_sequence,
        )
    sizes = capture_sizes(
        largest=largest,
        fine_steps=rules.fine_capture_steps,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        tokens_per_sequence=settings.tokens_per_sequence,
    )
    return sizes, largest
