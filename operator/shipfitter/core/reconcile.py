"""The config's arithmetic against the checkpoint's total bytes: who absorbs the difference."""

from dataclasses import dataclass, replace

from shipfitter.core.facts import Shard, WeightGroup
from shipfitter.core.weight_groups import LoadedTensor

_DOUBLED = (1.8, 2.2)  # total over arithmetic where the file holds float32
_CLOSE = 0.02  # of the embedding: a stored copy of a tied head
_SURE = 0.003  # of the total: sums this near are the same file
_NEGLIGIBLE = 0.0005  # of the total: metadata, buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """What the config says is in the file."""

    text: tuple[LoadedTensor, ...]
    prediction: tuple[tuple[LoadedTensor, ...], ...]  # quantised like the rest, or not at all
    has_tower: bool
    tower_bytes: int  # as stored
    whole_tower_bytes: int  # of them: on every rank
    unused_tower_bytes: int  # of them: never loaded
    tower_divided: bool  # the rest, over tensor ranks
    tower_known: bool  # what the file has beyond tower_bytes is not loaded
    embedding_bytes: int
    ties_embeddings: bool
    quantised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """One guess at what a builder put into the file beside the text model."""

    prediction: tuple[LoadedTensor, ...]
    tower_bytes: int
    bytes: int


def reconciled(arithmetic: Arithmetic, total_bytes: int | None) -> tuple[WeightGroup, ...]:
    """Groups whose sum agrees with the total: exact parts stay, the uncertain part gives way."""
    groups = tuple(group for tensor in arithmetic.text for group in tensor.groups)
    if total_bytes is None:
        return (*groups, *_beside(_guesses(arithmetic)[0], arithmetic))
    contents = _likeliest(arithmetic, total_bytes)
    tower = contents.tower_bytes
    if not arithmetic.quantised and _DOUBLED[0] < total_bytes / contents.bytes < _DOUBLED[1]:
        return (*groups, *_beside(contents, arithmetic))
    rest = total_bytes - contents.bytes
    if arithmetic.ties_embeddings and _is_close(rest, arithmetic.embedding_bytes):
        rest = 0
    grown = replace(contents, tower_bytes=tower + rest)
    if abs(rest) < _NEGLIGIBLE * total_bytes:
        return (*groups, *_beside(grown if tower else contents, arithmetic))
    if arithmetic.tower_known and rest > 0 and not arithmetic.quantised:
        return (*groups, *_beside(contents, arithmetic))
    if arithmetic.has_tower and not arithmetic.quantised and tower + rest > 0:
        return (*groups, *_beside(grown, arithmetic))
    return (*_scaled(arithmetic, rest), *_beside(contents, arithmetic))


def expected_bytes(arithmetic: Arithmetic) -> int:
    """Bytes of the file where nobody says."""
    return _guesses(arithmetic)[0].bytes


def _guesses(arithmetic: Arithmetic) -> tuple[_Contents, ...]:
    """With the tower as configured; prediction layers quantised, plain, or left out."""
    text = sum(tensor.stored_bytes for tensor in arithmetic.text)
    tower = arithmetic.tower_bytes
    return tuple(
        _Contents(
            prediction=layers,
            tower_bytes=tower,
            bytes=text + tower + sum(tensor.stored_bytes for tensor in layers),
        )
        for layers in (*arithmetic.prediction, ())
    )


def _likeliest(arithmetic: Arithmetic, total_bytes: int) -> _Contents:
    """The guess nearest the total; a tower counts as left out only where that fits closely."""
    guesses = _guesses(arithmetic)
    best = _nearest(guesses, total_bytes)
    if not arithmetic.tower_bytes or _is_sure(best, total_bytes):
        return best
    bare = tuple(
        replace(guess, tower_bytes=0, bytes=guess.bytes - guess.tower_bytes) for guess in guesses
    )
    best_bare = _nearest(bare, total_bytes)
    return best_bare if _is_sure(best_bare, total_bytes) else best


def _nearest(guesses: tuple[_Contents, ...], total_bytes: int) -> _Contents:
    return min(guesses, key=lambda guess: abs(total_bytes - guess.bytes))


def _is_sure(guess: _Contents, total_bytes: int) -> bool:
    return abs(total_bytes - guess.bytes) < _SURE * total_bytes


def _beside(contents: _Contents, arithmetic: Arithmetic) -> tuple[WeightGroup, ...]:
    """Groups of what is not the text model."""
    prediction = tuple(group for tensor in contents.prediction for group in tensor.groups)
    loaded = contents.tower_bytes - arithmetic.unused_tower_bytes
    if loaded <= 0:
        return prediction
    whole = min(loaded, arithmetic.whole_tower_bytes) if arithmetic.tower_divided else loaded
    parts = ((Shard.REPLICATED, whole), (Shard.TOWER, loaded - whole))
    tower = (
        WeightGroup(shard=shard, loaded_bytes=size, place="other") for shard, size in parts if size
    )
    return (*prediction, *tower)


def _is_close(rest: int, embedding_bytes: int) -> bool:
    return abs(rest - embedding_bytes) < _CLOSE * embedding_bytes


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
