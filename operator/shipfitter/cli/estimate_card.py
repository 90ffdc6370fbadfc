"""The card an estimate is for: from its name, or from its memory alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from shipfitter.api.serve_notes import Unmodelled
from shipfitter.core.engines import Gpu
from shipfitter.core.gpus import (
    GpuProduct,
    default_reserved_bytes,
    nearest_products,
    resolve_product,
)
from shipfitter.core.refusals import Refusal
from shipfitter.core.spellings import Resolved, resolve_spelling
from shipfitter.errors import InvalidSpecError
from shipfitter.units import MIB

UNKNOWN = "unknown"
_MOST_GPUS = 1024
# A total this far from the catalogue's is another card of the name, or a slice of it.
_SAME_CARD_PERCENT = 5
_NAMELESS = Unmodelled(
    "the card has no name here: compute capability unknown, kernels and their buffers are guessed",
    -0.3,
    0.0,
    0.6,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The card, how many a node has (None: as many as are needed), and what is not known of it."""

    gpu: Gpu
    gpus_per_node: int | None
    mig_profile: str = ""
    unmodelled: tuple[Unmodelled, ...] = ()

    def problems(self, ranks: int) -> Iterator[tuple[Refusal, str]]:
        """Source: NVIDIA MIG User Guide: CUDA enumerates one compute instance in a process."""
        if self.mig_profile and ranks > 1:
            yield (
                Refusal.INVALID_PARALLELISM,
                f"an engine sees one MIG device at a time, so {ranks} ranks cannot share slices",
            )


def estimated_card(
    spelling: str | None, *, memory_mib: float | None, free_mib: float | None, nvlink: bool | None
) -> Card:
    """The card of --gpu PRODUCT[:COUNT] with the totals that were measured.

    Raises InvalidSpecError for a product or count that cannot be meant.
    """
    product, _, count = (spelling or UNKNOWN).partition(":")
    if count and not (count.isdigit() and 0 < int(count) <= _MOST_GPUS):
        raise InvalidSpecError(
            (f"--gpu {spelling}: the count is a number from 1 to {_MOST_GPUS}, got {count!r}",)
        )
    named = None if product.lower() == UNKNOWN else _known(product, memory_mib)
    row = named.row if named else None
    if row is None and memory_mib is None:
        raise InvalidSpecError(
            (
                "name the card with --gpu PRODUCT, or give --gpu unknown with --gpu-memory-mib, "
                "the total that CUDA sees",
            )
        )
    if memory_mib is not None and memory_mib <= 0:
        raise InvalidSpecError((f"--gpu-memory-mib: more than 0, got {memory_mib:g}",))
    total_bytes = int(memory_mib * MIB) if memory_mib else named.usable_bytes if named else 0
    gpu = _named(row, total_bytes) if row else _nameless(product, total_bytes)
    taken = 0 if free_mib is None else max(0, gpu.total_bytes - int(free_mib * MIB))
    return Card(
        gpu=Gpu(
            product=gpu.product,
            total_bytes=gpu.total_bytes,
            foreign_used_bytes=taken,
            nominal_bytes=gpu.nominal_bytes,
            compute_capability=gpu.compute_capability,
            nvlink=gpu.nvlink if nvlink is None else nvlink,
        ),
        gpus_per_node=int(count) if count else named.gpus_per_node if named else None,
        mig_profile=named.mig_profile if named else "",
        unmodelled=() if row else (_NAMELESS,),
    )


def _known(product: str, memory_mib: float | None) -> Resolved | None:
    found = resolve_spelling(product)
    if found is not None:
        return found
    row = resolve_product(product)
    if row is not None:  # the card is known, its slice is not
        if memory_mib is None:
            raise InvalidSpecError(
                (
                    f"--gpu {product}: a slice of the card; give its memory with "
                    "--gpu-memory-mib, the total that CUDA sees",
                )
            )
        return Resolved(row=row, usable_bytes=int(memory_mib * MIB))
    near = nearest_products(product)
    if not near and memory_mib is not None:
        return None  # a card of another maker: its memory is all we go by
    hint = f"did you mean {', '.join(near)}? Or" if near else "name an NVIDIA product, or"
    raise InvalidSpecError(
        (
            f"--gpu {product}: not in the catalogue; {hint} give --gpu unknown with "
            "--gpu-memory-mib, the total that CUDA sees",
        )
    )


def _named(row: GpuProduct, total_bytes: int) -> Gpu:
    apart = abs(total_bytes - row.cuda_total_bytes) * 100 > _SAME_CARD_PERCENT * total_bytes
    nominal_bytes = _nominal(total_bytes) if apart else row.nvml_total_bytes
    return Gpu(
        product=row.product,
        total_bytes=total_bytes,
        nominal_bytes=nominal_bytes,
        compute_capability=row.compute_capability,
        nvlink=row.nvlink,
    )


def _nameless(product: str, total_bytes: int) -> Gpu:
    return Gpu(product=product, total_bytes=total_bytes, nominal_bytes=_nominal(total_bytes))


def _nominal(total_bytes: int) -> int:
    return total_bytes + default_reserved_bytes(total_bytes)
