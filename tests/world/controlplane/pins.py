"""Writes modules/*/go.mod and go.sum anew, after a version in `tools` was changed."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .build import go_environment
from .toolchain import find_go
from .tools import MODULES, TOOLS, Tool

KUBE_MODULE = "k8s.io/kubernetes"


class PinError(Exception):
    """A module could not be pinned; the message says why."""


def pin() -> None:
    """Every module folder is what the table of tools says; nothing is compiled."""
    for module in dict.fromkeys(tool.module for tool in TOOLS):
        tools = [tool for tool in TOOLS if tool.module == module]
        folder = MODULES / module
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "go.sum").unlink(missing_ok=True)
        lines = kube_go_mod(tools) if module == "kube" else plain_go_mod(tools)
        (folder / "go.mod").write_text("\n".join(lines) + "\n")
        # Loading the packages completes both files; every build after it is content with reading.
        _go("list", "-mod=mod", "-deps", *(tool.package for tool in tools), folder=folder)
        print(f"{module}: {tools[0].version}", file=sys.stderr)


def plain_go_mod(tools: list[Tool]) -> list[str]:
    """A module that needs one other module, without anything to replace."""
    (tool,) = tools
    module = tool.package.partition("/cmd/")[0]
    return [*_head(tool.module, "1.26.0"), *_tool_lines(tools), f"require {module} {tool.version}"]


def kube_go_mod(tools: list[Tool]) -> list[str]:
    """A module that can build Kubernetes from outside.

    Kubernetes requires its staging modules at v0.0.0 and replaces them by its own folders; replaces
    do not reach a dependent, so each is replaced here by its published v0.<minor>.<patch>.
    """
    version = tools[0].version
    if not re.fullmatch(r"v1\.\d+\.\d+", version):
        raise PinError(f"KUBE_VERSION: {version} is no release such as v1.36.3")
    with tempfile.TemporaryDirectory() as empty:
        info = json.loads(
            _go("list", "-m", "-json", f"{KUBE_MODULE}@{version}", folder=Path(empty))
        )
        theirs = json.loads(_go("mod", "edit", "-json", info["GoMod"], folder=Path(empty)))
    replaced = {each["Old"]["Path"]: each["New"] for each in theirs["Replace"]}
    staging = sorted(path for path, new in replaced.items() if new["Path"].startswith("./"))
    if not staging or len(staging) != len(replaced):
        raise PinError(f"{KUBE_MODULE} {version}: its replaces are laid out in a way unknown here")
    godebug = [f"\t{each['Key']}={each['Value']}" for each in theirs.get("Godebug") or []]
    # The third-party versions they ship with, so that nothing is resolved anew.
    third_party = [
        f"\t{each['Path']} {each['Version']}" + (" // indirect" if each.get("Indirect") else "")
        for each in theirs["Require"]
        if each["Path"] not in staging
    ]
    pinned = [f"\t{path} => {path} v0{version[2:]}" for path in staging]
    return [
        *_head("kube", theirs["Go"]),
        *(["godebug (", *godebug, ")", ""] if godebug else []),
        *_tool_lines(tools),
        *[f"require {KUBE_MODULE} {version}", ""],
        *["require (", *third_party, ")", ""],
        *["replace (", *pinned, ")"],
    ]


def _head(module: str, go_version: str) -> list[str]:
    return [f"module shipfitter.invalid/world/{module}", "", f"go {go_version}", ""]


def _tool_lines(tools: list[Tool]) -> list[str]:
    packages = [tool.package for tool in tools]
    if len(packages) == 1:
        return [f"tool {packages[0]}", ""]
    return ["tool (", *(f"\t{package}" for package in packages), ")", ""]


def _go(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [find_go(), *words],
        cwd=folder,
        env=go_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PinError(f"go {' '.join(words[:3])}: {done.stderr.strip()[-1500:]}")
    return done.stdout
