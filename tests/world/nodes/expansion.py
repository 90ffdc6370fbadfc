"""Text a container is given: `$(VAR)` is expanded, and container paths become local ones."""

import re
from collections.abc import Mapping

REFERENCE = re.compile(r"\$(\$|\([^()]*\))")
ANY_ADDRESS = re.compile(r"(?<![\d.])0\.0\.0\.0(?![\d.])")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace what is known, keep what is not; `$$` is a plain `$`.

    Source: the Kubernetes API reference on `args`, and third_party/forked/golang/expansion.

    >>> expand("--port=$(PORT) $(NONE) $$(PORT)", {"PORT": "8000"})
    '--port=8000 $(NONE) $(PORT)'
    """

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[1][1:-1], match[0])

    return REFERENCE.sub(replacement, text)


class PathRewriter:
    """Container paths in a text become the local ones that play them.

    >>> rewrite = PathRewriter({"/mnt/x": "/tmp/pod/x"})
    >>> rewrite("--flag=/mnt/x/a.json:/mnt/xyz")
    '--flag=/tmp/pod/x/a.json:/mnt/xyz'
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = {
            path.rstrip("/"): place for path, place in places.items() if path.strip("/")
        }
        # The longest first: a mount may lie inside another.
        paths = sorted(self._places, key=len, reverse=True)
        pattern = "|".join(re.escape(path) for path in paths) or "(?!)"
        # Not inside a longer path or name, nor after a host: http://host/mnt/x is nothing local.
        self._pattern = re.compile(rf"(?:(?<=file://)|(?<![\w./-]))(?:{pattern})(?![\w.-])")

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._places[match[0]], text)


def on_own_address(text: str, address: str) -> str:
    """All interfaces of the pod are its one loopback address.

    >>> on_own_address("--liveness=http://0.0.0.0:8080/healthz", "127.18.0.5")
    '--liveness=http://127.18.0.5:8080/healthz'
    """
    return ANY_ADDRESS.sub(address, text)
