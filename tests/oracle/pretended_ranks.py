"""Process groups that know sizes and ranks and never talk; tensors for "cuda" have no data."""

import sys
from typing import Any


class Group:
    """Stands in for the engine's group coordinator."""

    def __init__(self, name: str, ranks: list[int], rank: int, device: Any) -> None:
        self.unique_name, self.ranks, self.rank = f"{name}:0", ranks, rank
        self.world_size, self.rank_in_group = len(ranks), ranks.index(rank)
        self.local_rank, self.first_rank, self.last_rank = rank, ranks[0], ranks[-1]
        self.is_first_rank, self.is_last_rank = rank == ranks[0], rank == ranks[-1]
        self.device = device
        self.device_communicator = self.mq_broadcaster = self.tcp_store_group = None
        self.use_device_communicator = self.use_custom_op_call = False
        self.device_group = self.cpu_group = _Handle(self)

    def all_reduce(self, tensor: Any, *_: Any, **__: Any) -> Any:
        """What one rank alone would keep."""
        return tensor

    broadcast = all_reduce

    def broadcast_object(self, value: Any = None, *_: Any, **__: Any) -> Any:
        """The value itself."""
        return value

    def barrier(self, *_: Any, **__: Any) -> None:
        """Nobody to wait for."""


class _Handle:
    """What torch would call a process group."""

    def __init__(self, group: Group) -> None:
        self._group, self.group_name = group, group.unique_name

    def size(self) -> int:
        """Ranks in the group."""
        return self._group.world_size

    def rank(self) -> int:
        """Own place in it."""
        return self._group.rank_in_group


def pretend_ranks(tensor_parallel: int, pipeline_parallel: int, stage: int) -> int:
    """Become rank 0 of one pipeline stage; returns the rank in the world."""
    import torch
    import vllm.distributed.parallel_state as state
    from torch import distributed

    me, device = stage * tensor_parallel, torch.device("meta")
    world = list(range(tensor_parallel * pipeline_parallel))
    own = world[me : me + tensor_parallel]
    members = {
        "_WORLD": world, "_INNER_DP_WORLD": world, "_TP": own, "_ETP": own,
        "_PP": world[::tensor_parallel], "_PCP": [me], "_DP": [me], "_EP": own, "_EPLB": own,
        "_DCP": [me],
    }  # fmt: skip
    for name, ranks in members.items():
        setattr(state, name, Group(name.strip("_").lower(), ranks, me, device))
    state._ENGRAM_DP, state._NODE_COUNT = None, 1
    state.in_the_same_node_as = lambda group, source_rank=0: [True] * group.size()
    distributed.get_rank = lambda group=None: group.rank() if isinstance(group, _Handle) else me
    distributed.get_world_size = lambda group=None: (
        group.size() if isinstance(group, _Handle) else len(world)
    )
    distributed.is_initialized = lambda: True
    common = sys.modules.get("vllm.v1.attention.ops.cp_common")
    if common is not None:
        common.direct_cp_enabled = lambda *_, **__: False  # type: ignore[attr-defined]
    return me


def without_data() -> Any:
    """A mode in which tensors for "cuda" are made without data."""
    import torch
    from torch.overrides import TorchFunctionMode

    def moved(device: Any) -> Any:
        on_card = isinstance(device, int) or str(device).startswith("cuda")
        return "meta" if on_card and not isinstance(device, bool) else device

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
            kwargs, name = dict(kwargs or {}), getattr(function, "__name__", "")
            if kwargs.get("device") is not None:
                kwargs["device"] = moved(kwargs["device"])
            if name == "cuda":
                return args[0].to("meta")
            if name == "to":
                args = tuple(
                    moved(arg) if isinstance(arg, (str, torch.device)) else arg for arg in args
                )
            return function(*args, **kwargs)

    return Mode()
