"""Probes: one attempt in each way, and the loop that makes a verdict of attempts."""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from world.nodes.addresses import loopback

Object = Mapping[str, Any]
# (command, seconds) → (exit code or None when the time ended first, output)
RunCommand = Callable[[Sequence[str], float], tuple[int | None, str]]
UNVERIFIED = ssl._create_unverified_context


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is probed: where the pod listens, its named ports, and how to run a command in it."""

    address: str
    ports: Mapping[str, int]
    run_command: RunCommand

    def port(self, port: int | str) -> int:
        """A numeric or named port."""
        return int(port) if isinstance(port, int) or port.isdigit() else self.ports[port]


def named_ports(container: Object) -> dict[str, int]:
    """The container's ports that have a name."""
    ports = container.get("ports") or ()
    return {port["name"]: port["containerPort"] for port in ports if port.get("name")}


def attempt(handler: Object, target: Target, timeout_seconds: float) -> tuple[bool, str]:
    """(did it succeed, what to tell if not) for a probe or a life-cycle hook."""
    try:
        match handler:
            case {"httpGet": action}:
                return _http_get(action, target, timeout_seconds)
            case {"tcpSocket": action}:
                host = loopback(action.get("host") or target.address)
                address = (host, target.port(action["port"]))
                socket.create_connection(address, timeout_seconds).close()
                return True, ""
            case {"exec": action}:
                code, output = target.run_command(action.get("command") or (), timeout_seconds)
                late = f"command timed out after {timeout_seconds:g}s"
                return code == 0, late if code is None else output
    except (OSError, http.client.HTTPException) as error:
        return False, f"{type(error).__name__}: {error}"
    except KeyError as error:
        return False, f"no port is named {error}"
    return False, f"probes of the kind {' '.join(sorted(handler))} are not emulated"


def _http_get(action: Object, target: Target, timeout_seconds: float) -> tuple[bool, str]:
    host, port = loopback(action.get("host") or target.address), target.port(action["port"])
    connection: http.client.HTTPConnection
    if action.get("scheme") == "HTTPS":
        connection = http.client.HTTPSConnection(
            host, port, timeout=timeout_seconds, context=UNVERIFIED()
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_seconds)
    try:
        headers = {"User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}
        headers.update({h["name"]: h["value"] for h in action.get("httpHeaders") or ()})
        path = action.get("path") or "/"
        connection.request("GET", path if path.startswith("/") else f"/{path}", headers=headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    return 200 <= status < 400, f"HTTP probe failed with statuscode: {status}"


class ProbeLoop(threading.Thread):
    """Probes until stopped; tells every change of the verdict, which begins as `initial`."""

    def __init__(
        self,
        probe: Object,
        target: Target,
        on_change: Callable[[bool, str], None],
        stopped: threading.Event,
        *,
        initial: bool | None,
        period_factor: float,
        patience_factor: float,
    ) -> None:
        super().__init__(name="probe", daemon=True)
        self._probe, self._target, self._on_change = probe, target, on_change
        self._stopped, self._verdict, self._factor = stopped, initial, period_factor
        self._patience = patience_factor
        self._over = False

    def end(self) -> None:
        """No further attempt; said from `on_change`."""
        self._over = True

    def run(self) -> None:
        probe = self._probe
        failures = probe.get("failureThreshold", 3) * self._patience
        needed = {True: probe.get("successThreshold", 1), False: failures}
        period_seconds = probe.get("periodSeconds", 10) * self._factor
        last, count = self._verdict, 0
        self._stopped.wait(probe.get("initialDelaySeconds", 0) * self._factor)
        while not self._stopped.is_set() and not self._over:
            succeeded, detail = attempt(probe, self._target, probe.get("timeoutSeconds", 1))
            count = count + 1 if succeeded == last else 1
            last = succeeded
            if count >= needed[succeeded] and succeeded != self._verdict:
                if self._stopped.is_set():
                    return
                self._verdict = succeeded
                self._on_change(succeeded, detail)
            if not self._over:
                self._stopped.wait(period_seconds)
