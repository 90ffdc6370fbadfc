"""A plane: etcd, API server, scheduler and controller manager on free loopback ports."""

import contextlib
import os
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import processes, registry, settings
from .build import existing_bin_folder
from .client import ApiError, Client
from .credentials import ADMIN, write_kubeconfig, write_service_account_keys, write_tokens
from .ports import free_ports
from .processes import Identity
from .settings import PlaneSettings

READY_LIMIT_SECONDS = 90.0
POLL_SECONDS = 0.05
NOT_YET = (ApiError, OSError, urllib.error.URLError, ssl.SSLError)


class PlaneError(Exception):
    """A program of the plane did not do what it should; the message holds its last words."""


class Plane:
    """A control plane in a folder of its own; nothing is left of it after the `with` block.

    It dies with this process too, unless `outlives_us`: then `python -m world.controlplane stop`
    ends it.
    """

    def __init__(
        self,
        extra: PlaneSettings | None = None,
        *,
        folder: Path | None = None,
        bin_folder: Path | None = None,
        outlives_us: bool = False,
    ) -> None:
        extra = extra or PlaneSettings()
        self.bin = bin_folder or existing_bin_folder()
        self.folder = _fresh_folder(folder)
        self._outlives_us = outlives_us
        self._record_path = registry.new_path()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        ports = free_ports()
        self.url = f"https://127.0.0.1:{ports.apiserver}"
        self.ca = self.folder / "certs" / "apiserver.crt"
        self._args = {
            "etcd": settings.etcd_args(self.folder, ports),
            "kube-apiserver": settings.apiserver_args(self.folder, ports, extra.apiserver_args),
            "kube-scheduler": settings.scheduler_args(self.folder, ports, extra.scheduler_args),
            "kube-controller-manager": settings.controller_manager_args(
                self.folder, ports, extra.controller_manager_args
            ),
        }
        write_service_account_keys(self.folder)
        tokens = write_tokens(self.folder)
        self.clients = {name: self.client(name, token) for name, token in tokens.items()}
        self.admin = self.clients[ADMIN]

    # What nearly every caller wants of the administrator.

    @property
    def token(self) -> str:
        return self.admin.token

    @property
    def kubeconfig(self) -> Path:
        return self.admin.kubeconfig

    def kubectl(self, *args: str | Path, stdin: str | None = None) -> str:
        """What kubectl printed; `CommandError` with its last words when it failed."""
        return self.admin.kubectl(*args, stdin=stdin)

    def helm(self, *args: str | Path, stdin: str | None = None) -> str:
        """What helm printed; `CommandError` with its last words when it failed."""
        return self.admin.helm(*args, stdin=stdin)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The API server's answer; `ApiError` with its code and message when it refused."""
        return self.admin.request(method, path, body)

    def client(self, name: str, token: str) -> Client:
        """The same plane for another bearer token; `name` names its kubeconfig file."""
        path = self.folder / f"{name}.kubeconfig"
        return Client(
            url=self.url,
            ca=self.ca,
            token=token,
            kubeconfig=write_kubeconfig(path, url=self.url, ca=self.ca, token=token),
            bin=self.bin,
            home=self.folder,
        )

    # Life

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Everything runs and a pod could be created: the default ServiceAccount is there."""
        registry.remove_abandoned()
        self._write_record()
        self._launch("etcd")
        self._launch("kube-apiserver")
        self._wait("the API server to be ready", self._ready)
        self._launch("kube-scheduler")
        self._launch("kube-controller-manager")
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("the default ServiceAccount", lambda: self.request("GET", account))
        return self

    def stop(self) -> None:
        """Nothing is left: no process, no folder, no record."""
        registry.remove(self._record_path, self._record())
        for process in self._running.values():
            process.wait()
        self._running.clear()

    def kill(self, program: str) -> None:
        """The program is gone, as if its machine had lost it."""
        processes.end_group(self._running.pop(program))
        self._write_record()

    def launch(self, program: str) -> None:
        """Start a killed program again on the same data, with the same flags."""
        if program in self._running:
            raise PlaneError(f"{program}: it runs already; kill it first")
        self._launch(program)
        if program == "kube-apiserver":
            self._wait("the API server to be ready", self._ready)

    def restart(self, program: str) -> None:
        """Killed and started again; the API server is ready afterwards."""
        self.kill(program)
        self.launch(program)

    @contextlib.contextmanager
    def paused(self, program: str, *, seconds: float) -> Iterator[None]:
        """The program hangs for so long: it is there and answers nobody."""
        pid = self._running[program].pid
        end = time.monotonic() + seconds
        os.killpg(pid, signal.SIGSTOP)
        try:
            yield
            time.sleep(max(0.0, end - time.monotonic()))
        finally:
            os.killpg(pid, signal.SIGCONT)
        if program in ("etcd", "kube-apiserver"):
            self._wait("the API server to be ready", self._ready)

    def log(self, program: str) -> str:
        """What the program wrote so far."""
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def _launch(self, program: str) -> None:
        self._running[program] = processes.start(
            [self.bin / program, *self._args[program]],
            log=self.folder / f"{program}.log",
            folder=self.folder,
            outlives_us=self._outlives_us,
        )
        self._write_record()

    def _record(self) -> registry.Record:
        return registry.Record(
            folder=self.folder,
            owner=None if self._outlives_us else Identity.of(os.getpid()),
            processes=dict(_identities(self._running.items())),
            url=self.url,
        )

    def _write_record(self) -> None:
        registry.write(self._record_path, self._record())

    def _ready(self) -> bool:
        return self.admin.request("GET", "/readyz", timeout_seconds=2) == "ok"

    def _wait(self, what: str, check: Callable[[], object]) -> None:
        deadline = time.monotonic() + READY_LIMIT_SECONDS
        last: object = "no answer yet"
        while time.monotonic() < deadline:
            for program, process in self._running.items():
                if process.poll() is not None:  # a busy port shows here, not as a time-out
                    raise PlaneError(
                        f"{program}: ended with {process.returncode} while waiting for {what}\n"
                        f"{self.log(program)[-2000:]}"
                    )
            try:
                if check():
                    return
            except NOT_YET as error:
                last = error
            time.sleep(POLL_SECONDS)
        raise PlaneError(f"{what}: still waiting after {READY_LIMIT_SECONDS:.0f} s; last: {last}")


def _identities(
    running: Iterable[tuple[str, subprocess.Popen[bytes]]],
) -> Iterable[tuple[str, Identity]]:
    for name, process in running:
        if process.poll() is None:
            yield name, Identity.of(process.pid)


def _fresh_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="shipfitter-plane-"))
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        raise PlaneError(
            f"{folder}: it exists already, and a plane wants a fresh folder; name another one"
        ) from None
    return folder
