"""The cache planner, written plainly: layers to groups, bytes to blocks, blocks to tokens.

Source: vLLM 0.33 vllm/v1/core/kv_cache_planning.py (kv_cache_utils.py before).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from world.engine.versions import Version


@dataclass(frozen=True)
class Layer:
    """One layer's cache on one rank, before grouping."""

    kind: str  # full, sliding, chunked, mla, mamba
    block: int  # tokens of a page
    page: int  # bytes
    window: int = 0
    shape: tuple[object, ...] = ()
    stage: int = 0
    padded: int = 0

    @property
    def page_bytes(self) -> int:
        return self.padded or self.page


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What decides the number of pages a request needs."""

    version: Version
    in_flight_tokens: int  # F
    state_pages: int = 1
    decode_context_parallel_size: int = 1
    hybrid_manager: bool = True


def ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def pages(layer: Layer, length: int, rules: Rules) -> int:
    """Pages of this layer one request of `length` tokens needs."""
    flight = rules.in_flight_tokens
    if layer.kind == "sliding":
        return ceil(min(layer.window - 1 + flight, length), layer.block) + 1
    if layer.kind == "chunked":
        return ceil(min(layer.window + flight, length), layer.block)
    if layer.kind == "mamba":
        return rules.state_pages
    return ceil(ceil(length, rules.decode_context_parallel_size), layer.block)


def grouped(layers: Sequence[Layer], rules: Rules) -> list[list[Layer]]:
    """Groups of layers that share block tables."""
    kinds = {layer.kind for layer in layers}
    windows = kinds & {"sliding", "chunked"}
    if not rules.hybrid_manager and windows and kinds - windows:
        layers = [
            replace(layer, kind="full", window=0) if layer.window else layer for layer in layers
        ]
        kinds = {layer.kind for layer in layers}
    alike = {(layer.kind, layer.window, layer.block) for layer in layers}
    if len(alike) <= 1:
        return [list(layers)] if layers else []
    unified = _one_page_size(layers)
    buckets: dict[tuple[object, ...], list[Layer]] = {}
    for layer in unified:
        key = (layer.kind, layer.window, layer.block, layer.page_bytes, layer.shape)
        buckets.setdefault(key, []).append(layer)
    smallest = min(len(bucket) for bucket in buckets.values())
    largest = max(len(bucket) for bucket in buckets.values())
    size = largest if largest < 1.5 * smallest else smallest
    groups: list[list[Layer]] = []
    for bucket in buckets.values():
        number = ceil(len(bucket), size)
        groups += [bucket[start::number] for start in range(number)]
    return groups


def _one_page_size(layers: Sequence[Layer]) -> list[Layer]:
    largest = max(layer.page_bytes for layer in layers)
    unified: list[Layer] = []
    for layer in layers:
        page = layer.page_bytes
        if page == largest:
            unified.append(layer)
        elif layer.kind != "mamba" and largest % page == 0:
            ratio = largest // page
            unified.append(replace(layer, block=layer.block * ratio, page=largest))
        else:
            unified.append(replace(layer, padded=largest))
    return unified


@dataclass(frozen=True)
class CacheFull(Exception):  # noqa: N818  # a refusal, named for what it says
    """One request does not fit; what it needs, what there is, the length that would fit."""

    needed: int
    usable: int
    estimated: int
    length: int


class NoBlocks(Exception):  # noqa: N818
    """Nothing is left for blocks."""


@dataclass(frozen=True)
class Plan:
    """What the engine prints and serves."""

    blocks: int
    length: int
    concurrency: float
    tokens: int
    block_size: int  # the smallest over the groups
    groups: list[list[Layer]] = field(default_factory=list)


def plan(
    layers: Sequence[Layer],
    rules: Rules,
    *,
    available: Sequence[int],
    length: int,
    auto_fit: bool = False,
    blocks_override: int | None = None,
) -> Plan:
    """Blocks and tokens for the cache bytes of each pipeline stage, or the refusal."""
    groups = grouped(layers, rules)
    if not groups:
        return Plan(1, length, 1.0, length, 16)
    per_block = [_bytes_per_block(groups, stage) for stage in range(len(available))]
    memory = list(available)
    if blocks_override and rules.version >= (0, 20, 1):
        memory = [blocks_override * size for size in per_block]
    null_block = rules.version >= (0, 29, 0)
    usable = [
        had - (size if null_block else 0) for had, size in zip(memory, per_block, strict=True)
    ]
    if auto_fit:
        length = _fit(groups, rules, per_block, usable, length)
        if length == 0:
            raise NoBlocks
    _check(groups, rules, per_block, usable, length)
    counts = [had // size for had, size in zip(memory, per_block, strict=True) if size]
    blocks = min(counts)
    if blocks_override and rules.version < (0, 20, 1):
        blocks = blocks_override
    request = _request_pages(groups, length, rules)
    concurrency = blocks / request
    smallest = min(layer.block for group in groups for layer in group)
    tokens = int(concurrency * length)
    if rules.version < (0, 20, 1):
        tokens = blocks // len(groups) * smallest * rules.decode_context_parallel_size
    return Plan(blocks, length, concurrency, tokens, smallest, groups)


def _bytes_per_block(groups: list[list[Layer]], stage: int) -> int:
    return max(sum(layer.page_bytes for layer in group if layer.stage == stage) for group in groups)


def _request_pages(groups: list[list[Layer]], length: int, rules: Rules) -> int:
    return sum(max(pages(layer, length, rules) for layer in group) for group in groups)


def _needed(groups: list[list[Layer]], rules: Rules, per_block: int, length: int) -> int:
    """Before 0.19 only the first group was counted."""
    counted = groups if rules.version >= (0, 19, 0) else groups[:1]
    return per_block * _request_pages(counted, length, rules)


def _fit(
    groups: list[list[Layer]],
    rules: Rules,
    per_block: Sequence[int],
    usable: Sequence[int],
    limit: int,
) -> int:
    """The longest request that fits every stage, by bisection; 0: none does."""

    def fits(length: int) -> bool:
        return all(
            _needed(groups, rules, size, length) <= room
            for size, room in zip(per_block, usable, strict=True)
        )

    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _check(
    groups: list[list[Layer]],
    rules: Rules,
    per_block: Sequence[int],
    usable: Sequence[int],
    length: int,
) -> None:
    if any(room <= 0 for room in usable):
        raise NoBlocks
    for size, room in zip(per_block, usable, strict=True):
        needed = _needed(groups, rules, size, length)
        if needed > room:
            estimated = _fit(groups, rules, [size], [room], length)
            raise CacheFull(needed, room, estimated, length)
