"""What a checkpoint says of itself: config.json, and the headers in front of its weights."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from shipfitter.core.model import TensorHeader
from shipfitter.errors import ModelUnreadableError

CONFIG_FILE = "config.json"
INDEX_FILE = "model.safetensors.index.json"

# The largest published index (91,991 tensors) takes 9 MB; what is larger is no model of ours.
MAX_CONFIG_BYTES = 4_000_000
MAX_INDEX_BYTES = 64_000_000
# Source: huggingface_hub 2.4 constants.py SAFETENSORS_MAX_HEADER_LENGTH; its own limit is the same.
MAX_HEADER_BYTES = 25_000_000
LENGTH_PREFIX_BYTES = 8  # Source: the safetensors format: a little-endian count before the header


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The raw facts of one checkpoint; `tensors` is empty where it has no safetensors files."""

    name: str
    config: Mapping[str, Any]
    tensors: tuple[TensorHeader, ...] = ()
    stored_bytes: int | None = None  # None: only the config is known
    revision: str = ""  # commit; empty for a folder
    files: tuple[str, ...] = field(default=())  # the files the weights lie in


def parse_json_object(content: bytes, *, where: str) -> dict[str, Any]:
    """The object a JSON file holds; `where` names file and model.

    Raises ModelUnreadableError when it holds something else.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelUnreadableError(
            f"{where}: this is no JSON ({str(error)[:200]}); publish the file again, or write the "
            "model's facts into spec.model.facts"
        ) from error
    if not isinstance(value, dict):
        raise ModelUnreadableError(
            f"{where}: a JSON object belongs here, got {type(value).__name__}; publish the file "
            "again, or write the model's facts into spec.model.facts"
        )
    return value


def weight_files(names: Collection[str], index: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The files the engine would load, of those at the root of the checkpoint.

    An index decides; without one every safetensors file counts, save the copy in Mistral's own
    format beside the usual one; without any the PyTorch files.

    Source: vLLM 0.33 vllm/model_executor/model_loader: filter_duplicate_safetensors_files.
    """
    if index is not None:
        weight_map = index.get("weight_map")
        if isinstance(weight_map, dict):
            return tuple(sorted({str(file) for file in weight_map.values()}))
    at_root = sorted(name for name in names if "/" not in name)
    found = [name for name in at_root if name.endswith(".safetensors")]
    usual = [name for name in found if not name.startswith("consolidated")]
    if usual or found:
        return tuple(usual or found)
    return tuple(
        name for name in at_root if name.startswith("pytorch_model") and name.endswith(".bin")
    )


def header_bytes(prefix: bytes, *, where: str) -> int:
    """The length of a safetensors header, from the first 8 bytes of the file.

    Raises ModelUnreadableError for a file that is none.
    """
    length = int.from_bytes(prefix[:LENGTH_PREFIX_BYTES], "little")
    if len(prefix) < LENGTH_PREFIX_BYTES or not 2 <= length <= MAX_HEADER_BYTES:
        raise ModelUnreadableError(
            f"{where}: this is no safetensors file (it claims a header of {length} bytes); upload "
            "it again, or write the model's facts into spec.model.facts"
        )
    return length


def parse_header(content: bytes, *, where: str) -> tuple[tuple[TensorHeader, ...], int]:
    """The tensors a safetensors header lists, and the bytes they take in the file.

    Raises ModelUnreadableError for a header that cannot be meant.
    """
    header = parse_json_object(content, where=where)
    tensors: list[TensorHeader] = []
    stored_bytes = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            first, last = (int(offset) for offset in entry["data_offsets"])
            shape = tuple(int(dimension) for dimension in entry["shape"])
            tensors.append(TensorHeader(str(name), str(entry["dtype"]), shape))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelUnreadableError(
                f"{where}: tensor {name!r} has no dtype, shape and offsets; upload the file again, "
                "or write the model's facts into spec.model.facts"
            ) from error
        stored_bytes += max(0, last - first)
    return tuple(tensors), stored_bytes
