"""The transient peak of the profile run: the most of forward, sampler, encoder and compiling.

Source: vLLM vllm/v1/worker/gpu_model_runner.py profile_run.
"""

from dataclasses import dataclass

from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.compile_block import compile_block
from shipfitter.core.encoder import encoder_peak
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.estimate import Estimate, largest_of, together
from shipfitter.core.forward import ForwardShape, forward_shape, latent_rows
from shipfitter.core.identity import SameModel
from shipfitter.core.model import ModelFacts
from shipfitter.core.sampler import other_sampler_bytes, sampler_bytes

_NOTHING = Estimate(low=0, point=0, high=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """Candidates for the peak; `peak` is what the engine subtracts beside its persistent parts."""

    forward_bytes: Estimate
    sampler_bytes: Estimate
    compile_bytes: Estimate  # of a cold compile cache, less the experts' workspace
    encoder_bytes: Estimate
    other_sampler_bytes: Estimate | None  # what may sample instead
    workspace_bytes: int  # the experts' workspace: persistent, not in the peak

    @property
    def peak(self) -> Estimate:
        """The largest candidate."""
        return self._largest(self.sampler_bytes)

    @property
    def other_peak(self) -> Estimate:
        """The largest where the other sampler runs; the same where none may."""
        return self._largest(self.other_sampler_bytes or self.sampler_bytes)

    def _largest(self, sampler: Estimate) -> Estimate:
        return largest_of((self.forward_bytes, sampler, self.compile_bytes, self.encoder_bytes))


def activation(
    model: ModelFacts,
    settings: EngineSettings,
    gpu: Gpu,
    *,
    first_stage: bool = True,
    last_stage: bool = True,
) -> Activation:
    """The activation peak of one rank; settings must be resolved."""
    shape = forward_shape(SameModel(model), settings.layout, settings.enforce_eager)
    encoder = encoder_peak(model, settings)
    kept = encoder.kept if first_stage else _NOTHING
    tokens = settings.max_num_batched_tokens or 0
    if settings.rules.legacy_engine:  # profiles one prompt with every item it may have
        tokens = max(tokens, encoder.worst_case_tokens)
    workspace_bytes = _dispatched(settings, tokens) * shape.workspace_bytes_per_token
    transient_bytes = 0
    if not _keeps_workspace(model, settings, gpu):
        workspace_bytes, transient_bytes = 0, workspace_bytes
    dtype_bytes = model_dtype_bytes(model)
    sampled = sampler_bytes(model, settings, dtype_bytes)
    other = other_sampler_bytes(model, settings, dtype_bytes)
    return Activation(
        forward_bytes=together(_forward(shape, model, settings, tokens, transient_bytes), kept),
        sampler_bytes=together(sampled, kept) if last_stage else _NOTHING,
        other_sampler_bytes=together(other, kept) if other and last_stage else None,
        compile_bytes=(
            compile_block(model, settings, tokens, workspace_bytes) if first_stage else _NOTHING
        ),
        encoder_bytes=encoder.peak if first_stage else _NOTHING,
        workspace_bytes=workspace_bytes,
    )


def _dispatched(settings: EngineSettings, tokens: int) -> int:
    """Tokens that reach one rank's experts: those of every data-parallel rank, with whole experts.

    Source: vLLM vllm/model_executor/layers/fused_moe/modular_kernel.py.
    """
    layout = settings.layout
    return tokens * (layout.data_parallel_size if layout.enable_expert_parallel else 1)


def _keeps_workspace(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> bool:
    """MXFP4 experts on compute capability 9 and 10 run in kernels without one (gpt-oss on H100)."""
    quantization = model.quantization
    mxfp4 = quantization is not None and quantization.method == "mxfp4"
    recent = gpu.compute_capability is not None and gpu.compute_capability[0] in (9, 10)
    return settings.rules.keeps_experts_workspace and not (mxfp4 and recent)


# V0 profiled multimodal prompts with all their items: 82 to 160 KiB a token where the text alone
# explains 78 to 135; what holds the rest was not found.
LEGACY_ITEMS_PERCENT = 200


def _forward(
    shape: ForwardShape,
    model: ModelFacts,
    settings: EngineSettings,
    tokens: int,
    transient_bytes: int,
) -> Estimate:
    rows = latent_rows(
        settings.max_model_len or 0, settings.max_num_seqs or 0, settings.block_size or 16
    )
    point = shape.peak_bytes(tokens, rows) + transient_bytes
    legacy_items = settings.rules.legacy_engine and model.is_multimodal
    high = LEGACY_ITEMS_PERCENT if legacy_items else 120
    return Estimate.around(point, low_percent=80, high_percent=high)
