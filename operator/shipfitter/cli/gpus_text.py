"""Pools and spellings for a person, within 80 columns."""

from collections.abc import Iterator
from textwrap import wrap

from shipfitter.cli.pools_record import Counted, LeftOut, Surveyed
from shipfitter.core.spellings import Resolved
from shipfitter.units import format_gib

WIDTH = 80
HEADER = ("PRODUCT", "NODES", "GPUS", "FREE", "USABLE", "SOURCE", "CONFIDENCE")
_RIGHT = frozenset({1, 2, 3, 4})
_GAP = 2
_NOTHING = (
    "no GPU: no node has one that an agent, a ResourceSlice or a label describes.\n"
    "With the agent installed `kubectl get gpunodes` says what each driver answers."
)
_LABEL = 20


def capacity_text(found: Surveyed) -> str:
    """A line for each pool, what is special about it below, and the nodes that count for none."""
    if not found.pools and not found.left_out:
        return _NOTHING
    lines = list(_table(found.pools)) if found.pools else ["no GPU that a new pod could have"]
    lines += _nodes("left out", found.left_out)
    return "\n".join(lines + _nodes("not believed", found.doubted))


def resolved_text(found: Resolved) -> str:
    """What a spelling stands for."""
    row = found.row
    profile = f", MIG {found.mig_profile}" if found.mig_profile else ""
    formats = [name for name, able in (("FP8", row.fp8), ("FP4", row.fp4)) if able]
    facts = [
        ("usable", f"{format_gib(found.usable_bytes)} of {row.nominal_bytes // 2**30} GiB as sold"),
        ("compute capability", ".".join(map(str, row.compute_capability))),
        ("NVLink", "yes" if row.nvlink else "no"),
        ("computes in", ", ".join(["BF16", *formats])),
        ("source", found.source),
    ]
    if row.compute_capability < (8, 0):
        facts[3] = ("computes in", "FP16")
    if found.gpus_per_node:
        facts.insert(1, ("GPUs per node", str(found.gpus_per_node)))
    lines = [line for name, value in facts for line in _fact(name, value)]
    return "\n".join([f"{row.product}{profile}", *lines])


def _fact(name: str, value: str) -> list[str]:
    return wrap(
        f"  {name:<{_LABEL}}{value}",
        width=WIDTH,
        subsequent_indent=" " * (_LABEL + 2),
        break_on_hyphens=False,
    )


def _table(pools: tuple[Counted, ...]) -> Iterator[str]:
    rows = [_row(each) for each in pools]
    others = [max(len(row[column]) for row in (HEADER, *rows)) for column in range(1, len(HEADER))]
    room = WIDTH - sum(others) - _GAP * len(others)
    short = [len(row[0]) for row in (HEADER, *rows) if len(row[0]) <= room]
    widths = [max(short), *others]
    yield _line(HEADER, widths)
    for counted, row in zip(pools, rows, strict=True):
        if len(row[0]) > widths[0]:
            yield row[0]
            row = ("", *row[1:])  # noqa: PLW2901  # the name has a line of its own
        yield _line(row, widths)
        for note in _notes(counted):
            yield from wrap(note, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _row(counted: Counted) -> tuple[str, ...]:
    pool = counted.pool
    profile = f" {pool.mig_profile}" if pool.mig_profile else ""
    return (
        f"{pool.product.removeprefix('NVIDIA-')}{profile}",
        str(len(pool.nodes)),
        str(counted.gpus),
        str(pool.free_gpus),
        format_gib(pool.total_bytes - pool.foreign_used_bytes),
        str(pool.source),
        pool.source.confidence,
    )


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (
        cell.rjust(width) if column in _RIGHT else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return (" " * _GAP).join(padded).rstrip()


def _notes(counted: Counted) -> Iterator[str]:
    """What a plan for this pool has to mind."""
    pool = counted.pool
    if counted.origins:
        yield f"not there yet, {pool.gpus_per_node} a node: {', '.join(counted.origins)}"
    if pool.sharing != "none":
        yield f"{pool.sharing}, {pool.replicas_per_gpu} a GPU: only with spec.gpus.allowShared"
    if pool.other_products:
        others = ", ".join(name.removeprefix("NVIDIA-") for name in pool.other_products)
        yield f"mixed with {others}: sized by the smallest"
    if pool.foreign_used_bytes:
        yield f"other programs hold {format_gib(pool.foreign_used_bytes)} of each"
    if not pool.selector_is_exact and not pool.other_products:
        yield "no label tells these nodes from others with GPUs"
    if "/" in pool.resource_name and pool.resource_name.partition("/")[0] != "nvidia.com":
        yield "by ResourceClaim: spec.gpus.allocation DRA"


def _nodes(title: str, nodes: tuple[LeftOut, ...]) -> list[str]:
    lines = ["", f"{title}:"] if nodes else []
    for each in nodes:
        line = f"{each.node}: {each.reason}"
        lines += wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines
