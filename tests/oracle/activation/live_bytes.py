"""Bytes that are alive while operators run on tensors without data.

Every storage that an operator makes is counted when it is first seen, rounded as the caching
allocator of a card rounds, and discounted when the last tensor on it is gone.
"""

import weakref
from collections import Counter
from collections.abc import Iterable
from typing import Any

ALLOCATED_IN_BYTES = 512  # what torch's caching allocator rounds each request up to


class LiveBytes:
    """A count of living storages and the most that were alive at once."""

    def __init__(self) -> None:
        self.now_bytes = self.peak_bytes = 0
        self._sizes: dict[int, tuple[int, str]] = {}
        self._foreign: set[int] = set()
        self._at_peak: list[tuple[int, str]] = []

    def ignore(self, tensors: Iterable[Any]) -> None:
        """Tensors that were there before: weights, inputs."""
        self._foreign.update(_storage_key(tensor) for tensor in tensors)

    def forget_peak(self) -> None:
        """Begin anew; what lives keeps counting."""
        self.peak_bytes = 0

    def see(self, tensor: Any, operator: str) -> None:
        """Count the tensor's storage, if it is new."""
        key = _storage_key(tensor)
        storage = tensor.untyped_storage()
        size = -(-storage.nbytes() // ALLOCATED_IN_BYTES) * ALLOCATED_IN_BYTES
        if not size or key in self._sizes or key in self._foreign:
            return
        shape = "x".join(map(str, tensor.shape))
        self._sizes[key] = (size, f"{operator} {shape} {tensor.dtype}".replace("torch.", ""))
        weakref.finalize(storage, self._gone, key).atexit = False
        self.now_bytes += size
        if self.now_bytes > self.peak_bytes:
            self.peak_bytes, self._at_peak = self.now_bytes, list(self._sizes.values())

    def held_at_peak(self, most: int = 8) -> dict[str, int]:
        """What was alive at the peak, largest first: operator, shape and dtype to bytes."""
        held: Counter[str] = Counter()
        for size, name in self._at_peak:
            held[name] += size
        return dict(held.most_common(most))

    def _gone(self, key: int) -> None:
        self.now_bytes -= self._sizes.pop(key, (0, ""))[0]


def _storage_key(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def watching(live: LiveBytes) -> Any:
    """A mode in which every operator's results are shown to the count."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    class Mode(TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls) -> bool:
            """Lets the compiler's frames run under it."""
            return True

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = function(*args, **(kwargs or {}))
            for tensor in tree_iter(made):
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "meta":
                    live.see(tensor, str(function))
            return made

    return Mode()
