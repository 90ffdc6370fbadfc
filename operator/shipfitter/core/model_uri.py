"""Where a model lives: a hub repository or a folder on a claim."""

import re
from dataclasses import dataclass

from shipfitter.errors import InvalidSpecError

# Source: huggingface_hub 2.4 utils/_validators.py validate_repo_id: letters, digits and `-_.`, a
# letter, digit or `_` at either end, at most 96 characters a part, no `--`, no `..`, no `.git`.
_PART = r"\w(?:[\w.-]{0,94}\w)?"
_REPOSITORY = re.compile(rf"{_PART}/{_PART}", re.ASCII)
_NEVER = re.compile(r"--|\.\.|\.git\Z")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}\Z")
# Source: Kubernetes: the name of a claim is a DNS subdomain.
_CLAIM = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")
_WAYS = "write hf://ORG/NAME, hf://ORG/NAME@REVISION, ORG/NAME or pvc://CLAIM/PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUri:
    """One of the two places; `repository` is empty for a claim, `claim` for a hub."""

    repository: str = ""  # ORG/NAME
    revision: str | None = None
    claim: str = ""
    path: str = ""  # inside the claim, relative, "" for its root

    @property
    def is_hub(self) -> bool:
        """True for a repository of a hub."""
        return bool(self.repository)

    @property
    def name(self) -> str:
        """What clients call the model: the repository, or the last folder on the claim."""
        return self.repository or self.path.rpartition("/")[2] or self.claim

    def __str__(self) -> str:
        if self.claim:
            return f"pvc://{self.claim}/{self.path}".rstrip("/")
        return f"hf://{self.repository}" + (f"@{self.revision}" if self.revision else "")


def parse_model_uri(uri: str, *, where: str = "spec.model.uri") -> ModelUri:
    """The place a uri names; `where` is the field the message points at.

    >>> parse_model_uri("hf://Qwen/Qwen3-32B@v1").revision
    'v1'
    >>> str(parse_model_uri("Qwen/Qwen3-32B"))
    'hf://Qwen/Qwen3-32B'
    >>> parse_model_uri("pvc://models/llama/8b").path
    'llama/8b'

    Raises InvalidSpecError for anything else.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        scheme, rest = "hf", uri
    if scheme == "hf":
        return _parse_hub(uri, rest, where)
    if scheme == "pvc":
        return _parse_claim(uri, rest, where)
    problem = f"{where}: the scheme is neither hf nor pvc, got {uri!r}; {_WAYS}"
    raise InvalidSpecError((problem,))


def _parse_hub(uri: str, rest: str, where: str) -> ModelUri:
    repository, at, revision = rest.partition("@")
    if not _REPOSITORY.fullmatch(repository) or _NEVER.search(repository):
        problem = f"{where}: this names no ORG/NAME of a hub, got {uri!r}; {_WAYS}"
        raise InvalidSpecError((problem,))
    if at and (not _REVISION.match(revision) or ".." in revision):
        problem = (
            f"{where}: after @ comes a branch, a tag or a commit, got {uri!r}; "
            "leave @ out for the main branch"
        )
        raise InvalidSpecError((problem,))
    return ModelUri(repository=repository, revision=revision or None)


def _parse_claim(uri: str, rest: str, where: str) -> ModelUri:
    claim, _, path = rest.partition("/")
    steps = [step for step in path.split("/") if step]
    if not _CLAIM.match(claim) or ".." in steps or "." in steps or "\x00" in path:
        problem = (
            f"{where}: this names no folder of a claim, got {uri!r}; "
            "write pvc://CLAIM/PATH, the claim's own name and a path without . and .."
        )
        raise InvalidSpecError((problem,))
    return ModelUri(claim=claim, path="/".join(steps))
