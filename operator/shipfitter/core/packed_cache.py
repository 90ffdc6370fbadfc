"""DeepSeek-V4's cache: seven kinds of pages packed into blocks of one pool.

Source: vLLM 0.20 to 0.33 vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py)
group_and_unify_kv_cache_specs, _approximate_gcd, _pool_bytes_per_block, run on these specs; the
token lines of seven logs of 0.22 to 0.31.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shipfitter.core.cache_specs import CacheKey
from shipfitter.core.model import LayerFacts, LayerKind, ModelFacts
from shipfitter.core.page_laws import PageLaw, retained_tokens
from shipfitter.core.versions import EngineVersion
from shipfitter.errors import UnknownArchitectureError
from shipfitter.units import ceil_div

BLOCK_TOKENS = 256  # of compressed rows
_WINDOW_BLOCK_TOKENS = 64
_HEAD_DIM = 512  # the only width the kernels know
# Pages are whole multiples of 576 bytes: 64 rows of 584 bytes (448 fp8, 64 bf16, scales), 64 rows
# of 132 for the indexer, 2 rows of 584; states of compressors are float32.
_ROWS_PAGE = 37_440
_INDEXER_PAGE = 8_640
_SPARSE_PAGE = 1_728
_STATE_PAGE = 32_832
_INDEXER_STATE_PAGE = 8_640
_STATE_PADDED_TO = _ROWS_PAGE  # until 0.26
_TUPLE_BYTES = _ROWS_PAGE + _INDEXER_PAGE + _SPARSE_PAGE
_FINE, _COARSE = 4, 128  # compression ratios
_FINE_STATE = (4, 2 * _FINE)  # tokens of a block, of the window
_COARSE_STATE = (8, _COARSE)

_POOL_OF_PAGES = EngineVersion(0, 23, 0)
_UNPADDED_STATES = EngineVersion(0, 27, 0)
_NEED_OF_BLOCKS = EngineVersion(0, 29, 0)


@dataclass(frozen=True, slots=True)
class _Page:
    """One layer's page in a group."""

    layer: int
    size: int


@dataclass(frozen=True, slots=True)
class PackedGroup:
    """Layers that take a block together."""

    pages: tuple[_Page, ...]
    law: PageLaw

    def size(self, layers: range) -> int:
        """Bytes on the layers of one stage."""
        return sum(page.size for page in self.pages if page.layer in layers)

    def count(self, layers: range) -> int:
        """Layers of one stage in the group."""
        return len({page.layer for page in self.pages if page.layer in layers})


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCache:
    """Groups, and the bytes of a block and of a page in the need, for each stage."""

    groups: tuple[PackedGroup, ...]
    bytes_per_block: tuple[int, ...]
    needed_page_bytes: tuple[int, ...]
    weighs_groups: bool  # concurrency counts bytes of groups, not pages (until 0.26)


def is_packed(model: ModelFacts) -> bool:
    """True for models whose cache is planned here."""
    return any(layer.kind is LayerKind.COMPRESSED for layer in model.layers)


def packed_cache(
    model: ModelFacts,
    layers: Sequence[LayerFacts],
    stages: Sequence[range],
    key: CacheKey,
    *,
    in_flight_tokens: int,
) -> PackedCache:
    """The cache of all layers, drafters included.

    Raises UnknownArchitectureError for widths that the kernels do not know.
    """
    if any(layer.head_dim != _HEAD_DIM for layer in layers):
        raise UnknownArchitectureError(
            f"model {model.name}: packed caches are known for heads of {_HEAD_DIM} only"
        )
    version = key.version
    kept = retained_tokens(model, key)
    groups = _groups(layers, version, _Window(kept, in_flight_tokens))
    bytes_per_block = tuple(_pool_bytes(groups, layers, stage, version) for stage in stages)
    old_need = version < _NEED_OF_BLOCKS
    needed = tuple(_TUPLE_BYTES * _longest(groups, stage) for stage in stages)
    return PackedCache(
        groups=groups,
        bytes_per_block=bytes_per_block,
        needed_page_bytes=needed if old_need else bytes_per_block,
        weighs_groups=version < _UNPADDED_STATES,
    )


@dataclass(frozen=True, slots=True)
class _Window:
    """What a window keeps beside its own width."""

    retained_tokens: int
    in_flight_tokens: int

    def law(self, block_tokens: int, window_tokens: int) -> PageLaw:
        return PageLaw(
            block_tokens=block_tokens,
            constant_pages=1,
            cap_tokens=window_tokens - 1 + self.retained_tokens + self.in_flight_tokens,
            in_flight_tokens=self.in_flight_tokens,
        )


def _groups(
    layers: Sequence[LayerFacts], version: EngineVersion, window: _Window
) -> tuple[PackedGroup, ...]:
    fine = [index for index, layer in enumerate(layers) if layer.compress_ratio == _FINE]
    coarse = [index for index, layer in enumerate(layers) if layer.compress_ratio == _COARSE]
    every = list(range(len(layers)))
    most = max(len(fine), len(coarse), 1)
    size = _group_size(most, (most, len(every), len(fine), len(coarse)))
    state = _STATE_PAGE if version >= _UNPADDED_STATES else _STATE_PADDED_TO
    compressed = PackedGroup(
        (
            *(_Page(index, _ROWS_PAGE) for index in fine),
            *(_Page(index, _INDEXER_PAGE) for index in fine),
            *(_Page(index, _SPARSE_PAGE) for index in coarse),
        ),
        PageLaw(block_tokens=BLOCK_TOKENS),
    )
    width = max(layer.window_tokens for layer in layers)
    return (
        compressed,
        *_split(every, size, (_ROWS_PAGE,), window.law(_WINDOW_BLOCK_TOKENS, width)),
        *_split(fine, size, (state, _INDEXER_STATE_PAGE), window.law(*_FINE_STATE)),
        *_split(coarse, size, (state,), window.law(*_COARSE_STATE)),
    )


def _group_size(least: int, counts: Sequence[int]) -> int:
    """The size that pads the kinds least; of equals the larger."""
    sizes = range(least, max(counts) + 1)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))


def _split(
    layers: Sequence[int], size: int, pages: Sequence[int], law: PageLaw
) -> tuple[PackedGroup, ...]:
    count = ceil_div(len(layers), size)
    return tuple(
        PackedGroup(tuple(_Page(layer, page) for layer in layers[i::count] for page in pages), law)
        for i in range(count)
    )


def _longest(groups: Sequence[PackedGroup], stage: range) -> int:
    """Layers in the longest group; the compressed one counts its ratios apart."""
    first, *others = groups
    fine = sum(page.size == _ROWS_PAGE and page.layer in stage for page in first.pages)
    coarse = sum(page.size == _SPARSE_PAGE and page.layer in stage for page in first.pages)
    return max(fine, coarse, *(group.count(stage) for group in others))


def _pool_bytes(
    groups: Sequence[PackedGroup],
    layers: Sequence[LayerFacts],
    stage: range,
    version: EngineVersion,
) -> int:
    """Bytes one block takes in the pool of a stage, as the release lays it out."""
    if version < _POOL_OF_PAGES:
        return _TUPLE_BYTES * _longest(groups, stage)
    if version >= _UNPADDED_STATES:
        return max(group.size(stage) for group in groups)
    rows = max(
        sum(page.size == _ROWS_PAGE and page.layer in stage for page in group.pages)
        for group in groups
    )
    on_stage = [layer for index, layer in enumerate(layers) if index in stage]
    fine = sum(layer.compress_ratio == _FINE for layer in on_stage)
    coarse = sum(layer.compress_ratio == _COARSE for layer in on_stage)
    return _ROWS_PAGE * rows + _INDEXER_PAGE * fine + _SPARSE_PAGE * coarse
