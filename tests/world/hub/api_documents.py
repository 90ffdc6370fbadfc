"""The JSON documents of the hub's API."""

from typing import Any

from world.hub.faults import Faults
from world.hub.repository import Repository
from world.hub.virtual_files import VirtualFile


def _stated_bytes(file: VirtualFile, faults: Faults) -> int:
    return file.size_bytes * 7 + 1 if faults.lying_sizes else file.size_bytes


def model_document(repository: Repository, faults: Faults, *, blobs: bool) -> dict[str, Any]:
    """What `GET /api/models/ORG/NAME` says; sizes only where `blobs` were asked for."""
    siblings: list[dict[str, Any]] = []
    for name, file in sorted(repository.files.items()):
        sibling: dict[str, Any] = {"rfilename": name}
        if blobs:
            size = _stated_bytes(file, faults)
            sibling |= {"size": size, "blobId": file.etag[:40]}
            if file.large:
                sibling["lfs"] = {"sha256": file.etag, "size": size, "pointerSize": 135}
        siblings.append(sibling)
    return {
        "_id": repository.sha[:24],
        "id": repository.name,
        "modelId": repository.name,
        "author": repository.name.partition("/")[0],
        "sha": repository.sha,
        "lastModified": "2026-01-01T00:00:00.000Z",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "private": repository.private,
        "gated": "manual" if repository.gated else False,
        "disabled": repository.disabled,
        "downloads": 0,
        "likes": 0,
        "tags": ["safetensors"],
        "pipeline_tag": "text-generation",
        "library_name": "transformers",
        "siblings": siblings,
    }


def tree_document(repository: Repository, faults: Faults) -> list[dict[str, Any]]:
    """What `GET /api/models/ORG/NAME/tree/REV` says."""
    return [
        {
            "type": "file",
            "oid": file.etag[:40],
            "size": _stated_bytes(file, faults),
            "path": name,
        }
        for name, file in sorted(repository.files.items())
    ]
