"""Let the engine believe in one NVIDIA card: it answers what it is asked about hardware.

The model code, the attention layers and the planner run as they are, on tensors without data. What
is pretended: the platform's answers (capability, name, memory, processors), the packages and
compiled modules that only a CUDA build has (they can be imported, never computed with), and process
groups, which know sizes and ranks. Written for vLLM 0.32; other releases differ inside.
"""

import sys
import types
from dataclasses import dataclass
from typing import Any

from oracle.pretended_packages import pretend_packages

_OPERATORS = frozenset(
    {
        "_C", "_moe_C", "_C_cache_ops", "_C_cuda_utils", "_C_custom_ar", "_vllm_fa2_C",
        "_vllm_fa3_C", "_flashmla_C", "_flashmla_extension_C", "_flashkda_C", "_deepselect_C",
        "_qutlass_C",
    }
)  # fmt: skip
# Operators that answer "can this card do it", by capability.
ABLE_FROM = {
    "cutlass_scaled_mm_supports_fp8": range(89, 999),
    "cutlass_scaled_mm_supports_block_fp8": range(90, 999),
    "cutlass_scaled_mm_supports_fp4": range(100, 999),
    "mxfp4_experts_quant_supported": range(100, 120),
    "cutlass_group_gemm_supported": range(90, 120),
}


@dataclass(frozen=True)
class Card:
    """What the engine may ask of a card."""

    name: str
    capability: tuple[int, int]
    total_bytes: int
    processors: int

    @property
    def number(self) -> int:
        """Capability 9.0 as 90."""
        return self.capability[0] * 10 + self.capability[1]


H100 = Card("NVIDIA H100 80GB HBM3", (9, 0), 85_029_158_912, 132)


class Operator:
    """An operator of a CUDA extension: can be named, answers about the card, never computes."""

    def __init__(self, name: str, card: Card) -> None:
        self.__name__ = self._qualified_op_name = name
        self._card = card

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, *_: Any, **__: Any) -> Any:
        short = self.__name__.rsplit(".", 1)[-1]
        if short in ABLE_FROM:
            return self._card.number in ABLE_FROM[short]
        if short.endswith("get_workspace_size"):
            return 1
        raise RuntimeError(f"pretended operator {self.__name__} was called")


def pretend(card: Card) -> None:
    """Install everything; before the engine is imported."""
    pretend_packages()
    import torch

    _pretend_operators(torch, card)
    _pretend_device(torch, card)
    _pretend_triton(card)
    _pretend_platform(card)


def _pretend_operators(torch: Any, card: Card) -> None:
    real, made = torch._ops._OpNamespace.__getattr__, {}

    def find(self: Any, name: str) -> Any:
        try:
            return real(self, name)
        except AttributeError:
            if self.name not in _OPERATORS or name.startswith("__"):
                raise
            full = f"{self.name}.{name}"
            return made.setdefault(full, Operator(full, card))

    torch._ops._OpNamespace.__getattr__ = find
    register = torch.library.register_fake

    def register_fake(name: Any, *given: Any, **named: Any) -> Any:
        if isinstance(name, str) and name.split("::")[0] in _OPERATORS:
            return given[0] if given and callable(given[0]) else (lambda function: function)
        return register(name, *given, **named)

    torch.library.register_fake = register_fake


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _always(value: Any) -> Any:
    return lambda *_, **__: value


class _Stream:
    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, _: str) -> Any:
        return _nothing


def _pretend_device(torch: Any, card: Card) -> None:
    properties = types.SimpleNamespace(
        name=card.name, major=card.capability[0], minor=card.capability[1],
        total_memory=card.total_bytes, multi_processor_count=card.processors,
        is_integrated=False, warp_size=32, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, shared_memory_per_block_optin=232448,
        gcnArchName="", L2_cache_size=50 << 20,
    )  # fmt: skip
    memory = (card.total_bytes, card.total_bytes)
    torch.version.cuda = "12.9"
    cuda = {
        "get_device_properties": properties, "get_device_capability": card.capability,
        "get_device_name": card.name, "current_device": 0, "device_count": 1024,
        "is_available": True, "is_initialized": False, "synchronize": None, "empty_cache": None,
        "mem_get_info": memory, "current_stream": _Stream(), "default_stream": _Stream(),
    }  # fmt: skip
    accelerator = {
        "empty_cache": None, "synchronize": None, "set_device_index": None,
        "current_device_index": 0, "device_count": 1024, "is_available": True,
        "get_memory_info": memory, "memory_reserved": 0, "memory_allocated": 0,
    }  # fmt: skip
    for module, answers in ((torch.cuda, cuda), (torch.accelerator, accelerator)):
        for name, answer in answers.items():
            setattr(module, name, _always(answer))
    torch.cuda.Stream = torch.cuda.Event = _Stream


def _pretend_triton(card: Card) -> None:
    import torch
    import triton.runtime  # noqa: F401
    from triton.backends.compiler import GPUTarget

    properties = {
        "max_shared_mem": 232448, "multiprocessor_count": card.processors,
        "max_num_regs": 65536, "warpSize": 32,
    }  # fmt: skip
    driver = types.SimpleNamespace(
        utils=types.SimpleNamespace(get_device_properties=_always(properties)),
        get_current_target=_always(GPUTarget("cuda", card.number, 32)),
        get_current_device=_always(0),
        get_current_stream=_always(0),
        get_benchmarker=_always(_always([0.0])),
        get_active_torch_device=_always(torch.device("cuda", 0)),
        get_device_interface=_always(torch.cuda),
    )
    sys.modules["triton.runtime.driver"].driver.set_active(driver)  # type: ignore[attr-defined]


def _pretend_platform(card: Card) -> None:
    from vllm import platforms

    platforms.vllm_version_matches_substr = _always(False)
    from vllm.platforms.cuda import CudaPlatformBase
    from vllm.platforms.interface import DeviceCapability

    answers = {
        "get_device_capability": DeviceCapability(*card.capability),
        "get_device_name": card.name, "get_device_total_memory": card.total_bytes,
        "get_device_uuid": "GPU-pretended", "is_fully_connected": True, "device_count": 1024,
        "num_compute_units": card.processors, "is_integrated_gpu": False,
        "get_device_numa_node": None, "get_all_device_numa_nodes": None, "log_warnings": None,
        "is_pin_memory_available": False, "set_device": None,
    }  # fmt: skip
    methods = {name: classmethod(_always(answer)) for name, answer in answers.items()}
    platforms._current_platform = type("CudaPlatform", (CudaPlatformBase,), methods)()
    import vllm.vllm_flash_attn.flash_attn_interface as flash_attention

    flash_attention.FA4_AVAILABLE = True
