"""The oldest card a release runs a quantised checkpoint on: its methods have moved both ways.

Source: get_min_capability in vLLM vllm/model_executor/layers/quantization of 0.6.1 to 0.33, release
by release: fp8.py, awq.py, gptq.py, gptq_marlin.py (later auto_gptq.py), modelopt.py, mxfp4.py, and
compressed_tensors/schemes.
"""

from collections.abc import Mapping
from types import MappingProxyType

from shipfitter.core.facts import Quantization

Capability = tuple[int, int]
_Steps = tuple[tuple[Capability, Capability], ...]  # (first release, capability), oldest first

_ALWAYS = (0, 0)
# A compressed-tensors checkpoint of 4 bits in groups of 16 is NVFP4; other 4 and 8-bit weights are
# packed integers; fp8 falls back to weights alone where its own kernels do not run.
_PACKED: _Steps = ((_ALWAYS, (8, 0)), ((0, 12), (7, 5)))
_NVFP4: _Steps = ((_ALWAYS, (10, 0)), ((0, 9), (8, 0)), ((0, 16), (7, 5)))
_NVFP4_GROUP, _MXFP8_GROUP = 16, 32
# GPTQ declares 6.0 to this day, and its plain kernels ran there; the engine that had an attention
# for cards before 7.5 is gone since 0.11.
_OF_METHOD: Mapping[str, _Steps] = MappingProxyType(
    {
        "fp8": ((_ALWAYS, (8, 0)), ((0, 14), (7, 5))),
        "gptq": ((_ALWAYS, (6, 0)), ((0, 11), (7, 5))),
        "auto-round": ((_ALWAYS, (6, 0)), ((0, 11), (7, 5))),
        "inc": ((_ALWAYS, (6, 0)), ((0, 11), (7, 5))),
        "modelopt:FP8": ((_ALWAYS, (8, 9)), ((0, 27), (8, 0))),
        "modelopt:NVFP4": ((_ALWAYS, (10, 0)), ((0, 9), (8, 0)), ((0, 14), (7, 5))),
        "modelopt:MXFP8": ((_ALWAYS, (10, 0)), ((0, 20), (8, 0))),
    }
)


def least_capability(quantization: Quantization, release: tuple[int, int]) -> Capability:
    """The compute capability that this release asks for; as in the newest where it never changed.

    >>> least_capability(Quantization(method="fp8", weight_bits=8), (0, 13))
    (8, 0)
    """
    steps = _steps(quantization)
    reached = [capability for first, capability in steps if release >= first]
    return reached[-1] if reached else quantization.min_compute_capability


def _steps(quantization: Quantization) -> _Steps:
    method, bits = quantization.method, quantization.weight_bits
    if method == "compressed-tensors":
        if bits <= 4 and quantization.group_size == _NVFP4_GROUP:
            return _NVFP4
        return _PACKED if bits <= 4 else ()
    if method == "modelopt":
        if bits <= 4:
            return _OF_METHOD["modelopt:NVFP4"]
        shared = quantization.group_size == _MXFP8_GROUP
        return _OF_METHOD["modelopt:MXFP8" if shared else "modelopt:FP8"]
    return _OF_METHOD.get(method, ())
