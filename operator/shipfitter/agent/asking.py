"""Questions to the NVIDIA driver: an answer, none, or the end of the session. Imports `pynvml`."""

from collections.abc import Callable
from typing import Any

import pynvml

from shipfitter.agent.devices import NvmlUnavailableError, reason_of

FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError, UnicodeDecodeError, ValueError)
# The hardware or the driver has no such thing: an answer as good as any.
_NOTHING_THERE = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)


class LostError(Exception):
    """The GPU fell off the bus: no further question about it makes sense."""


class UnansweredError(Exception):
    """The driver would know and does not say: what it is about must not be taken for granted."""


def must(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or the session's end with the driver's reason."""
    try:
        return function(*arguments)
    except FAILURES as error:
        raise NvmlUnavailableError(reason_of(code_of(error))) from None


def ask(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The answer; None where the driver, the hardware or our rights have none."""
    try:
        return function(*arguments, **options)
    except FAILURES:
        return None


def ask_gpu(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """As `ask`, but a lost GPU ends the questions about it."""
    try:
        return function(*arguments, **options)
    except FAILURES as error:
        if code_of(error) == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise LostError from None
        return None


def ask_surely(function: Callable[..., Any], handle: Any) -> Any:
    """As `ask_gpu`; None only where there is no such thing. Raises UnansweredError otherwise."""
    try:
        return function(handle)
    except FAILURES as error:
        code = code_of(error)
        if code == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise LostError from None
        if code in _NOTHING_THERE:
            return None
        raise UnansweredError from None


def code_of(error: BaseException) -> int | None:
    """NVML's return code; None for a library that does not fit."""
    return getattr(error, "value", None)


def open_gpu(index: int) -> Any:
    """The GPU's handle; None where we may not have it."""
    try:
        return pynvml.nvmlDeviceGetHandleByIndex(index)
    except FAILURES as error:
        code = code_of(error)
        if code == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise LostError from None
        if code == pynvml.NVML_ERROR_UNKNOWN:  # the container lost its devices
            raise NvmlUnavailableError(reason_of(code)) from None
        return None
