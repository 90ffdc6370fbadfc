"""Builds the control plane's programs once, from their Go modules, into a cache of their own."""

import hashlib
import os
import shutil
import time
from pathlib import Path

from .found import find_tools
from .once import only_one
from .processes import end_group, start
from .progress import Progress
from .toolchain import find_go
from .tools import (
    MODULES,
    TOOLS,
    Tool,
    built_folder,
    cache_folder,
    compiler_flags,
    expected_seconds,
)

POLL_SECONDS = 0.2


class BuildError(Exception):
    """A program could not be built; the message holds the compiler's last words."""


class NotBuiltError(Exception):
    """The programs are not there and nobody asked to build them now."""


def bin_folder() -> Path:
    """The folder that holds all six programs; built first where they are missing."""
    found = find_tools()
    wanted = [tool for tool in TOOLS if tool.name not in found]
    if _missing(wanted):
        build(wanted)
    return assemble(found)


def existing_bin_folder() -> Path:
    """The folder that holds all six programs, without building anything."""
    found = find_tools()
    if missing := _missing([tool for tool in TOOLS if tool.name not in found]):
        names = ", ".join(tool.name for tool in missing)
        raise NotBuiltError(f"{built_folder()}: no {names}; `make bin` builds them once")
    return assemble(found)


def assemble(found: dict[str, Path]) -> Path:
    """One folder for all six: the built one itself, or one of links where some were found."""
    built = built_folder()
    if not found:
        return built
    paths = {tool.name: found.get(tool.name, built / tool.name) for tool in TOOLS}
    digest = hashlib.sha256(repr(sorted(paths.items())).encode()).hexdigest()[:12]
    folder = cache_folder() / f"links-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in paths.items():
        draft = folder / f".{name}.{os.getpid()}"
        draft.symlink_to(path)
        draft.replace(folder / name)
    return folder


def build(wanted: list[Tool]) -> None:
    """Build what is missing of `wanted`; one build at a time, and an interrupted one goes on."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    progress = Progress(
        expected_seconds={tool.name: expected_seconds(tool) for tool in _missing(wanted)}
    )
    waiting = "another build is at work: waiting for it"
    with only_one(cache_folder() / "build.lock", progress.say, waiting):
        missing = _missing(wanted)  # another build may have made them meanwhile
        if missing:
            go = find_go()
            built_folder().mkdir(parents=True, exist_ok=True)
            for tool in missing:
                progress.begin(tool.name)
                _build_one(go, tool, progress)
            progress.say(f"built {len(missing)} programs into {built_folder()}")
        # The caches take 5 GB and only serve an interrupted build; the binaries stay.
        shutil.rmtree(_go_caches(), ignore_errors=True)


def _missing(tools: list[Tool]) -> list[Tool]:
    return [tool for tool in tools if not (built_folder() / tool.name).exists()]


def _go_caches() -> Path:
    return cache_folder() / "build"


def go_environment() -> dict[str, str]:
    """Go with caches of its own, one toolchain, and no C compiler needed."""
    caches = _go_caches()
    return {
        **os.environ,
        "GOPATH": str(caches / "gopath"),  # the checksum database's state lies here
        "GOMODCACHE": str(caches / "modcache"),
        "GOCACHE": str(caches / "gocache"),
        "CGO_ENABLED": "0",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-buildvcs=false -modcacherw",  # writable, so that it can be removed
    }


def _build_one(go: Path, tool: Tool, progress: Progress) -> None:
    target = built_folder() / tool.name
    draft = target.with_name(f".{tool.name}.partial")
    linker_flags = " ".join(("-s", "-w", *(f"-X {value}" for value in tool.linker_values)))
    log = cache_folder() / f"build-{tool.name}.log"
    log.unlink(missing_ok=True)
    flags = ["-mod=readonly", "-trimpath", *compiler_flags(), f"-ldflags={linker_flags}"]
    process = start(
        [go, "build", *flags, "-o", draft, tool.package],
        log=log,
        folder=MODULES / tool.module,
        environment=go_environment(),
    )
    try:
        while process.poll() is None:
            progress.tick()
            time.sleep(POLL_SECONDS)
    finally:
        end_group(process)  # an interrupted build leaves no compiler behind
    if process.returncode != 0:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise BuildError(
            f"{tool.name} {tool.version}: go build ended with {process.returncode}; all of it is "
            f"in {log}\n{last}\nRun `make bin` again: it goes on where it stopped."
        )
    draft.replace(target)
    log.unlink()
