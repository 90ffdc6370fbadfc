"""Which local program plays which image: the map from image and command to arguments."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from world.nodes.expansion import PathRewriter, expand, on_own_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A local program: what starts it, what is appended after the container's own arguments.

    `argv`, `append` and the values of `environment` may hold {address} (the pod's loopback
    address), {pod_ip} (the one it reports), {pod}, {namespace} and {node}.
    """

    argv: tuple[str, ...]
    append: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The program behind an image's entry point, and those its commands name."""

    entrypoint: Program
    commands: Mapping[str, Program] = field(default_factory=dict)


PYTHON = Program(argv=(sys.executable,))
EVERYWHERE: Mapping[str, Program] = {"python": PYTHON, "python3": PYTHON}


@dataclass
class ProgramMap:
    """Images by prefix, the longest wins; may change while pods run."""

    images: dict[str, Image] = field(default_factory=dict)

    def find(self, image: str) -> Image | None:
        """The image's programs, or None: such an image cannot be pulled."""
        for prefix in sorted(self.images, key=len, reverse=True):
            rest = image.removeprefix(prefix)
            if image.startswith(prefix) and (not rest or rest[0] in ":@/" or prefix[-1] in ":@/"):
                return self.images[prefix]
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a program runs: what the braces in a Program stand for."""

    address: str
    pod_ip: str
    pod: str
    namespace: str
    node: str

    def fill(self, text: str) -> str:
        """The text with its braces filled; other braces stay (JSON is a common argument)."""
        for name in ("address", "pod_ip", "pod", "namespace", "node"):
            text = text.replace(f"{{{name}}}", getattr(self, name))
        return text


def program_for(image: Image, command: Sequence[str]) -> tuple[Program, Sequence[str]]:
    """The program that `command` names and the rest of it; none means the entry point."""
    if not command:
        return image.entrypoint, ()
    name = command[0].rpartition("/")[2]
    commands = {**EVERYWHERE, **image.commands}
    program = commands.get(command[0]) or commands.get(name) or Program(argv=(command[0],))
    return program, command[1:]


def command_line(
    program: Program,
    words: Sequence[str],
    *,
    place: Place,
    variables: Mapping[str, str],
    rewrite: PathRewriter,
) -> list[str]:
    """The arguments of the local process."""
    own = [on_own_address(rewrite(expand(word, variables)), place.address) for word in words]
    return [
        *(place.fill(word) for word in program.argv),
        *own,
        *(place.fill(word) for word in program.append),
    ]
