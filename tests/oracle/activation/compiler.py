"""Dynamo, the engine's back end and Inductor compile for a card that is not there.

What Inductor writes is real: which buffers it makes, when it drops and when it reuses them. The
module that it writes is then run on tensors without data, with Triton kernels that do nothing.
Written for torch 2.13, a CUDA build: only that one has the guards of a CUDA device.
"""

from collections import deque
from typing import Any

from oracle.activation.example_block import watch_example_blocks

# One piece after the other, none from a cache, and none that is stored.
ENVIRONMENT = {
    "VLLM_DISABLE_COMPILE_CACHE": "1",
    "VLLM_USE_AOT_COMPILE": "0",
    "VLLM_USE_MEGA_AOT_ARTIFACT": "0",
    "VLLM_USE_STANDALONE_COMPILE": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}
# Passes whose kernels are not here; they fuse norms with quantisation and collectives.
_PASSES_LEFT_OUT = (
    "fuse_norm_quant", "fuse_act_quant", "fuse_attn_quant", "fuse_allreduce_rms", "enable_sp",
    "fuse_gemm_comms", "enable_qk_norm_rope_fusion", "fuse_rope_kvcache", "fuse_act_padding",
)  # fmt: skip


def pretend_compiler() -> None:
    """Before anything is compiled; after the card is pretended."""
    import torch

    torch._C._ensureCUDADeviceGuardSet()
    _pretend_tensors_on_card(torch)
    _pretend_runtime(torch)
    _pretend_random_state(torch)
    _run_written_modules_without_data()
    _leave_out_what_computes(torch)
    watch_example_blocks()


def compile_without_missing_kernels(config: Any) -> None:
    """The engine's configuration, less passes and benchmarks that need a card."""
    compilation = config.compilation_config
    for name in _PASSES_LEFT_OUT:
        if getattr(compilation.pass_config, name, False):
            setattr(compilation.pass_config, name, False)
    compilation.inductor_compile_config.update(combo_kernels=False, benchmark_combo_kernel=False)


def _pretend_tensors_on_card(torch: Any) -> None:
    """A tensor without data is traced as one of the first card."""
    from torch._subclasses import fake_tensor

    normal = fake_tensor.FakeTensor._normalize_fake_device

    def normalised(device: Any) -> Any:
        return torch.device("cuda:0") if device.type in ("meta", "cuda") else normal(device)

    fake_tensor.FakeTensor._normalize_fake_device = staticmethod(normalised)
    fake_tensor.init_gpu_context = lambda device: None


class _OnCard:
    """Stands for the guards that make a card the current one."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> "_OnCard":
        return self

    def __exit__(self, *_: Any) -> bool:
        return False


def _pretend_runtime(torch: Any) -> None:
    from torch._dynamo.variables.streams import SymbolicStreamState
    from torch._inductor.runtime import triton_helpers

    def no_streams(self: Any) -> None:
        self.cur_stream_stack = deque()

    torch.cuda.device = torch.cuda._DeviceGuard = _OnCard
    for name in ("set_device", "init", "_lazy_init"):
        setattr(torch.cuda, name, lambda *_: None)
    for name in ("getCurrentRawStream", "exchangeDevice", "maybeExchangeDevice"):
        setattr(torch._C, f"_cuda_{name}", lambda *_: 0)
    torch.accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
    SymbolicStreamState.__init__ = no_streams
    triton_helpers.set_driver_to_gpu = lambda: None


def _pretend_random_state(torch: Any) -> None:
    state = torch.get_rng_state()
    for module in (torch.cuda, torch.cuda.random):
        module.get_rng_state = lambda *_, **__: state
        module.get_rng_state_all = lambda *_, **__: [state]
        module.set_rng_state = module.set_rng_state_all = lambda *_, **__: None


class _Kernel:
    """A Triton kernel: can be launched, inspected, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _run_written_modules_without_data() -> None:
    import torch
    from torch._C._dynamo import guards
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile

    def empty(size: Any, stride: Any, dtype: Any) -> Any:
        return torch.empty_strided(size, stride, dtype=dtype, device="meta")

    config.compile_threads, config.force_disable_caches = 1, True
    guards._empty_strided_cuda = empty
    AsyncCompile.triton = AsyncCompile.multi_kernel = lambda self, *_, **__: _Kernel()
    AsyncCompile.wait = lambda self, scope: None


def _leave_out_what_computes(torch: Any) -> None:
    """Patterns are traced on a card when first needed; constants are folded on one."""
    from torch._inductor.fx_passes import fuse_attention, joint_graph, pad_mm

    fuse_attention._sfdp_init = pad_mm._pad_mm_init = lambda *_, **__: None
    folder = joint_graph.UniformValueConstantFolder
    deduced = folder._deduce_value
    symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)

    def on_host(self: Any, node: Any) -> Any:
        aten = torch.ops.aten
        if node.op == "call_function" and node.target in (
            aten.full.default,
            aten.scalar_tensor.default,
        ):
            given = self.fetch_args_kwargs_from_env(node)[0]
            value = given[-1]
            if not isinstance(value, symbolic):
                shape = [1] if len(given) == 2 else []
                return torch.full(shape, value, dtype=node.kwargs.get("dtype"), device="cpu")
        return deduced(self, node)

    folder._deduce_value = on_host
