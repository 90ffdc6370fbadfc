"""The dtype a cache really has: asked for, declared by the checkpoint, or forced by a backend."""

from shipfitter.core.model import ModelFacts
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion
from shipfitter.errors import InvalidSpecError

_ONE_BYTE = frozenset(
    {"fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "int8", "fp8_per_token_head", "int8_per_token_head"}
)
_MODEL_DTYPE_BYTES = {"float32": 4, "float": 4}  # every other model dtype takes two
_ASKED_TWO_BYTES = frozenset({"bfloat16", "float16", "half"})
_OTHER = frozenset({"auto", "nvfp4", "int4_per_token_head", "fp8_ds_mla", "nvfp4_ds_mla"})
_KNOWN = _ONE_BYTE | _ASKED_TWO_BYTES | _OTHER
SPARSE_ROW_BYTES = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
# Source: vLLM vllm/v1/kv_cache_interface.py: one fp32 scale for keys and one for values.
PER_HEAD_SCALES_BYTES = 8


def is_one_byte(cache_dtype: str) -> bool:
    """True for the 8-bit dtypes."""
    return cache_dtype in _ONE_BYTE


def model_dtype_bytes(model: ModelFacts) -> int:
    """Bytes of one activation, and of one cached element under `auto`."""
    return _MODEL_DTYPE_BYTES.get(model.dtype.removeprefix("torch."), 2)


def side_bytes(elements: int, cache_dtype: str, model: ModelFacts) -> int:
    """Bytes of one head's keys (or values) of one token, per-token-head scales not included.

    Source: vLLM vllm/v1/kv_cache_interface.py; nvfp4 keeps one fp8 scale for 16 elements.
    """
    if cache_dtype == "nvfp4":
        return elements // 2 + elements // 16
    if cache_dtype == "int4_per_token_head":
        return elements // 2
    if is_one_byte(cache_dtype):
        return elements
    if cache_dtype in _ASKED_TWO_BYTES:
        return 2 * elements
    return elements * model_dtype_bytes(model)


def head_scale_bytes(cache_dtype: str) -> int:
    """Scales one head of one token carries, keys and values together."""
    return PER_HEAD_SCALES_BYTES if cache_dtype.endswith("per_token_head") else 0


def cache_dtype_for(
    model: ModelFacts,
    asked: str,
    version: EngineVersion,
    compute_capability: tuple[int, int] | None,
) -> str:
    """The cache's dtype: `auto` for the model's own, or a name that says its bytes.

    Source: vLLM vllm/config/cache.py, vllm/utils/torch_utils.py resolve_kv_cache_dtype_string.

    Raises InvalidSpecError for a dtype that no backend of this engine and card takes.
    """
    if asked not in _KNOWN:
        raise InvalidSpecError(
            (
                f"kvCacheDtype: sizes of this dtype are not known, got {asked!r}; use auto, "
                "bfloat16, fp8 or nvfp4",
            )
        )
    dtype = asked
    if asked == "auto" and model.quantization is not None:
        dtype = model.quantization.kv_cache_scheme or "auto"
    traits = traits_of(model)
    if traits.is_packed:
        return _packed(asked, version)
    if traits.is_sparse:
        return _sparse(model, dtype, version, compute_capability)
    if dtype == "nvfp4" and traits.has_latent:
        raise InvalidSpecError(
            ("kvCacheDtype: latent attention takes no nvfp4 cache, got 'nvfp4'; use auto or fp8",)
        )
    return dtype


_PACKED_SINCE = EngineVersion(0, 20, 0)
_PACKED_AUTO_SINCE = EngineVersion(0, 30, 0)


def _packed(asked: str, version: EngineVersion) -> str:
    """DeepSeek-V4 keeps rows of 584 bytes, whatever 8-bit dtype is asked.

    Source: vLLM 0.20 to 0.30 vllm/model_executor/models/deepseek_v4.py.
    """
    if version < _PACKED_SINCE:
        raise InvalidSpecError(
            (f"engine version: vLLM {version} does not know DeepSeek-V4; use 0.20 or newer",)
        )
    if not is_one_byte(asked) and (asked != "auto" or version < _PACKED_AUTO_SINCE):
        raise InvalidSpecError(
            (f"kvCacheDtype: DeepSeek-V4 on vLLM {version} takes fp8 only, got {asked!r}; use fp8",)
        )
    return "fp8_ds_mla"


_SPARSE_SINCE_SM12 = EngineVersion(0, 24, 0)
_SPARSE_FOLLOWS_BACKEND = EngineVersion(0, 18, 0)
_SPARSE_AUTO_IS_FP8 = EngineVersion(0, 11, 0)  # 0.11 alone
_SPARSE_SM9_FP8_E4M3 = EngineVersion(0, 30, 0)
_GLM_AUTO_IS_FP8 = EngineVersion(0, 32, 0)


def _sparse(
    model: ModelFacts,
    dtype: str,
    version: EngineVersion,
    compute_capability: tuple[int, int] | None,
) -> str:
    """The layout of a sparse latent cache: it follows the backend, and that follows the card.

    656 bytes (`fp8_ds_mla`), 576 (`fp8`), or 1,152 (`auto`) a token and layer.
    Source: vLLM vllm/model_executor/layers/attention/mla_attention.py
    _canonicalize_sparse_mla_kv_cache_dtype, vllm/platforms/cuda.py _get_backend_priorities.
    """
    major = compute_capability[0] if compute_capability else 9
    if major < 9 or (major >= 12 and version < _SPARSE_SINCE_SM12):
        raise InvalidSpecError(
            (
                f"gpus: vLLM {version} has no sparse attention for compute capability "
                f"{major}.x; use compute capability 9.0 or 10.0"
                + (", or vLLM 0.24 or newer" if major >= 12 else ""),
            )
        )
    if major >= 12 or dtype in SPARSE_ROW_BYTES:
        return "fp8_ds_mla" if major >= 12 else dtype
    if dtype in ("auto", *_ASKED_TWO_BYTES):
        return _sparse_auto(model, dtype, version, major)
    if version < _SPARSE_FOLLOWS_BACKEND or (major == 9 and dtype != "fp8_e4m3"):
        return "fp8_ds_mla"
    if major == 9 and version < _SPARSE_SM9_FP8_E4M3:
        raise InvalidSpecError(
            (
                f"kvCacheDtype: vLLM {version} has no sparse backend for fp8_e4m3 on compute "
                "capability 9.x, got 'fp8_e4m3'; use fp8",
            )
        )
    return "fp8"


def _sparse_auto(model: ModelFacts, dtype: str, version: EngineVersion, major: int) -> str:
    if dtype == "auto" and (version.major, version.minor) == (0, _SPARSE_AUTO_IS_FP8.minor):
        return "fp8_ds_mla"
    glm = model.architecture.startswith("GlmMoeDsa")
    if dtype == "auto" and glm and major == 10 and version >= _GLM_AUTO_IS_FP8:
        return "fp8"
    return dtype
