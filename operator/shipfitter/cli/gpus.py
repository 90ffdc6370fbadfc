"""`shipfitter gpus`: what a cluster's GPUs offer, pool by pool, and what a spelling stands for."""

import json
import sys
from pathlib import Path

from shipfitter.cli.gpus_text import capacity_text, resolved_text
from shipfitter.cli.nodes import cluster_expected, cluster_nodes, read_expected, read_nodes
from shipfitter.cli.pools_record import Surveyed, pools_record, surveyed
from shipfitter.core.spellings import (
    Resolved,
    nearest_spellings,
    resolve_spelling,
    unknown_spelling,
)
from shipfitter.errors import UserError

EXIT_FINE, EXIT_MISTAKE = 0, 2


def run_gpus(nodes: Path | None, *, resolve: str | None, output: str, context: str | None) -> int:
    """Print the pools of a cluster or of a file of nodes, or what a spelling means."""
    try:
        if resolve is not None:
            return _resolve(resolve, output)
        capacities = read_nodes(nodes) if nodes else cluster_nodes(context)
        coming = read_expected(nodes) if nodes else cluster_expected(context)
    except UserError as error:
        print(f"shipfitter: {error}", file=sys.stderr)
        return EXIT_MISTAKE
    _show(surveyed(capacities, coming), output)
    return EXIT_FINE


def _show(found: Surveyed, output: str) -> None:
    if output == "text":
        print(capacity_text(found))
    else:
        _print(pools_record(found), output)


def _resolve(spelling: str, output: str) -> int:
    found = resolve_spelling(spelling)
    if found is None:
        print(f"shipfitter: {spelling!r}: {unknown_spelling(spelling)}", file=sys.stderr)
        if output != "text":
            near = list(nearest_spellings(spelling))
            _print({"spelling": spelling, "product": None, "nearest": near}, output)
        return EXIT_MISTAKE
    if output == "text":
        print(resolved_text(found))
    else:
        _print(_record(found), output)
    return EXIT_FINE


def _record(found: Resolved) -> dict[str, object]:
    row = found.row
    record: dict[str, object] = {
        "product": row.product,
        "usableBytes": found.usable_bytes,
        "nominalBytes": row.nominal_bytes,
        "computeCapability": ".".join(map(str, row.compute_capability)),
        "gpusPerNode": found.gpus_per_node,
        "source": found.source,
    }
    if found.mig_profile:
        record["migProfile"] = found.mig_profile
    return record


def _print(record: object, output: str) -> None:
    if output == "json":
        print(json.dumps(record, indent=2))
        return
    import yaml

    print(yaml.safe_dump(record, sort_keys=False), end="")
