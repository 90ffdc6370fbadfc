"""Published models: their config.json in `models/`, with the bytes their checkpoints store."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from world.hub.repository import Repository, synthetic_repo

MODELS = Path(__file__).parent / "models"


def published_names() -> tuple[str, ...]:
    """All models kept here, as ORG/NAME."""
    return tuple(sorted(path.stem.replace("--", "/") for path in MODELS.glob("*.json")))


@cache
def _record(name: str) -> dict[str, Any]:
    path = MODELS / f"{name.replace('/', '--')}.json"
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def published_config(name: str) -> dict[str, Any]:
    """The model's config.json."""
    config: dict[str, Any] = json.loads(json.dumps(_record(name)["config"]))
    return config


def published_bytes(name: str) -> int:
    """Bytes of all tensors of the published checkpoint."""
    stored_bytes: int = _record(name)["stored_bytes"]
    return stored_bytes


def published_repo(name: str, **options: Any) -> Repository:
    """The repository as published, holes in place of the weights."""
    return synthetic_repo(name, published_config(name), **options)
