"""Tensors by group: names that differ only in numbers become one pattern, and back without loss.

A checkpoint of 92,000 tensors is some 40 patterns, for its layers and experts repeat themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from shipfitter.core.facts import TensorHeader

NUMBER = "*"  # stands in a pattern where names have a number of their own
MOST_TENSORS = 1_000_000  # ten times the largest published checkpoint; more is no model's
# A run of numbers: first, count and step; a block: for each axis of a pattern its runs.
Run = tuple[int, int, int]
Block = tuple[tuple[Run, ...], ...]
Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup:
    """All tensors of one pattern, dtype and shape; `blocks` say which numbers they have."""

    pattern: str
    dtype: str
    shape: tuple[int, ...]
    blocks: tuple[Block, ...]

    @property
    def count(self) -> int:
        """Tensors of the group."""
        return sum(_size(block) for block in self.blocks)


def folded(tensors: Iterable[TensorHeader]) -> tuple[TensorGroup, ...]:
    """The groups of a checkpoint, sorted by pattern.

    >>> (group,) = folded(TensorHeader(f"layers.{i}.up.weight", "BF16", (4, 8)) for i in range(9))
    >>> group.pattern, group.blocks
    ('layers.*.up.weight', ((((0, 9, 1),),),))
    """
    found: dict[tuple[str, str, tuple[int, ...]], set[Numbers]] = {}
    for tensor in tensors:
        pattern, numbers = _split(tensor.name)
        found.setdefault((pattern, tensor.dtype, tensor.shape), set()).add(numbers)
    return tuple(
        TensorGroup(pattern=pattern, dtype=dtype, shape=shape, blocks=_blocks(numbers))
        for (pattern, dtype, shape), numbers in sorted(found.items())
    )


def expanded(groups: Iterable[TensorGroup]) -> tuple[TensorHeader, ...]:
    """The tensors of groups, group by group.

    Raises ValueError where they are more than any checkpoint has.
    """
    groups = tuple(groups)
    if sum(group.count for group in groups) > MOST_TENSORS:
        raise ValueError(f"the groups name more than {MOST_TENSORS} tensors")
    return tuple(
        TensorHeader(_joined(group.pattern, numbers), group.dtype, group.shape)
        for group in groups
        for block in group.blocks
        for numbers in product(*map(_numbers, block))
    )


def read_group(value: Sequence[Any], blocks: Sequence[Any]) -> TensorGroup:
    """A group from JSON: [pattern, dtype, shape] and its blocks.

    Raises ValueError, TypeError or IndexError for anything else.
    """
    pattern, dtype, shape = value
    group = TensorGroup(
        pattern=str(pattern),
        dtype=str(dtype),
        shape=tuple(int(size) for size in shape),
        blocks=tuple(tuple(tuple(map(_run, axis)) for axis in block) for block in blocks),
    )
    axes = group.pattern.split(".").count(NUMBER)
    if any(len(block) != axes for block in group.blocks) or any(size < 0 for size in group.shape):
        raise ValueError(f"{group.pattern}: its numbers or its shape do not fit")
    return group


def _run(value: Sequence[Any]) -> Run:
    first, count, step = map(int, value)
    if first < 0 or count < 1 or step < 1:
        raise ValueError(f"no run of numbers: {value!r}")
    return first, count, step


def _split(name: str) -> tuple[str, Numbers]:
    """The pattern of a name, and the numbers that were in it."""
    parts, numbers = name.split("."), []
    for place, part in enumerate(parts):
        if part.isdecimal() and part.isascii() and part == str(int(part)):
            numbers.append(int(part))
            parts[place] = NUMBER
    return ".".join(parts), tuple(numbers)


def _joined(pattern: str, numbers: Numbers) -> str:
    left = iter(numbers)
    return ".".join(str(next(left)) if part == NUMBER else part for part in pattern.split("."))


def _blocks(places: Iterable[Numbers]) -> tuple[Block, ...]:
    """Blocks that hold exactly these numbers: equal rests are told once for all their firsts."""
    places = sorted(places)
    if not places[0]:
        return ((),)
    rests: dict[int, list[Numbers]] = {}
    for first, *rest in places:
        rests.setdefault(first, []).append(tuple(rest))
    firsts: dict[tuple[Block, ...], list[int]] = {}
    for number, tails in rests.items():
        firsts.setdefault(_blocks(tails), []).append(number)
    return tuple(
        ((*_runs(numbers),), *block) for blocks, numbers in firsts.items() for block in blocks
    )


def _runs(numbers: Sequence[int]) -> Iterator[Run]:
    """Ascending numbers as runs, each as long as can be.

    >>> list(_runs([0, 1, 2, 3, 7, 11, 15]))
    [(0, 4, 1), (7, 3, 4)]
    """
    begin = 0
    while begin < len(numbers):
        step = numbers[begin + 1] - numbers[begin] if begin + 1 < len(numbers) else 1
        end = begin + 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        yield numbers[begin], end - begin, step
        begin = end


def _numbers(axis: Iterable[Run]) -> list[int]:
    return [first + step * nth for first, count, step in axis for nth in range(count)]


def _size(block: Block) -> int:
    size = 1
    for axis in block:
        size *= sum(count for _, count, _ in axis)
    return size
