"""Files that exist only as far as they are read: small content, or a header and a hole."""

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

# Source: the safetensors format: names of dtypes as a header writes them, bits per element.
DTYPE_BITS = {
    "F64": 64,
    "I64": 64,
    "F32": 32,
    "I32": 32,
    "BF16": 16,
    "F16": 16,
    "I16": 16,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "I8": 8,
    "U8": 8,
    "BOOL": 8,
    "F4": 4,
}


@dataclass(frozen=True)
class Tensor:
    """Name, dtype and shape, as a safetensors header states them."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        elements = 1
        for dimension in self.shape:
            elements *= dimension
        return elements * DTYPE_BITS[self.dtype] // 8


class VirtualFile:
    """Leading bytes that are kept, and zeroes up to `size_bytes`."""

    def __init__(self, head: bytes, size_bytes: int | None = None, *, large: bool = False) -> None:
        self.head = head
        self.size_bytes = len(head) if size_bytes is None else size_bytes
        self.large = large  # stored beside git on the real hub: answers carry X-Linked-* headers

    def read(self, first: int, length: int) -> bytes:
        """The bytes from `first`; fewer where the file ends."""
        length = max(0, min(length, self.size_bytes - first))
        known = self.head[first : first + length]
        return known + bytes(length - len(known))

    @cached_property
    def etag(self) -> str:
        return hashlib.sha256(self.head + str(self.size_bytes).encode()).hexdigest()


def json_file(content: object) -> VirtualFile:
    return VirtualFile(json.dumps(content, indent=2).encode())


def safetensors_file(tensors: Sequence[Tensor]) -> VirtualFile:
    """A real header in front of a hole as large as the tensors.

    Source: the safetensors format: 8 bytes little-endian header length, JSON, data; the header is
    padded with blanks to a multiple of 8.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + tensor.size_bytes
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return VirtualFile(struct.pack("<Q", len(text)) + text, 8 + len(text) + offset, large=True)


def sharded_files(tensors: Sequence[Tensor], *, shard_bytes: int) -> dict[str, VirtualFile]:
    """One `model.safetensors`, or numbered shards with their index."""
    shards: list[list[Tensor]] = [[]]
    held = 0
    for tensor in tensors:
        if shards[-1] and held + tensor.size_bytes > shard_bytes:
            shards.append([])
            held = 0
        shards[-1].append(tensor)
        held += tensor.size_bytes
    if len(shards) == 1:
        return {"model.safetensors": safetensors_file(shards[0])}
    files: dict[str, VirtualFile] = {}
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        files[name] = safetensors_file(shard)
        weight_map |= {tensor.name: name for tensor in shard}
    total_bytes = sum(tensor.size_bytes for tensor in tensors)
    index = {"metadata": {"total_size": total_bytes}, "weight_map": weight_map}
    files["model.safetensors.index.json"] = json_file(index)
    return files
