"""The config's arithmetic against the checkpoint's total bytes: who absorbs the difference."""

from dataclasses import dataclass, replace

from shipfitter.core.facts import Shard, WeightGroup
from shipfitter.core.weight_groups import LoadedTensor

_DOUBLED = (1.8, 2.2)  # total over arithmetic where the file holds float32
_CLOSE = 0.02  # of the embedding: a stored copy of a tied head
_NEGLIGIBLE = 0.0005  # of the total: metadata, buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """What the config says is in the file."""

    text: tuple[LoadedTensor, ...]
    not_loaded_bytes: int  # multi-token-prediction layers
    has_tower: bool
    tower_bytes: int  # stored and loaded alike
    embedding_bytes: int
    ties_embeddings: bool
    quantised: bool


def reconciled(arithmetic: Arithmetic, total_bytes: int | None) -> tuple[WeightGroup, ...]:
    """Groups whose sum agrees with the total: exact parts stay, the uncertain part gives way."""
    groups = tuple(group for tensor in arithmetic.text for group in tensor.groups)
    tower = arithmetic.tower_bytes
    if total_bytes is None:
        return (*groups, *_tower(tower))
    text = sum(tensor.stored_bytes for tensor in arithmetic.text)
    known = text + arithmetic.not_loaded_bytes + tower
    if not arithmetic.quantised and _DOUBLED[0] < total_bytes / known < _DOUBLED[1]:
        return (*groups, *_tower(tower))
    rest = total_bytes - known
    if arithmetic.ties_embeddings and _is_close(rest, arithmetic.embedding_bytes):
        rest = 0
    if abs(rest) < _NEGLIGIBLE * total_bytes:
        return (*groups, *_tower(tower + rest if arithmetic.has_tower else 0))
    if arithmetic.has_tower and not arithmetic.quantised and tower + rest > 0:
        return (*groups, *_tower(tower + rest))
    return (*_scaled(arithmetic, rest), *_tower(tower))


def _is_close(rest: int, embedding_bytes: int) -> bool:
    return abs(rest - embedding_bytes) < _CLOSE * embedding_bytes


def _tower(size: int) -> tuple[WeightGroup, ...]:
    if size <= 0:
        return ()
    return (WeightGroup(shard=Shard.TOWER, loaded_bytes=size, place="other"),)


def _scaled(arithmetic: Arithmetic, rest: int) -> tuple[WeightGroup, ...]:
    """The difference spread over the quantised tensors, or over the layers where none is."""
    uncertain = [tensor for tensor in arithmetic.text if _is_uncertain(tensor, arithmetic)]
    size = sum(tensor.stored_bytes for tensor in uncertain)
    factor = (size + rest) / size if size and size + rest > 0 else 1.0
    return tuple(
        replace(group, loaded_bytes=round(group.loaded_bytes * factor))
        if _is_uncertain(tensor, arithmetic)
        else group
        for tensor in arithmetic.text
        for group in tensor.groups
    )


def _is_uncertain(tensor: LoadedTensor, arithmetic: Arithmetic) -> bool:
    if arithmetic.quantised:
        return tensor.quantised
    return any(group.place == "layer" for group in tensor.groups)
