"""The file a person writes: nodes, and which program plays which image.

nodes:
- {name: l40s-1, gpus: 2, labels: {nvidia.com/gpu.product: NVIDIA-L40S}, environment: {A: b}}
images:
  vllm/vllm-openai:
    entrypoint: {argv: ["{python}", "-m", "world.engine", "serve"], append: ["--host", "{address}"]}
    commands:
      vllm: {argv: ["{python}", "-m", "world.engine"]}
timing: {backoff_seconds: 10}
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from world.nodes.api import Api
from world.nodes.node import NodeSpec
from world.nodes.programs import Image, Program, ProgramMap
from world.nodes.runtime import Timing


class SpecFileError(Exception):
    """The file says something that is not understood; the message ends with the way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the file describes."""

    nodes: tuple[NodeSpec, ...]
    programs: ProgramMap
    timing: Timing


def _checked(kind: type[Any], body: Any, where: str) -> dict[str, Any]:
    """The body, if it has only fields of that kind."""
    if not isinstance(body, Mapping):
        raise SpecFileError(f"{where}: a mapping is wanted, got {body!r}")
    known = {field.name for field in fields(kind)}
    unknown = sorted(body.keys() - known)
    if unknown:
        raise SpecFileError(
            f"{where}.{unknown[0]}: no such field; there are {', '.join(sorted(known))}"
        )
    return dict(body)


def _program(body: Any, where: str) -> Program:
    given = _checked(Program, body, where)
    if not given.get("argv"):
        raise SpecFileError(f"{where}.argv: names no program; give the list that starts it")
    argv = tuple(str(word).replace("{python}", sys.executable) for word in given["argv"])
    append = tuple(map(str, given.get("append", ())))
    return Program(argv=argv, append=append, environment=given.get("environment", {}))


def _image(body: Any, where: str) -> Image:
    given = _checked(Image, body, where)
    if "entrypoint" not in given:
        raise SpecFileError(f"{where}.entrypoint: missing; give {{argv: [...]}}")
    commands = given.get("commands", {})
    return Image(
        entrypoint=_program(given["entrypoint"], f"{where}.entrypoint"),
        commands={k: _program(v, f"{where}.commands.{k}") for k, v in commands.items()},
    )


def _node(body: Any, where: str) -> NodeSpec:
    given = _checked(NodeSpec, body, where)
    if not given.get("name"):
        raise SpecFileError(f"{where}.name: missing; every node needs one")
    for name in ("gpu_uuids", "taints"):
        given[name] = tuple(given.get(name, ()))
    given["gpu_islands"] = tuple(map(tuple, given.get("gpu_islands", ())))
    if "cpu" in given:
        given["cpu"] = str(given["cpu"])
    return NodeSpec(**given)


def parse(text: str) -> World:
    """Read the file's text."""
    body = yaml.safe_load(text) or {}
    if not isinstance(body, Mapping) or body.keys() - {"nodes", "images", "timing"}:
        raise SpecFileError("the file holds `nodes`, `images` and `timing`, and nothing else")
    return World(
        nodes=tuple(_node(n, f"nodes[{i}]") for i, n in enumerate(body.get("nodes") or ())),
        programs=ProgramMap(
            {k: _image(v, f"images.{k}") for k, v in (body.get("images") or {}).items()}
        ),
        timing=Timing(**_checked(Timing, body.get("timing") or {}, "timing")),
    )


def read_api(path: Path) -> Api:
    """The API of a kubeconfig whose user has a token."""
    config = yaml.safe_load(path.read_text())
    try:
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        return Api(cluster["server"], cluster["certificate-authority"], user["token"])
    except (KeyError, IndexError, TypeError) as error:
        raise SpecFileError(
            f"{path}: a server, a certificate-authority file and a user with a token are needed, "
            f"missing {error}; use the test control plane's admin kubeconfig"
        ) from error
