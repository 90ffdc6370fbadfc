"""How a replica is spread over GPUs: ranks and pipeline stages."""

from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLayout:
    """How one replica is spread over GPUs, in vLLM's words."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    encoder_data_parallel: bool = False  # --mm-encoder-tp-mode data: each rank has whole towers
    pipeline_partition: tuple[int, ...] = ()  # VLLM_PP_LAYER_PARTITION: layers of each stage
    nodes: int = 1  # --nnodes: as many pods carry one replica, with equal parts of its GPUs

    @property
    def world_size(self) -> int:
        """GPUs of one engine core: of one rank of data parallelism."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.world_size * self.data_parallel_size

    @property
    def ranks_per_node(self) -> int:
        """Tensor parallel ranks of one group that share a node."""
        return min(self.tensor_parallel_size, self.gpus_per_node)

    @property
    def gpus_per_node(self) -> int:
        """GPUs of each of its pods."""
        return self.gpus // self.nodes


def layer_stages(num_hidden_layers: int, layout: ParallelLayout) -> tuple[range, ...]:
    """The layers of each stage of a layout: as it says, else as the engine divides them."""
    counts = layout.pipeline_partition
    if len(counts) != layout.pipeline_parallel_size or sum(counts) != num_hidden_layers:
        return pipeline_stages(num_hidden_layers, layout.pipeline_parallel_size)
    ends = tuple(accumulate(counts))
    return tuple(range(end - count, end) for end, count in zip(ends, counts, strict=True))


def pipeline_stages(num_hidden_layers: int, pipeline_parallel_size: int) -> tuple[range, ...]:
    """The layers of each stage: left-over layers go to the stages before the last.

    Source: vLLM vllm/distributed/utils.py get_pp_indices.

    >>> [len(stage) for stage in pipeline_stages(61, 4)]
    [15, 15, 16, 15]
    """
    counts = [num_hidden_layers // pipeline_parallel_size] * pipeline_parallel_size
    for back in range(2, num_hidden_layers % pipeline_parallel_size + 2):
        counts[-back] += 1
    ends = tuple(accumulate(counts))
    return tuple(range(end - count, end) for end, count in zip(ends, counts, strict=True))
