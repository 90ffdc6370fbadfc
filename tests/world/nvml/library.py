"""The shim, compiled once with the system's C compiler into a cache outside the tree."""

import hashlib
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
LIBRARY = "libnvidia-ml.so.1"  # the name pynvml loads


def cache_folder() -> Path:
    """Where built and generated files of the NVML world go."""
    base = os.environ.get("SHIPFITTER_CACHE")
    if not base:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "shipfitter")
    return Path(base).expanduser() / "nvml"


def build() -> Path:
    """The folder that holds the library; compiled when its source is new."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / f"lib-{digest}"
    if not (folder / LIBRARY).exists():
        folder.mkdir(parents=True, exist_ok=True)
        compiler = shlex.split(os.environ.get("CC", "cc"))
        with tempfile.TemporaryDirectory(dir=folder) as workspace:
            built = Path(workspace, LIBRARY)
            flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
            subprocess.run([*compiler, *flags, "-o", str(built), str(SOURCE)], check=True)
            built.rename(folder / LIBRARY)  # two builders at once: either file is right
    return folder


def environment(scenario: Path | None) -> dict[str, str]:
    """What a process needs to find the shim; None: a machine without the driver's libraries."""
    if scenario is None:
        return {"LD_LIBRARY_PATH": ""}
    return {"LD_LIBRARY_PATH": str(build()), "NVML_SCENARIO": str(scenario)}
