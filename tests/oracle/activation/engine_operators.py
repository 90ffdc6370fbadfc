"""The engine's own operators run for real on tensors without data.

Attention, experts and recurrent layers are Python functions registered as torch operators. While
the compiler traces, their declared shapes answer; while the profile run is measured, their bodies
run, because what they allocate inside belongs to the peak (scratch of latent attention, workspaces
of experts).
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

# The mode that watches the measured run: torch leaves modes outside an operator's body.
WATCHING: list[Any] = []


def run_bodies() -> None:
    """Before the engine registers its operators."""
    import vllm.utils.torch_utils as registry

    register = registry.direct_register_custom_op

    def register_body(
        op_name: str,
        op_func: Callable[..., Any],
        mutates_args: list[str] | None = None,
        fake_impl: Callable[..., Any] | None = None,
        **more: Any,
    ) -> None:
        def body(*given: Any, **named: Any) -> Any:
            if _is_traced(given, named):
                return fake_impl(*given, **named) if fake_impl is not None else None
            with WATCHING[-1] if WATCHING else nullcontext():
                return op_func(*given, **named)

        register(op_name, op_func, mutates_args, body, **more)

    registry.direct_register_custom_op = register_body
    registry.current_stream = lambda: None


def _is_traced(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._pytree import tree_iter

    key = torch._C._TorchDispatchModeKey.FAKE
    if torch._C._get_dispatch_mode(key) is not None:
        return True
    return any(isinstance(value, FakeTensor) for value in tree_iter((given, named)))
