"""Collectives allocate what the engine's CUDA communicator allocates, and send nothing.

Source: vLLM 0.32 vllm/distributed/device_communicators/cuda_communicator.py: an all-reduce writes
out of place; a gather along another dimension than the first is gathered, then reordered by a copy.
"""

import weakref
from typing import Any

from oracle import pretended_ranks


def pretend_collectives() -> None:
    """Methods of the pretended groups, from here on."""
    group = pretended_ranks.Group
    group.all_reduce = _all_reduce  # type: ignore[method-assign]
    group.all_gather = group._all_gather_out_place = _all_gather  # type: ignore[attr-defined]
    group._all_reduce_out_place = _reduced  # type: ignore[attr-defined]
    group.reduce_scatter = group._reduce_scatter_out_place = _scattered  # type: ignore[attr-defined]


def know_groups() -> None:
    """Operators find a group by name: enter the pretended ones where the engine looks."""
    import vllm.distributed.parallel_state as state

    for name in ("_TP", "_PP", "_DP", "_EP", "_PCP", "_DCP"):
        group = getattr(state, name)
        state._groups[group.unique_name] = weakref.ref(group)


def _all_reduce(self: Any, tensor: Any, *_: Any, **__: Any) -> Any:
    import torch

    if self.world_size == 1:
        return tensor
    return torch.ops.vllm.all_reduce(tensor, group_name=self.unique_name)


def _reduced(self: Any, tensor: Any) -> Any:
    import torch

    return torch.empty_like(tensor)


def _all_gather(self: Any, tensor: Any, dim: int = -1) -> Any:
    ranks, shape = self.world_size, list(tensor.shape)
    if ranks == 1:
        return tensor
    dim %= tensor.dim()
    gathered = tensor.new_empty([ranks * shape[0], *shape[1:]])
    reordered = gathered.reshape([ranks, *shape]).movedim(0, dim)
    return reordered.reshape([*shape[:dim], ranks * shape[dim], *shape[dim + 1 :]])


def _scattered(self: Any, tensor: Any, dim: int = -1) -> Any:
    shape = list(tensor.shape)
    shape[dim] //= self.world_size
    return tensor if self.world_size == 1 else tensor.new_empty(shape)
