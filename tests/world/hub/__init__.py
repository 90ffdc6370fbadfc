"""A model hub on this machine: the part of the protocol that `huggingface_hub` uses, without disk.

`Hub` is the server; `repository` makes what it serves, `synthetic_repo` out of a config.json alone,
`published_repo` out of the facts in `models/`.
"""

from world.hub.faults import Faults
from world.hub.published import (
    published_bytes,
    published_config,
    published_names,
    published_repo,
)
from world.hub.repository import Repository, repository, synthetic_repo
from world.hub.server import Hub

__all__ = [
    "Faults",
    "Hub",
    "Repository",
    "published_bytes",
    "published_config",
    "published_names",
    "published_repo",
    "repository",
    "synthetic_repo",
]
