"""Talking to a plane: one request, one kubectl, one helm."""

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND_LIMIT_SECONDS = 120


class CommandError(Exception):
    """A kubectl or helm ended with an error; the message is the command and what it said."""


class ApiError(Exception):
    """The API server refused; `code` and `message` are its own."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"HTTP {code}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One identity on one plane."""

    url: str
    ca: Path
    token: str
    kubeconfig: Path
    bin: Path
    home: Path  # discovery caches and helm's own files

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        timeout_seconds: float = 20.0,
    ) -> Any:
        """The answer's JSON, or its text where it is none."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type},
        )
        context = ssl.create_default_context(cafile=str(self.ca))
        # Without proxies: a program under test may have been given one for its pods' addresses.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(request, timeout=timeout_seconds) as response:
                text = response.read().decode()
                is_json = response.headers.get_content_type() == "application/json"
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(error.code, _message(error.read().decode())) from None
        return json.loads(text) if is_json else text

    def apply(self, path: str, body: Mapping[str, Any], *, field_manager: str) -> Any:
        """Server-side apply."""
        return self.request(
            "PATCH",
            f"{path}?fieldManager={field_manager}&force=true",
            body,
            content_type="application/apply-patch+yaml",
        )

    def kubectl(self, *args: str | Path, stdin: str | None = None) -> str:
        """What it printed."""
        return self._run("kubectl", *args, stdin=stdin)

    def helm(self, *args: str | Path, stdin: str | None = None) -> str:
        """What it printed."""
        return self._run("helm", *args, stdin=stdin)

    def _run(self, program: str, *args: str | Path, stdin: str | None) -> str:
        words = [str(self.bin / program), *(str(arg) for arg in args)]
        done = subprocess.run(
            words,
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_SECONDS,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)},
            check=False,
        )
        if done.returncode != 0:
            raise CommandError(
                f"{program} {' '.join(words[1:])}: ended with {done.returncode}\n"
                f"{done.stderr.strip()}\n{done.stdout.strip()}".strip()
            )
        return done.stdout


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text
