"""What the engine takes where nothing is asked: batch sizes, runner, prefix caching, block size."""

from shipfitter.core.model import ModelFacts
from shipfitter.core.rules import BatchTier, EngineRules, HybridPrefixCaching
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion

# Source: vLLM vllm/config/cache.py CacheConfig.DEFAULT_BLOCK_SIZE.
DEFAULT_BLOCK_TOKENS = 16
LATENT_KERNEL_BLOCK_TOKENS = 64  # FlashMLA, FlashInfer MLA, every sparse MLA backend
CUTLASS_MLA_BLOCK_TOKENS = 128
PACKED_BLOCK_TOKENS = 256  # DeepSeek-V4

# Classes whose recurrent layers can cache prefixes in 0.12-0.14, and in mode `all` to 0.31.
# Source: vLLM 0.12-0.31 vllm/model_executor/models: SupportsMambaPrefixCaching.
LISTED_FOR_PREFIX_CACHING = frozenset(
    {
        "BambaForCausalLM",
        "FalconH1ForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "JambaForCausalLM",
        "MambaForCausalLM",
        "Mamba2ForCausalLM",
        "NemotronHForCausalLM",
        "Zamba2ForCausalLM",
    }
)

# MoE and hybrid classes that the V2 runner takes before it takes everything (0.29), by release.
# Source: vLLM vllm/config/vllm.py use_v2_model_runner, 0.22 to 0.28.
_V2_CLASSES: tuple[tuple[EngineVersion, frozenset[str]], ...] = (
    (EngineVersion(0, 22, 0), frozenset({"Qwen3ForCausalLM"})),
    (EngineVersion(0, 23, 0), frozenset({"LlamaForCausalLM", "MistralForCausalLM"})),
    (
        EngineVersion(0, 24, 0),
        frozenset({"DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM"}),
    ),
    (
        EngineVersion(0, 26, 0),
        frozenset({"InklingForCausalLM", "LongcatFlashNgramForCausalLM"}),
    ),
    (EngineVersion(0, 27, 0), frozenset({"KimiK3ForCausalLM"})),
    (EngineVersion(0, 28, 0), frozenset({"DeepseekV4ForCausalLM"})),
)
_V2_FOR_DENSE = EngineVersion(0, 25, 0)
_V2_FOR_ALL = EngineVersion(0, 29, 0)
_V2_QUANTISED = EngineVersion(0, 23, 0)

# Classes whose image tokens see each other both ways: an item is never split, so the default batch
# holds the largest one. Source: vLLM vllm/engine/arg_utils.py; 2,496 by two logs of Gemma 4 12B.
_LARGEST_ITEM_TOKENS = {
    "Gemma4ForConditionalGeneration": 2496,
    "Gemma4UnifiedForConditionalGeneration": 2496,
}
_WHOLE_ITEMS_SINCE = EngineVersion(0, 22, 0)


def batch_tier(
    rules: EngineRules,
    *,
    product: str,
    nominal_bytes: int,
    compute_capability: tuple[int, int] | None,
) -> BatchTier:
    """The row of default batch sizes for a card.

    Source: vLLM vllm/engine/arg_utils.py EngineArgs.get_batch_defaults.
    """
    name = product.lower()
    for tier in rules.tiers:
        if (
            nominal_bytes >= tier.min_nominal_bytes
            and not any(excluded in name for excluded in tier.excluded_products)
            and (
                tier.excluded_compute_capability is None
                or compute_capability != tier.excluded_compute_capability
            )
        ):
            return tier
    return rules.tiers[-1]


def whole_item_tokens(model: ModelFacts, version: EngineVersion) -> int:
    """Tokens the default batch must hold at least; 0 for models whose items may be split.

    Gemma 4's E series, the one that shares caches between layers, looks back only (one log).
    """
    if version < _WHOLE_ITEMS_SINCE or not model.is_multimodal or traits_of(model).shares_caches:
        return 0
    return _LARGEST_ITEM_TOKENS.get(model.architecture, 0)


def model_runner(model: ModelFacts, version: EngineVersion) -> str:
    """V1 or V2: the runner a generative model gets unless the environment says otherwise."""
    if version >= _V2_FOR_ALL:
        return "V2"
    if version >= _V2_FOR_DENSE and model.moe is None and not traits_of(model).has_state:
        return "V2"
    if version < _V2_QUANTISED and model.quantization is not None:
        return "V1"
    listed = any(
        since <= version and model.architecture in classes for since, classes in _V2_CLASSES
    )
    return "V2" if listed else "V1"


def caches_prefixes(model: ModelFacts, rules: EngineRules, asked: bool | None) -> bool:
    """Whether prefixes are cached in the end.

    Source: vLLM vllm/engine/arg_utils.py _set_default_chunked_prefill_and_prefix_caching_args,
    vllm/config/model.py is_prefix_caching_supported.
    """
    traits = traits_of(model)
    if not traits.has_state:
        return not rules.legacy_engine if asked is None else asked
    if not traits.is_hybrid:
        return False
    match rules.hybrid_prefix_caching:
        case HybridPrefixCaching.NEVER:
            return False
        case HybridPrefixCaching.LISTED:
            return asked is True and model.architecture in LISTED_FOR_PREFIX_CACHING
        case HybridPrefixCaching.WHEN_ASKED:
            return asked is True
        case HybridPrefixCaching.DEFAULT:
            return asked is not False


# FlashAttention 4 on compute capability 9.x reads fp8 caches of the widest heads in such tiles.
# Source: vLLM 0.32 (not 0.26) v1/attention/backends/flash_attn.py get_preferred_block_size.
_WIDE_HEADS_IN_FP8 = EngineVersion(0, 32, 0)
_WIDE_HEAD_DIM = 512
_WIDE_BLOCK_TOKENS = 64


def _has_wide_heads(model: ModelFacts) -> bool:
    return any(layer.head_dim == _WIDE_HEAD_DIM for layer in model.layers)


# Source: vLLM vllm/v1/attention/backends/mla get_supported_kernel_block_sizes.
_BLOCKS_OF_LATENT_BACKENDS = {
    "FLASHMLA": LATENT_KERNEL_BLOCK_TOKENS,
    "CUTLASS_MLA": CUTLASS_MLA_BLOCK_TOKENS,
    "FLASH_ATTN_MLA": DEFAULT_BLOCK_TOKENS,
    "TRITON_MLA": DEFAULT_BLOCK_TOKENS,
}


def block_tokens(
    model: ModelFacts,
    version: EngineVersion,
    *,
    compute_capability: tuple[int, int] | None,
    one_byte_cache: bool,
    backend: str | None = None,
) -> int:
    """Tokens in a block of the attention backend that was asked for, or that the card would pick.

    Source: vLLM vllm/platforms/cuda.py _get_backend_priorities, and each backend's own sizes.
    """
    traits = traits_of(model)
    if traits.is_packed:
        return PACKED_BLOCK_TOKENS
    hopper = compute_capability is not None and compute_capability[0] == 9
    if not traits.has_latent:
        wide = hopper and one_byte_cache and version >= _WIDE_HEADS_IN_FP8
        return _WIDE_BLOCK_TOKENS if wide and _has_wide_heads(model) else DEFAULT_BLOCK_TOKENS
    if traits.is_sparse:
        return LATENT_KERNEL_BLOCK_TOKENS
    stated = _BLOCKS_OF_LATENT_BACKENDS.get(backend or "")
    return stated or _latent_block_tokens(version, compute_capability, one_byte_cache)


def _latent_block_tokens(
    version: EngineVersion, compute_capability: tuple[int, int] | None, one_byte_cache: bool
) -> int:
    major = compute_capability[0] if compute_capability else 0
    if major == 10:
        older = version < EngineVersion(0, 11, 0)
        return CUTLASS_MLA_BLOCK_TOKENS if older else LATENT_KERNEL_BLOCK_TOKENS
    # Forced to FlashMLA's block at first, whichever backend ran (a log of 0.15); later only where
    # FlashMLA runs: FlashAttention's latent kernels keep 16-bit caches only.
    if major == 9 and (version < EngineVersion(0, 18, 0) or one_byte_cache):
        return LATENT_KERNEL_BLOCK_TOKENS
    return DEFAULT_BLOCK_TOKENS
