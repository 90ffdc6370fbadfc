"""The block that Inductor runs while it compiles: each Triton kernel once, on example tensors.

On a start without a compile cache it runs inside the engine's profiling window, at full size; one
of its tensors can be as large as the embedding table.
"""

from typing import Any

from oracle.activation.live_bytes import LiveBytes, watching

PEAKS_BYTES: list[int] = []  # one for each piece that was compiled
FAILURES: list[str] = []


def watch_example_blocks() -> None:
    """Run the block on tensors without data and note its peak, instead of benchmarking."""
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen
    from torch.utils._python_dispatch import _disable_current_modes

    def run(self: Any) -> None:
        self.kernel_autotune_defs.splice("async_compile.wait(globals())\ndel async_compile")
        written = (self.kernel_autotune_defs, self.kernel_autotune_calls)
        code = "\n".join(part.getvalue() for part in written).replace("'cuda:0'", "'meta'")
        live = LiveBytes()
        try:
            with _disable_current_modes(), watching(live):
                exec(code, {})
        except Exception as error:
            FAILURES.append(f"{type(error).__name__}: {error}")
        PEAKS_BYTES.append(live.peak_bytes)

    PythonWrapperCodegen.generate_and_run_autotune_block = run
