"""Repositories made from a config.json and tensor shapes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from world.hub.tensors import tensors_of
from world.hub.virtual_files import Tensor, VirtualFile, json_file, sharded_files

SHARD_BYTES = 5_000_000_000  # what `save_pretrained` writes at most into one file


@dataclass(frozen=True, kw_only=True)
class Repository:
    """One model repository, at one commit, reachable by branch, tag and commit."""

    name: str
    files: Mapping[str, VirtualFile]
    sha: str
    refs: tuple[str, ...] = ("main",)
    gated: bool = False
    private: bool = False
    disabled: bool = False
    accepted_tokens: frozenset[str] = field(default_factory=frozenset)

    def has_revision(self, revision: str) -> bool:
        return revision in self.refs or revision == self.sha or self._is_short_sha(revision)

    def _is_short_sha(self, revision: str) -> bool:
        return len(revision) >= 7 and self.sha.startswith(revision)

    @property
    def stored_bytes(self) -> int:
        """Bytes of all tensors, without the headers."""
        return sum(
            file.size_bytes - len(file.head)
            for name, file in self.files.items()
            if name.endswith(".safetensors")
        )


def repository(
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    tensors: Sequence[Tensor | tuple[str, str, Sequence[int]]] = (),
    shard_bytes: int = SHARD_BYTES,
    more_files: Mapping[str, VirtualFile] | None = None,
    refs: tuple[str, ...] = ("main",),
    gated: bool = False,
    private: bool = False,
    disabled: bool = False,
    accepted_tokens: Sequence[str] = (),
) -> Repository:
    """A repository with this config and these tensors; the commit follows from both."""
    held = [
        tensor if isinstance(tensor, Tensor) else Tensor(tensor[0], tensor[1], tuple(tensor[2]))
        for tensor in tensors
    ]
    files: dict[str, VirtualFile] = {"README.md": VirtualFile(b"# " + name.encode() + b"\n")}
    if config is not None:
        files["config.json"] = json_file(config)
    if held:
        files |= sharded_files(held, shard_bytes=shard_bytes)
    files |= more_files or {}
    digest = hashlib.sha1(name.encode(), usedforsecurity=False)
    for file_name in sorted(files):
        digest.update(file_name.encode() + files[file_name].etag.encode())
    return Repository(
        name=name,
        files=files,
        sha=digest.hexdigest(),
        refs=refs,
        gated=gated,
        private=private,
        disabled=disabled,
        accepted_tokens=frozenset(accepted_tokens),
    )


def synthetic_repo(name: str, config: Mapping[str, Any], **options: Any) -> Repository:
    """A repository whose tensors follow from the config alone, named and shaped by family."""
    return repository(name, config=config, tensors=tensors_of(config), **options)
