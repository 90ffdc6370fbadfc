"""Programs that are on this machine already, so that they need not be built."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .tools import KUBE_VERSION, TOOLS, Tool, parse_version

# The controllers must be of the API server's minor version, since a newer one is not supported with
# an older server: the three are taken from the machine together or not at all.
SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def find_tools() -> dict[str, Path]:
    """Name → path of every program that is recent enough, `KUBEBUILDER_ASSETS` before PATH."""
    candidates = {tool.name: _find(tool) for tool in TOOLS}
    usable = {name: found for name, found in candidates.items() if found}
    if not agree({name: version for name, (_, version) in usable.items()}):
        usable = {name: found for name, found in usable.items() if name not in SERVERS}
    return {name: path for name, (path, _) in usable.items()}


def agree(versions: Mapping[str, tuple[int, int]]) -> bool:
    """Whether found servers, completed by the ones we build, are of one minor version.

    >>> agree({"kube-apiserver": (1, 36)}), agree({"kube-apiserver": (1, 37), "kubectl": (1, 36)})
    (True, False)
    """
    ours = parse_version(KUBE_VERSION)
    return len({versions.get(name, ours) for name in SERVERS}) == 1


def _find(tool: Tool) -> tuple[Path, tuple[int, int]] | None:
    for folder in (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH")):
        path = shutil.which(tool.name, path=folder) if folder else None
        version = read_version(tool, Path(path)) if path else None
        if path and version and version >= tool.oldest_usable:
            return Path(path).resolve(), version
    return None


def read_version(tool: Tool, path: Path) -> tuple[int, int] | None:
    """What the program says it is; None when it does not run or does not say."""
    try:
        said = subprocess.run(
            [path, *tool.version_args], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(said.stdout) if said.returncode == 0 else None
