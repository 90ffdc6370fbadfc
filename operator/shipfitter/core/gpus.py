"""GPU products: what a card offers when nobody measured it, and the spellings that name it."""

import re
from difflib import SequenceMatcher
from functools import cache, lru_cache

from shipfitter.core.gpu_product import (
    GpuProduct,
    assumed_reserved_bytes,
    default_reserved_bytes,
    is_implausible,
)
from shipfitter.core.gpu_rows import Ecc, Row
from shipfitter.core.gpu_rows_earlier import ADA, AMPERE, OLDER
from shipfitter.core.gpu_rows_geforce import GEFORCE
from shipfitter.core.gpu_rows_laptop import LAPTOP
from shipfitter.core.gpu_rows_server import BLACKWELL, HOPPER
from shipfitter.core.gpu_rows_sizes import OTHER_SIZES
from shipfitter.core.gpu_rows_workstation import UNIFIED, WORKSTATION
from shipfitter.core.gpu_words import Words, bare_product, normalise_product, printed_name, words_of
from shipfitter.units import GIB, MIB

__all__ = [
    "GpuProduct",
    "assumed_reserved_bytes",
    "bare_product",
    "default_reserved_bytes",
    "is_implausible",
    "nearest_products",
    "normalise_product",
    "products",
    "resolve_product",
]


def products() -> tuple[GpuProduct, ...]:
    """Every row of the catalogue, in its order."""
    return tuple(_catalogue())


@lru_cache(maxsize=4096)  # the same few names come from every node of a fleet
def resolve_product(spelling: str) -> GpuProduct | None:
    """The catalogue's row for any spelling of a product; None when it is not known.

    Case, vendor words and separators do not matter. A name that stands for cards of different
    memory ("a100", "v100") names none of them.

    >>> resolve_product("nvidia-tesla-t4").product, resolve_product("NVIDIA L40S-SHARED").product
    ('Tesla-T4', 'NVIDIA-L40S')
    >>> resolve_product("a100") is None
    True
    """
    product, _, _ = bare_product(printed_name(spelling.strip()))
    if product.endswith("..."):
        return _cut_short(product.removesuffix("..."))
    return (
        _by_exact_name().get(product.lower())
        or _by_key().get(_key(product))
        or _by_words(words_of(product))
    )


def _cut_short(begin: str) -> GpuProduct | None:
    """The first card whose name begins so, as `nvidia-smi` cuts it; None where they differ."""
    wanted = normalise_product(begin).lower()
    found = [row for row in _catalogue() if wanted and row.product.lower().startswith(wanted)]
    return found[0] if len({row.cuda_total_bytes for row in found}) == 1 else None


def _by_words(words: Words) -> GpuProduct | None:
    """The first card of a family that has the memory and the form told; None where several may be.

    A memory that no card of the name is sold with names none: it is a modified card, or a mistake.
    """
    family = words.family if words.family in _families() else words.family.replace("blackwell", "")
    if not words.gigabytes and not words.form and family in _by_key():
        return _by_key()[family]
    found = [
        row
        for row, sizes, forms in _families().get(family, ())
        if (words.gigabytes in sizes if words.gigabytes else _by_product().get(row.product) is row)
        and (not words.form or words.form in (forms or {"pcie"}))
    ]
    told = bool(words.gigabytes) or len({row.nvml_total_bytes for row in found}) == 1
    return found[0] if found and told else None


def nearest_products(spelling: str, limit: int = 3) -> tuple[str, ...]:
    """The products whose names come closest to a spelling, best first; none when none is close.

    >>> nearest_products("L40-S")
    ('NVIDIA-L40S', 'NVIDIA-L40', 'NVIDIA-L40G')
    >>> nearest_products("banana")
    ()
    """
    wanted = _key(spelling)
    if not wanted:
        return ()
    closeness: dict[str, float] = {}
    for key, row in _by_key().items():
        begins = key.startswith(wanted)
        score = 1.5 if begins else SequenceMatcher(None, wanted, key).ratio()
        closeness[row.product] = max(score, closeness.get(row.product, 0))
    close = [product for product, score in closeness.items() if score >= 0.65]
    # sorted() is stable: equals stay in the catalogue's order
    return tuple(sorted(close, key=lambda product: -closeness[product])[:limit])


# What error correction is on the cards of each table, where the row does not say.
_TABLES = (
    (HOPPER, Ecc.FREE),
    (BLACKWELL, Ecc.FREE),
    (ADA, Ecc.INLINE_ON),
    (AMPERE, Ecc.INLINE_ON),
    (OLDER, Ecc.INLINE_ON),
    (WORKSTATION, Ecc.INLINE_OFF),
    (LAPTOP, Ecc.NONE),
    (GEFORCE, Ecc.NONE),
    (UNIFIED, Ecc.NONE),
)
# HBM and GDDR7, by the architectures that have them. Source: the vendor's product briefs.
_FREE_ECC = ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (10, 3), (12, 0))


@cache
def _catalogue() -> tuple[GpuProduct, ...]:
    return tuple(_product(row, ecc) for rows, ecc in _TABLES for row in rows)


def _product(row: Row, usual: Ecc) -> GpuProduct:
    nvml_total_bytes = row.nvml_total_mib * MIB
    cuda_total_bytes = row.cuda_total_mib * MIB
    return GpuProduct(
        product=normalise_product(row.nvml_name),
        nvml_total_bytes=nvml_total_bytes,
        cuda_total_bytes=cuda_total_bytes
        or nvml_total_bytes - default_reserved_bytes(nvml_total_bytes),
        compute_capability=row.compute_capability,
        nvlink=row.nvlink,
        aliases=(row.nvml_name, *row.spellings.split()),
        source=row.source,
        nominal_bytes=row.nominal_gib * GIB,
        unified=row.unified,
        ecc=row.ecc or (Ecc.FREE if _has_free_ecc(row, usual) else usual),
    )


def _has_free_ecc(row: Row, usual: Ecc) -> bool:
    return usual is not Ecc.NONE and row.compute_capability in _FREE_ECC


# Several memory sizes share these names, so only a provider's own spelling, where it is one product
# (GKE's nvidia-tesla-a100), names a row.
_AMBIGUOUS_KEYS = frozenset({"a100", "v100"})


# What is on the box where it is neither the row's own figure nor part of a name. Source: vendor's
# product pages and system builders' (usable, with and without what is held back).
_ALSO_SOLD_AS = {
    "NVIDIA-B200": {180, 183},
    "NVIDIA-GB200": {180, 184, 186},
    "NVIDIA-B300": {262, 268, 270, 275},
    "NVIDIA-GB300": {277, 278, 279},
    "NVIDIA-GH200-480GB": {480},
    "NVIDIA-GH200-144G-HBM3e": {141},
}


@cache
def _families() -> dict[str, list[tuple[GpuProduct, frozenset[int], frozenset[str]]]]:
    """Cards by family, each with the memories and the forms its names tell."""
    families: dict[str, list[tuple[GpuProduct, frozenset[int], frozenset[str]]]] = {}
    other_sizes = (_product(row, Ecc.NONE) for row in OTHER_SIZES)
    for row in (*_catalogue(), *other_sizes):
        names = [words_of(name) for name in (row.product, *row.aliases)]
        sizes = {name.gigabytes for name in names if name.gigabytes}
        sizes |= {row.nominal_bytes // GIB, *_ALSO_SOLD_AS.get(row.product, ())}
        forms = frozenset(name.form for name in names if name.form)
        for family in dict.fromkeys(name.family for name in names):
            families.setdefault(family, []).append((row, frozenset(sizes), forms))
    return families


@cache
def _by_product() -> dict[str, GpuProduct]:
    return {row.product: row for row in _catalogue()}


@cache
def _by_exact_name() -> dict[str, GpuProduct]:
    return {name.lower(): row for row in _catalogue() for name in (row.product, *row.aliases)}


@cache
def _by_key() -> dict[str, GpuProduct]:
    """Rows by every spelling's key."""
    rows: dict[str, GpuProduct] = {}
    for row in _catalogue():
        for spelling in (row.product, *row.aliases):
            key = _key(spelling)
            if key not in _AMBIGUOUS_KEYS:
                rows.setdefault(key, row)
    return rows


def _key(spelling: str) -> str:
    """A spelling without case, separators and the words that say nothing about the product."""
    words = re.split(r"[^a-z0-9]+", spelling.lower())
    return "".join(word for word in words if word not in {"nvidia", "tesla", "geforce"})
