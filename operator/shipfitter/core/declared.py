"""What the chart's values declare of GPU nodes: a JSON list, every mistake in it named."""

import json
from typing import Any

from shipfitter.core.capacity import read_taints
from shipfitter.core.expected import MOST_GPUS_PER_NODE, ExpectedNodes
from shipfitter.core.spellings import resolve_spelling, unknown_spelling


def declared_capacity(text: str, problems: list[str]) -> tuple[ExpectedNodes, ...]:
    """The kinds of nodes in the value `capacity.declared`; mistakes are added to the problems."""
    if not text:
        return ()
    try:
        entries = json.loads(text)
    except ValueError as error:
        problems.append(f"capacity.declared: not JSON: {error}")
        return ()
    if not isinstance(entries, list):
        problems.append(f"capacity.declared: must be a list, got {type(entries).__name__}")
        return ()
    found = [_nodes(entry, f"capacity.declared[{n}]", problems) for n, entry in enumerate(entries)]
    return tuple(each for each in found if each)


def _nodes(entry: Any, path: str, problems: list[str]) -> ExpectedNodes | None:
    if not isinstance(entry, dict):
        problems.append(f"{path}: must be an object, got {entry!r}")
        return None
    product = str(entry.get("product", ""))
    resolved = resolve_spelling(product)
    if resolved is None:
        problems.append(f"{path}.product: {product!r} is {unknown_spelling(product)}")
        return None
    gpus = entry.get("gpusPerNode") or resolved.gpus_per_node or 1
    labels = entry.get("nodeLabels") or {}
    if not isinstance(gpus, int) or not 0 < gpus <= MOST_GPUS_PER_NODE:
        problems.append(f"{path}.gpusPerNode: must be 1 to {MOST_GPUS_PER_NODE}, got {gpus!r}")
        return None
    if not isinstance(labels, dict) or not labels:
        problems.append(f"{path}.nodeLabels: give the labels that such nodes have")
        return None
    return ExpectedNodes(
        found=resolved,
        gpus_per_node=gpus,
        labels={str(key): str(value) for key, value in labels.items()},
        taints=read_taints(entry.get("taints")),
    )
