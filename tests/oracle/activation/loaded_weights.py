"""What the engine does to weights after loading, by its results' shapes.

Choice of kernels, repacking and the experts' kernel objects are the engine's own code; only what
reads or reorders values is replaced by tensors of the size that it would return.
"""

import sys
from typing import Any


def finish_loading(model: Any, config: Any) -> None:
    """The engine's own post-processing of every layer."""
    import torch
    from vllm.model_executor.layers.quantization.kv_cache import BaseKVCacheMethod
    from vllm.model_executor.model_loader.utils import process_weights_after_loading

    replaced = _by_shape(torch)
    for name, module in list(sys.modules.items()):
        if name.startswith("vllm.model_executor"):
            for function in replaced.keys() & vars(module).keys():
                setattr(module, function, replaced[function])
    BaseKVCacheMethod.process_weights_after_loading = lambda self, layer: None  # reads scales
    with torch.compiler.set_stance("force_eager"):
        process_weights_after_loading(model, config.model_config, torch.device("meta"))


def _by_shape(torch: Any) -> dict[str, Any]:
    """Source: vLLM 0.32 vllm/model_executor/layers/quantization/utils: quant and marlin utils."""

    def integers(*shape: int) -> Any:
        return torch.empty(shape, dtype=torch.int32, device="meta")

    def zero_points(_: Any, size_k: int, size_n: int, num_bits: int, *__: Any, **___: Any) -> Any:
        return integers(size_k, size_n * num_bits // 32)

    def experts_zero_points(
        points: Any, size_k: int, size_n: int, num_bits: int, *_: Any, **__: Any
    ) -> Any:
        return integers(points.shape[0], size_k, size_n * num_bits // 32)

    def attributes(weight: Any, given: dict[str, Any] | None) -> None:
        for name, value in (given or {}).items():
            setattr(weight, name, value)

    return {
        "unpack_cols": lambda packed, num_bits, size_k, size_n: integers(size_k, size_n),
        "pack_cols": lambda values, num_bits, size_k, size_n: zero_points(
            None, size_k, size_n, num_bits
        ),
        "awq_to_marlin_zero_points": zero_points,
        "marlin_zero_points": zero_points,
        "moe_awq_to_marlin_zero_points": experts_zero_points,
        "set_weight_attrs": attributes,
    }
