"""What only a CUDA build has, packages and compiled modules: imported, never computed with."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any

_PACKAGES = (
    "flashinfer", "torchvision", "cuda", "cutlass", "quack", "tilelang",
    "vllm.third_party.deep_gemm", "vllm.vllm_flash_attn.cute",
)  # fmt: skip
_COMPILED = frozenset(
    {
        "vllm._C_stable_libtorch", "vllm._moe_C_stable_libtorch", "vllm._flashmla_C",
        "vllm._flashmla_extension_C", "vllm._flashkda_C", "vllm._deepselect_C",
        "vllm.vllm_flash_attn._vllm_fa2_C", "vllm.vllm_flash_attn._vllm_fa3_C",
        "vllm.third_party.flashmla.flash_mla_interface",
    }
)  # fmt: skip


class _AnyClass(type):
    """A class of an absent package: every attribute is there."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__


class _Absent:
    """A function, decorator or submodule of an absent package."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        return _member(self, f"{self.__name__}.{name}", name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        decorates = len(given) == 1 and not named
        if decorates and isinstance(given[0], (type, types.FunctionType)):
            return given[0]
        return _Absent(f"{self.__name__}()")

    def __getitem__(self, _: Any) -> Any:
        return self

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __iter__(self) -> Any:
        return iter(())

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return ()


class _AbsentModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _member(self, f"{self.__name__}.{name}", name)


def _member(owner: Any, full: str, name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    made: Any = _AnyClass(name, (), {"__init__": lambda *_, **__: None})
    if not name[:1].isupper():
        made = _Absent(full)
    setattr(owner, name, made)
    return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages

    def _is_package(self, name: str) -> bool:
        return any(name == it or name.startswith(f"{it}.") for it in self.packages)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec for names that are pretended."""
        if name in _COMPILED or self._is_package(name):
            return importlib.machinery.ModuleSpec(name, self, is_package=self._is_package(name))
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        """An empty module that has everything."""
        return _AbsentModule(spec.name)

    def exec_module(self, module: Any) -> None:
        """Nothing runs."""
        if self._is_package(module.__name__):
            module.__path__ = []
            module.__version__ = "0.6.0"


def pretend_packages() -> None:
    """Let imports of what is missing succeed."""
    missing = [it for it in _PACKAGES if "." in it or importlib.util.find_spec(it) is None]
    sys.meta_path.insert(0, _Finder(tuple(missing)))
