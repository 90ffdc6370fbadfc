"""A module as the tensors a checkpoint stores for it, under the scheme that covers it."""

from collections.abc import Iterator

from shipfitter.core.facts import TensorHeader
from shipfitter.core.modules import Module
from shipfitter.core.quantization import PLAIN, Scheme
from shipfitter.units import ceil_div

_FLOAT_OF_BYTES = {2: "BF16", 4: "F32"}


def stored_tensors(module: Module, scheme: Scheme, *, float_bytes: int) -> Iterator[TensorHeader]:
    """Weight, scales, zero points and bias; names end as the formats' own files name them."""
    plain_float = _FLOAT_OF_BYTES[float_bytes]
    if module.bias_shape:
        yield TensorHeader(f"{module.path}.bias", plain_float, module.bias_shape)
    if scheme is PLAIN or not module.linear:
        yield TensorHeader(f"{module.path}.weight", plain_float, module.shape)
        return
    *stack, rows, columns = module.shape
    for suffix, dtype, shape in _parts(scheme, rows, columns):
        yield TensorHeader(f"{module.path}.{suffix}", dtype, (*stack, *shape))


def _parts(scheme: Scheme, rows: int, columns: int) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Source: what compressed-tensors, AutoAWQ, GPTQModel, modelopt and DeepSeek's fp8 save."""
    bits, size = scheme.bits, scheme.group_size
    packed = 32 // bits if bits < 8 else 4
    groups = ceil_div(columns, size) if size else 1
    if scheme.layout == "fp8_block":
        height, width = scheme.block
        yield "weight", "F8_E4M3", (rows, columns)
        yield "weight_scale_inv", "F32", (ceil_div(rows, height), ceil_div(columns, width))
    elif scheme.layout in ("fp8", "int8"):
        yield "weight", "F8_E4M3" if scheme.layout == "fp8" else "I8", (rows, columns)
        yield "weight_scale", "BF16", (rows, 1)
    elif scheme.layout == "awq":
        yield "qweight", "I32", (columns, ceil_div(rows, packed))
        yield "qzeros", "I32", (groups, ceil_div(rows, packed))
        yield "scales", "F16", (groups, rows)
    elif scheme.layout == "gptq":
        yield "qweight", "I32", (ceil_div(columns, packed), rows)
        yield "qzeros", "I32", (groups, ceil_div(rows, packed))
        yield "scales", "F16", (groups, rows)
        yield "g_idx", "I32", (columns,)
    elif scheme.layout == "packed_int":
        yield "weight_packed", "I32", (rows, ceil_div(columns, packed))
        yield "weight_scale", "BF16", (rows, groups)
        if not scheme.symmetric:
            yield "weight_zero_point", "I32", (ceil_div(rows, packed), groups)
    elif scheme.layout == "nvfp4":
        yield "weight_packed", "U8", (rows, ceil_div(columns, 2))
        yield "weight_scale", "F8_E4M3", (rows, groups)
    elif scheme.layout == "mxfp4":
        yield "weight_blocks", "U8", (rows, ceil_div(columns, 2))
        yield "weight_scales", "U8", (rows, groups)
    else:  # nf4 with doubly quantised absolute maxima, one per 64
        yield "weight_nf4", "U8", (ceil_div(rows * columns, 2),)
        yield "weight_absmax", "U8", (ceil_div(rows * columns, 64),)
