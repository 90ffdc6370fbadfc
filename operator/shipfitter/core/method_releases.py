"""Which releases of the engine know a quantisation method: others refuse the checkpoint.

Source: QUANTIZATION_METHODS in vLLM vllm/model_executor/layers/quantization/__init__.py, read in
one release or more of every minor version from 0.6 to 0.33.
"""

from collections.abc import Mapping
from types import MappingProxyType

Release = tuple[int, int]

_OLDEST, _NEVER_GONE = (0, 0), (99, 0)


def _always() -> tuple[Release, Release]:
    return _OLDEST, _NEVER_GONE


# Method: (first release, first release without it). Kernels that are chosen by themselves
# (gptq_marlin for gptq) and modelopt's variants stand under the checkpoint's own word.
_KNOWN: Mapping[str, tuple[Release, Release]] = MappingProxyType(
    {
        "aqlm": (_OLDEST, (0, 11)),
        # From 0.15 on AutoRound's checkpoints are read by the method inc.
        "auto-round": ((0, 9), _NEVER_GONE),
        "auto_awq": ((0, 24), _NEVER_GONE),
        "auto_gptq": ((0, 22), _NEVER_GONE),
        "awq": _always(),
        "bitblas": ((0, 8), (0, 16)),
        "bitsandbytes": (_OLDEST, (0, 28)),
        "compressed-tensors": _always(),
        "deepseek_v4_fp8": ((0, 20), _NEVER_GONE),
        "deepspeedfp": (_OLDEST, (0, 15)),
        "experts_int8": _always(),
        "fbgemm_fp8": _always(),
        "fp8": _always(),
        "fp8_per_block": ((0, 20), _NEVER_GONE),
        "fp8_per_channel": ((0, 24), _NEVER_GONE),
        "fp8_per_tensor": ((0, 20), _NEVER_GONE),
        "fp_quant": ((0, 12), _NEVER_GONE),
        "gguf": (_OLDEST, (0, 24)),
        "gpt_oss_mxfp4": ((0, 20), _NEVER_GONE),
        "gptq": _always(),
        "gptq_bitblas": ((0, 8), (0, 16)),
        "gptq_24": (_OLDEST, (0, 16)),
        "hqq": ((0, 6), (0, 15)),
        "humming": ((0, 20), _NEVER_GONE),
        "inc": ((0, 10), _NEVER_GONE),
        "int8_per_channel_weight_only": ((0, 20), _NEVER_GONE),
        "ipex": ((0, 6), (0, 16)),
        "marlin": (_OLDEST, (0, 11)),
        "modelopt": _always(),
        "moe_wna16": ((0, 7), _NEVER_GONE),
        "mxfp4": ((0, 10), _NEVER_GONE),
        "mxfp8": ((0, 19), _NEVER_GONE),
        "nvfp4_per_token": ((0, 26), _NEVER_GONE),
        "online": ((0, 20), _NEVER_GONE),
        "petit_nvfp4": ((0, 10), (0, 20)),
        "ptpc_fp8": ((0, 7), (0, 19)),
        "qqq": (_OLDEST, (0, 11)),
        "quark": ((0, 7), _NEVER_GONE),
        "rtn": ((0, 9), (0, 15)),
        "torchao": ((0, 8), _NEVER_GONE),
    }
)


def method_problem(method: str, release: Release) -> str:
    """Why this release loads no checkpoint of the method, and the way out; empty where it does.

    >>> method_problem("exl3", (0, 33))
    'no vLLM release loads exl3 checkpoints; take one that is quantised another way'
    >>> method_problem("awq", (0, 33))
    ''
    """
    known = _KNOWN.get(method)
    if known is None:
        return f"no vLLM release loads {method} checkpoints; take one that is quantised another way"
    since, gone = known
    if release < since:
        return f"{method} checkpoints are loaded from vLLM {_dotted(since)} on"
    if release >= gone:
        return (
            f"{method} checkpoints are loaded by vLLM before {_dotted(gone)} only; take one that "
            f"is quantised another way, or an earlier engine"
        )
    return ""


def _dotted(release: Release) -> str:
    return f"{release[0]}.{release[1]}"
