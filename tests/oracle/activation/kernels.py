"""Kernels that cannot run here, by what they leave behind: results of the right size, no values.

The engine's compiled extensions are missing and Triton has no card. Two operators stand for all of
an extension's: one makes a tensor, one writes into a tensor that is given. Both are torch operators
in their own right, so that the compiler keeps them as opaque calls with buffers of their own, as it
does with the real ones.
"""

from collections.abc import Callable
from typing import Any

from oracle import pretended_gpu

_LIBRARY: list[Any] = []  # torch drops the operators with the library


def pretend_kernels() -> None:
    """After the card is pretended, before a model is built."""
    made, written = _operators()
    shapes = _results(made)
    about_the_card = pretended_gpu.Operator.__call__

    def call(self: Any, *given: Any, **named: Any) -> Any:
        name = self.__name__.rsplit(".", 1)[-1]
        if name in shapes:
            return shapes[name](*given, **named)
        if name in pretended_gpu.ABLE_FROM or name.endswith("get_workspace_size"):
            return about_the_card(self, *given, **named)
        tensors = _tensors(given, named)
        if name.startswith("per_token_group"):  # the input stands first, the output second
            tensors[:2] = tensors[1::-1]
        if tensors:
            written(tensors[0], tensors[1:])
        return None

    pretended_gpu.Operator.__call__ = call  # type: ignore[method-assign]
    _quiet_triton()
    _pretend_flashinfer_sampler()


def _tensors(given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    import torch

    return [it for it in (*given, *named.values()) if isinstance(it, torch.Tensor)]


def _operators() -> tuple[Callable[..., Any], Callable[..., None]]:
    import torch

    library = torch.library.Library("shipfitter_oracle", "DEF")
    # An input is named once: the compiler makes a copy of it for every argument it stands in.
    library.define("made(Tensor read, SymInt[] shape, ScalarType dtype) -> Tensor")
    library.define("written(Tensor(a!) target, Tensor[] read) -> ()")

    def made(read: Any, shape: Any, dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype, device=read.device)

    for key in ("Meta", "CUDA", "CPU"):
        library.impl("made", made, key)
        library.impl("written", lambda target, read: None, key)
    _LIBRARY.append(library)
    return torch.ops.shipfitter_oracle.made, torch.ops.shipfitter_oracle.written


def _results(made: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Operators that make their result, by name.

    Source: vLLM 0.32 vllm/_custom_ops.py: the order of their arguments.
    """
    import torch

    def dense_marlin(rows: Any, out: Any, *more: Any, **_: Any) -> Any:
        height, width = more[8:10]
        return made(rows, (height, width), rows.dtype) if out is None else out

    def experts_marlin(rows: Any, out: Any, *more: Any, **_: Any) -> Any:
        if out is not None:
            torch.ops.shipfitter_oracle.written(out, [rows])
            return out
        top_k, height, width = more[12], more[-9], more[-8]
        return made(rows, (height * top_k, width), rows.dtype)

    def repacked(weight: Any, rows: int, columns: int, bits: int, *_: Any) -> Any:
        return made(weight, (rows // 16, columns * bits // 2), torch.int32)

    def chosen(scores: Any, _: int, __: int, top_k: int, *___: Any, **____: Any) -> Any:
        shape = (scores.shape[0], top_k)
        weights = made(scores, shape, torch.float32)
        return weights, made(scores, shape, torch.int32)

    return {
        "marlin_gemm": dense_marlin,
        "moe_wna16_marlin_gemm": experts_marlin,
        "gptq_marlin_repack": repacked,
        "awq_marlin_repack": repacked,
        "grouped_topk": chosen,
        "machete_prepack_B": lambda weight, *_, **__: made(weight, weight.shape, weight.dtype),
        "machete_mm": lambda rows, weight, *_, **__: made(
            rows, (rows.shape[0], weight.shape[1]), rows.dtype
        ),
        "awq_gemm": lambda rows, weight, *_: made(
            rows, (rows.shape[0], weight.shape[1] * 8), rows.dtype
        ),
    }


def _quiet_triton() -> None:
    """Its kernels write into tensors that exist: calling one makes nothing."""
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.jit import JITFunction

    for kind in (JITFunction, Autotuner, Heuristics):
        kind.run = lambda self, *_, **__: None


def _pretend_flashinfer_sampler() -> None:
    """Masked logits, then probabilities, both in float32 over the vocabulary."""
    import flashinfer
    import torch

    def sampled(logits: Any, *_: Any, **__: Any) -> Any:
        masked = torch.empty_like(logits, dtype=torch.float32)
        probabilities = torch.softmax(masked, dim=-1)
        return torch.empty(probabilities.shape[0], dtype=torch.int32, device=logits.device)

    flashinfer.sampling.top_k_top_p_sampling_from_logits = sampled
