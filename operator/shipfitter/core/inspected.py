"""What a Job reads of a model, in the 4,096 bytes of its termination message, and back.

The config as far as sizing reads it, and the tensors by group. Where even these are too long, the
checkpoint's bytes stand for the tensors.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from shipfitter.core.config_reads import ReadConfig
from shipfitter.core.facts import ModelFacts, TensorHeader
from shipfitter.core.model import model_facts
from shipfitter.core.tensor_groups import Block, expanded, folded, read_group
from shipfitter.errors import InspectionFailedError

# Source: Kubernetes 1.36 pkg/kubelet/container/runtime.go MaxContainerTerminationMessageLength.
MESSAGE_BYTES = 4096
_PREFIX = "facts/1:"  # the number counts the forms of this message
_MOST_TEXT_BYTES = 4_000_000  # unpacked: a thousand times what fits, so nothing swells up


def packed(
    config: Mapping[str, Any],
    *,
    name: str,
    tensors: tuple[TensorHeader, ...] = (),
    stored_bytes: int | None = None,
    revision: str = "",
) -> str:
    """The message; what `unpacked` makes of it are the facts that `model_facts` gives here.

    Raises UnknownArchitectureError, and InspectionFailedError where the config alone is too long.
    """
    read = ReadConfig(config)
    given: dict[str, Any] = {"name": name, "checkpoint_bytes": stored_bytes, "revision": revision}
    facts = model_facts(read, tensors=tensors, **given)
    for kept in (read.asked(), dict(config)):
        record = {"config": kept, "name": name, "bytes": stored_bytes, "revision": revision}
        message = _message(record | _tensor_fields(tensors))
        if len(message) <= MESSAGE_BYTES and unpacked(message) == facts:
            return message
        message = _message(record)
        if len(message) <= MESSAGE_BYTES and unpacked(message) == model_facts(config, **given):
            return message
    raise InspectionFailedError(
        f"{name}: what sizing must know of it takes {len(message)} bytes, and a Job can tell "
        f"{MESSAGE_BYTES}; write the model's facts into spec.model.facts"
    )


def is_packed(message: str) -> bool:
    """True for a message of `packed`, of this release or another."""
    return message.startswith("facts/")


def unpacked(message: str) -> ModelFacts:
    """The facts in a message.

    Raises InspectionFailedError where it was cut off, is of another release, or is none of ours.
    """
    if not message.startswith(_PREFIX):
        raise InspectionFailedError(
            "the Job that reads the model is of another release of Shipfitter; a new one follows"
        )
    try:
        record = json.loads(_inflated(base64.b85decode(message.removeprefix(_PREFIX))))
        tensors = expanded(
            read_group(value, record["blocks"][number])
            for number, values in record.get("groups", ())
            for value in values
        )
        return model_facts(
            record["config"],
            name=record["name"],
            tensors=tensors,
            checkpoint_bytes=record["bytes"],
            revision=record["revision"],
        )
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        zlib.error,
    ) as error:
        raise InspectionFailedError(
            f"the answer of the Job that reads it makes no sense ({error}); a new one follows"
        ) from error


def _tensor_fields(tensors: tuple[TensorHeader, ...]) -> dict[str, Any]:
    """Groups by the blocks they share: most patterns of a model have the same layers."""
    if not tensors:
        return {}
    shared: dict[tuple[Block, ...], list[tuple[Any, ...]]] = {}
    for group in folded(tensors):
        shared.setdefault(group.blocks, []).append((group.pattern, group.dtype, group.shape))
    return {"blocks": list(shared), "groups": list(enumerate(shared.values()))}


def _message(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, separators=(",", ":"), sort_keys=True)
    return _PREFIX + base64.b85encode(zlib.compress(text.encode(), 9)).decode()


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    text = inflater.decompress(data, _MOST_TEXT_BYTES)
    if not inflater.eof:
        raise ValueError("it is cut off, or swells up")
    return text
