"""Weight bytes on one rank."""

from dataclasses import dataclass

from shipfitter.core.model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLayout:
    """How one replica is spread over GPUs, in vLLM's words."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False

    @property
    def world_size(self) -> int:
        """GPUs of one engine."""
        return self.tensor_parallel_size * self.pipeline_parallel_size


def pipeline_stages(num_hidden_layers: int, pipeline_parallel_size: int) -> tuple[range, ...]:
    """The layers of each stage.

    Source: vLLM vllm/distributed/utils.py get_pp_indices.
    """
    raise NotImplementedError


def weights_bytes(model: ModelFacts, layout: ParallelLayout, *, stage: int = 0) -> int:
    """Bytes "Model loading took" will say for one rank of a pipeline stage."""
    raise NotImplementedError


def layout_problems(
    model: ModelFacts,
    layout: ParallelLayout,
    *,
    gpus_per_node: int,
    compute_capability: tuple[int, int] | None,
) -> tuple[str, ...]:
    """Why the engine would refuse to start in this layout, in our words; empty when it would start.

    Source: vLLM's checks: heads divisible, KV heads divisible or replicated, quantisation blocks,
    compute capability of the quantisation method, PP support, GPUs of the node.
    """
    raise NotImplementedError
