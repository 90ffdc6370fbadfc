"""How a checkpoint stores one linear layer under its quantization_config."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from world.hub.virtual_files import Tensor


@dataclass(frozen=True)
class Linear:
    """A linear layer before storage: `name` without `.weight`."""

    name: str
    rows: int  # output features
    columns: int  # input features
    bias: bool = False
    keep: bool = False  # never quantised: router, head, projections of the drafter


def stored(linear: Linear, config: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors of this layer in the file.

    Source: checkpoints published with each method: names, dtypes and scale shapes.
    """
    dtype = dtype_of(config)
    scheme = config.get("quantization_config") or {}
    method = "none" if linear.keep else str(scheme.get("quant_method", "none"))
    yield from METHODS[method](linear, dtype, scheme)
    if linear.bias:
        yield Tensor(f"{linear.name}.bias", dtype, (linear.rows,))


def dtype_of(config: Mapping[str, Any]) -> str:
    """The dtype of all that is not quantised, in the file format's words."""
    text = config.get("text_config") or {}
    name = config.get("torch_dtype") or config.get("dtype") or text.get("dtype") or "bfloat16"
    return {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}[name]


def _plain(linear: Linear, dtype: str, _: Mapping[str, Any]) -> Iterator[Tensor]:
    yield Tensor(f"{linear.name}.weight", dtype, (linear.rows, linear.columns))


def _fp8(linear: Linear, _: str, scheme: Mapping[str, Any]) -> Iterator[Tensor]:
    yield Tensor(f"{linear.name}.weight", "F8_E4M3", (linear.rows, linear.columns))
    block = scheme.get("weight_block_size")
    if not block:
        yield Tensor(f"{linear.name}.weight_scale", "F32", (1,))
        return
    scales = (-(-linear.rows // block[0]), -(-linear.columns // block[1]))
    # DeepSeek stores its scales in fp32, Qwen in bf16.
    scale_dtype = "BF16" if "modules_to_not_convert" in scheme else "F32"
    yield Tensor(f"{linear.name}.weight_scale_inv", scale_dtype, scales)


def _compressed_tensors(linear: Linear, dtype: str, scheme: Mapping[str, Any]) -> Iterator[Tensor]:
    weights = next(iter(scheme["config_groups"].values()))["weights"]
    if weights["num_bits"] == 8:
        kind = "F8_E4M3" if weights["type"] == "float" else "I8"
        yield Tensor(f"{linear.name}.weight", kind, (linear.rows, linear.columns))
        yield Tensor(f"{linear.name}.weight_scale", dtype, (linear.rows, 1))
        return
    groups = linear.columns // weights["group_size"]
    yield Tensor(f"{linear.name}.weight_packed", "I32", (linear.rows, linear.columns // 8))
    yield Tensor(f"{linear.name}.weight_scale", dtype, (linear.rows, groups))
    yield Tensor(f"{linear.name}.weight_shape", "I64", (2,))


def _awq(linear: Linear, _: str, scheme: Mapping[str, Any]) -> Iterator[Tensor]:
    groups = linear.columns // scheme["group_size"]
    yield Tensor(f"{linear.name}.qweight", "I32", (linear.columns, linear.rows // 8))
    yield Tensor(f"{linear.name}.qzeros", "I32", (groups, linear.rows // 8))
    yield Tensor(f"{linear.name}.scales", "F16", (groups, linear.rows))


def _gptq(linear: Linear, _: str, scheme: Mapping[str, Any]) -> Iterator[Tensor]:
    packed = 32 // scheme["bits"]
    groups = linear.columns // scheme["group_size"]
    yield Tensor(f"{linear.name}.qweight", "I32", (linear.columns // packed, linear.rows))
    yield Tensor(f"{linear.name}.qzeros", "I32", (groups, linear.rows // packed))
    yield Tensor(f"{linear.name}.scales", "F16", (groups, linear.rows))
    yield Tensor(f"{linear.name}.g_idx", "I32", (linear.columns,))


METHODS = {
    "none": _plain,
    "mxfp4": _plain,  # only the experts are quantised, and these are no Linear here
    "fp8": _fp8,
    "compressed-tensors": _compressed_tensors,
    "awq": _awq,
    "gptq": _gptq,
}
