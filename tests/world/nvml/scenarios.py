"""Scenario files: what the shim answers, one "key value" a line; shim.c's head lists the keys."""

import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shipfitter.core.gpus import GpuProduct, resolve_product
from shipfitter.units import MIB
from world.nvml.library import cache_folder

FOLDER = Path(__file__).with_name("scenarios")

SYSTEM: Mapping[str, Any] = {"driver": "580.95.05", "nvml": "13.580.95.05", "cuda": 13000}
SYSTEM_KEYS = (*SYSTEM, "init", "shutdown_file")


def names() -> tuple[str, ...]:
    """The scenarios that come as files."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.scenario")))


def named(name: str) -> Path:
    """The file of a scenario."""
    return FOLDER / f"{name}.scenario"


def scenario(product: str, count: int, *, path: Path | None = None, **changes: Any) -> Path:
    """Write a scenario of `count` equal GPUs, changed as told, and say where.

    Changes: any key of the system (`driver=`, `init=`) or of every GPU (`used_mib=`, `ecc=0`; None
    drops a fact); `gpus={1: {"lost": 1}}` for single ones; `mig={0: [(slot, profile, MiB)]}`;
    `fail={"nvmlDeviceGetName": 999}`; `node=` makes the identifiers another machine's.
    Replaced in one step, so that a running agent never reads half a file.
    """
    text = scenario_text(product, count, **changes)
    if path is None:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = cache_folder() / "scenarios" / f"{digest}.scenario"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)
    return path


def scenario_text(
    product: str,
    count: int,
    *,
    node: str = "n1",
    gpus: Mapping[int, Mapping[str, Any]] | None = None,
    mig: Mapping[int, Sequence[tuple[int, str, int]]] | None = None,
    fail: Mapping[str, int] | None = None,
    **changes: Any,
) -> str:
    """The text of a scenario; see `scenario`."""
    facts = SYSTEM | {key: changes.pop(key) for key in SYSTEM_KEYS if key in changes}
    lines = [f"{key} {value}" for key, value in facts.items() if value is not None]
    for index in range(count):
        gpu_facts = _gpu_facts(product, index, node) | changes | (gpus or {}).get(index, {})
        slices = (mig or {}).get(index)
        if slices is not None:
            gpu_facts["mig"] = 1
        lines += [
            f"gpu.{index}.{key} {value}" for key, value in gpu_facts.items() if value is not None
        ]
        for slot, profile, memory_mib in slices or ():
            mig_facts = {
                "uuid": f"MIG-{uuid.uuid5(uuid.NAMESPACE_URL, f'{node}/{index}/{slot}')}",
                "name": f"{gpu_facts['name']} MIG {profile}",
                "gi": slot + 1,
                "ci": 0,
                "gi_slices": profile.partition("g.")[0],
                "memory_mib": memory_mib,
            }
            lines += [f"gpu.{index}.mig.{slot}.{key} {value}" for key, value in mig_facts.items()]
    lines += [f"fail.{function} {code}" for function, code in (fail or {}).items()]
    return "\n".join(lines) + "\n"


def gpu_uuids(path: Path) -> tuple[str, ...]:
    """The identifiers of a scenario's GPUs, in their order."""
    facts = dict(line.split(" ", 1) for line in path.read_text().splitlines() if " " in line)
    keys = (f"gpu.{index}.uuid" for index in range(64))
    return tuple(facts[key] for key in keys if key in facts)


def _gpu_facts(product: str, index: int, node: str) -> dict[str, Any]:
    """What hardware of this product answers; a product nobody knows is given memory by changes."""
    row = resolve_product(product)
    return {
        "name": row.aliases[0] if row else product,
        "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_URL, f'{node}/{index}')}",
        "minor": index,
        "pci_bus_id": f"00000000:{0x17 + 8 * index:02X}:00.0",
        "compute_mode": 0,
        "numa_node": index // 4,
        "used_mib": 1,
        **(_catalogue_facts(row) if row else {}),
    }


def _catalogue_facts(row: GpuProduct) -> dict[str, Any]:
    major, minor = row.compute_capability
    facts: dict[str, Any] = {"compute_capability": f"{major}.{minor}"}
    if not row.unified:
        facts["total_mib"] = row.nvml_total_bytes // MIB
        facts["reserved_mib"] = row.reserved_bytes // MIB
    if "GeForce" not in row.product and not row.unified:
        facts["ecc"] = 1
    if (major, minor) in {(8, 0), (9, 0), (10, 0), (10, 3)}:
        facts["mig"] = 0
        facts["remapped_rows"] = "0 0 0 0"
    if row.nvlink:
        facts["island"] = 0
    return facts
