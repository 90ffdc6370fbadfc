"""The engine's own defaults for what the command line leaves open.

Source: vLLM 0.33 vllm/engine/arg_utils.py get_batch_defaults, vllm/config/*.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from world.engine.architecture import layer_kinds, model_dtype, text_config
from world.engine.lengths import length_asked
from world.engine.scenario import Device
from world.engine.versions import Version

GIB = 2**30
V2_MOE = ("DeepseekV2", "Qwen2Moe", "GraniteMoe")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every value the start-up arithmetic needs."""

    version: Version
    model: str
    dtype: str
    length: int
    auto_fit: bool
    sequences: int
    batched_tokens: int
    utilization: float
    tensor: int
    pipeline: int
    data: int
    decode_context: int
    block_size: int
    cache_dtype: str
    prefix_caching: bool
    eager: bool
    asynchronous: bool
    runner: str  # V1, V2
    is_hybrid: bool
    is_moe: bool
    captured_sizes: list[int]
    served_names: list[str]
    expert_parallel: bool = False

    @property
    def in_flight_tokens(self) -> int:
        """Tokens of batches that may be under way: one batch before 0.26."""
        if self.version < (0, 26, 0):
            return self.batched_tokens
        if not self.asynchronous:
            return self.pipeline * self.batched_tokens
        v1 = 2 if self.pipeline == 1 else self.pipeline
        return (self.pipeline + 1 if self.runner == "V2" else v1) * self.batched_tokens

    @property
    def cache_bytes(self) -> int:
        return 1 if self.cache_dtype.startswith("fp8") else {"float32": 4}.get(self.dtype, 2)


def resolve(
    given: Mapping[str, Any], config: Mapping[str, Any], device: Device, version: Version
) -> Settings:
    """All settings; ConfigError for a length the model does not have."""
    kinds = set(layer_kinds(config))
    is_hybrid = "mamba" in kinds and bool(kinds & {"full", "mla"})
    text = text_config(config)
    is_moe = any(text.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    length, auto_fit = length_asked(given, config, version)
    sequences, batched = _batch(given, device, version, length)
    eager = bool(given.get("enforce_eager"))
    return Settings(
        version=version,
        model=str(given["model"]),
        dtype=model_dtype(config, str(given.get("dtype", "auto"))),
        length=length,
        auto_fit=auto_fit,
        sequences=sequences,
        batched_tokens=batched,
        utilization=given.get("gpu_memory_utilization", 0.92 if version >= (0, 20, 0) else 0.9),
        tensor=given.get("tensor_parallel_size", 1),
        pipeline=given.get("pipeline_parallel_size", 1),
        data=given.get("data_parallel_size", 1),
        decode_context=given.get("decode_context_parallel_size", 1),
        block_size=given.get("block_size") or _block_size(given, config, device),
        cache_dtype=_cache_dtype(given, config),
        prefix_caching=given.get("enable_prefix_caching", not is_hybrid or version >= (0, 28, 0)),
        eager=eager,
        asynchronous=given.get("async_scheduling", True),
        runner=_runner(config, version, is_moe=is_moe, is_hybrid=is_hybrid),
        is_hybrid=is_hybrid,
        is_moe=bool(is_moe),
        captured_sizes=[] if eager else _captured(given, sequences, batched, device, version),
        served_names=given.get("served_model_name") or [str(given["model"])],
        expert_parallel=bool(given.get("enable_expert_parallel")),
    )


def _batch(
    given: Mapping[str, Any], device: Device, version: Version, length: int
) -> tuple[int, int]:
    gib = device.nominal_bytes / GIB
    name = device.name.lower()
    sequences, batched = 256, 2048
    if gib >= 160 and version >= (0, 28, 0):
        sequences, batched = 1024, 16384
    elif gib >= 70 and "a100" not in name and "gb10" not in name:
        sequences, batched = 1024, 8192
    asked = given.get("max_num_batched_tokens")
    if given.get("enable_chunked_prefill") is False:
        batched = max(batched, length)
    if asked is None:
        asked = min(batched, given.get("max_num_seqs", sequences) * length)
    return given.get("max_num_seqs") or min(sequences, asked), asked


def _block_size(given: Mapping[str, Any], config: Mapping[str, Any], device: Device) -> int:
    text = text_config(config)
    if not text.get("kv_lora_rank"):
        return 16
    if text.get("index_topk") or str(given.get("kv_cache_dtype", "auto")).startswith("fp8"):
        return 64
    return 32 if device.compute_capability[0] == 10 else 16


def _cache_dtype(given: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    asked = str(given.get("kv_cache_dtype", "auto"))
    scheme = config.get("quantization_config") or {}
    if asked == "auto" and (
        scheme.get("kv_cache_scheme") or scheme.get("kv_cache_quant_algo") == "FP8"
    ):
        return "fp8_e4m3"
    return asked


def _runner(config: Mapping[str, Any], version: Version, *, is_moe: bool, is_hybrid: bool) -> str:
    if version >= (0, 29, 0):
        return "V2"
    architecture = str((config.get("architectures") or [""])[0])
    if version >= (0, 25, 0) and not is_hybrid:
        return "V2" if not is_moe or architecture.startswith(V2_MOE) else "V1"
    early = {22: ("Qwen3For",), 23: ("Qwen3For", "LlamaFor", "MistralFor")}
    early[24] = (*early[23], *V2_MOE)
    return "V2" if architecture.startswith(early.get(version[1], ("-",))) else "V1"


def _captured(
    given: Mapping[str, Any], sequences: int, batched: int, device: Device, version: Version
) -> list[int]:
    if sizes := given.get("cudagraph_capture_sizes"):
        return sorted({int(size) for size in sizes})
    top = 1024 if device.compute_capability[0] == 10 and version >= (0, 28, 0) else 512
    most = given.get("max_cudagraph_capture_size") or min(2 * sequences, top, batched)
    grid = [1, 2, 4, *range(8, 256, 8), *range(256, most + 1, 16)]
    extra = [size for size in (sequences, batched) if size <= most]
    return sorted({size for size in grid if size <= most} | set(extra))
