"""What runs, written down outside the planes: a plane whose owner died is found and removed."""

import dataclasses
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from .processes import Identity, end
from .tools import cache_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One plane; without an owner it runs until somebody stops it."""

    folder: Path
    owner: Identity | None
    processes: dict[str, Identity]
    url: str

    def abandoned(self) -> bool:
        """Whether nobody can stop it any more: its owner died, or it has no process left."""
        if self.owner:
            return not self.owner.alive()
        return bool(self.processes) and not any(p.alive() for p in self.processes.values())


def records_folder() -> Path:
    return cache_folder() / "planes"


def new_path() -> Path:
    """Where a new plane writes its record."""
    records_folder().mkdir(parents=True, exist_ok=True)
    return records_folder() / f"{secrets.token_hex(8)}.json"


def write(path: Path, record: Record) -> None:
    """The record, whole or not at all."""
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(dataclasses.asdict(record), default=str))
    draft.replace(path)


def read(path: Path) -> Record | None:
    """The record; None when it is gone meanwhile."""
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return Record(
        folder=Path(raw["folder"]),
        owner=Identity(**raw["owner"]) if raw["owner"] else None,
        processes={name: Identity(**identity) for name, identity in raw["processes"].items()},
        url=raw["url"],
    )


def records() -> dict[Path, Record]:
    """Every plane of this cache."""
    paths = sorted(records_folder().glob("*.json"))
    return {path: record for path in paths if (record := read(path))}


def remove(path: Path, record: Record) -> None:
    """Nothing of the plane is left: no process, no folder, no record."""
    end(record.processes.values())
    shutil.rmtree(record.folder, ignore_errors=True)
    path.unlink(missing_ok=True)


def remove_abandoned() -> list[Record]:
    """Remove the planes whose owners died; says which."""
    gone = {path: record for path, record in records().items() if record.abandoned()}
    for path, record in gone.items():
        remove(path, record)
    return list(gone.values())
