"""The process: configuration, lease, runtime, kopf; from start to a clean end."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import kopf

from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError, ClusterUnreachableError
from shipfitter.cluster.lease import LeaderLease
from shipfitter.cluster.runtime import Runtime
from shipfitter.decide import decide
from shipfitter.engine import read_capacity
from shipfitter.errors import UserError
from shipfitter.operator import resource
from shipfitter.operator.configuration import Configuration, environment, read_configuration
from shipfitter.operator.health import HealthServer
from shipfitter.operator.logs import start_logging
from shipfitter.operator.model_source import fetch_or_known

STUCK_SECONDS = 60.0  # an event loop that did not turn for so long is no longer alive
EXIT_SECONDS = 4.5  # after it was told to stop the process ends at the latest then
KOPF_SECONDS = 1.5  # what kopf may take to stop by itself
STREAMING_LISTS_SINCE = (1, 34)  # Kubernetes minor from which lists come as watch events

log = logging.getLogger("shipfitter")


def run(argv: Sequence[str] | None = None) -> int:
    """Run the operator; see `main`."""
    try:
        configuration = read_configuration(argv, environment())
        start_logging(configuration.log_format, configuration.log_level)
        client = Client()
    except (UserError, ClusterUnreachableError) as error:
        print(f"shipfitter: {error}", file=sys.stderr)  # noqa: T201  # logging may not be there yet
        return 2
    return asyncio.run(Process(configuration, client).run())


class Process:
    """One life of the operator."""

    def __init__(self, configuration: Configuration, client: Client) -> None:
        self._configuration = configuration
        self._client = client
        self._lease = LeaderLease(
            client, namespace=configuration.namespace, identity=configuration.identity
        )
        self._runtime = Runtime(
            client,
            decide=decide,
            fetch=fetch_or_known,
            read_engine=read_capacity,
            settings=configuration.settings,
            namespaces=configuration.watch_namespaces,
            instance=configuration.identity,
            may_act=lambda: self._lease.held,
        )
        self._health = HealthServer(
            configuration.health_host,
            configuration.health_port,
            healthy=self._what_hangs,
            ready=self._what_is_missing,
        )
        self._stop = asyncio.Event()
        self._watching = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leading = False
        self._lost = False
        self._turned_at = time.monotonic()

    async def run(self) -> int:
        """The exit code, after everything was stopped and given back."""
        self._loop = asyncio.get_running_loop()
        self._health.start()
        log.info("health on port %d", self._health.port)
        companions = [asyncio.create_task(self._pulse()), asyncio.create_task(self._own_signals())]
        self._take_signals()
        try:
            await asyncio.to_thread(self._lead)
            if not self._stop.is_set():
                await self._serve()
        except Exception:
            log.exception("kopf ended; so does this process")
            self._lost = True
        finally:
            for companion in companions:
                companion.cancel()
            await asyncio.to_thread(self._end)
        return 1 if self._lost else 0

    def _lead(self) -> None:
        """Wait for the lease; from then on this process may act."""
        if self._lease.acquire():
            self._lease.keep(self._on_loss)
            self._leading = True
            self._runtime.start()

    async def _serve(self) -> None:
        namespaces = self._configuration.watch_namespaces
        where: dict[str, Any] = {"namespaces": namespaces} if namespaces else {"clusterwide": True}
        streaming = await asyncio.to_thread(self._has_streaming_lists)
        told = asyncio.create_task(self._stop.wait())
        serving = asyncio.create_task(
            kopf.operator(
                registry=resource.registry(self._noticed, self._client.credentials),
                settings=resource.settings(streaming_lists=streaming),
                standalone=True,
                ready_flag=self._watching,
                stop_flag=self._stop,
                **where,
            )
        )
        await asyncio.wait({told, serving}, return_when=asyncio.FIRST_COMPLETED)
        # Told to stop while it starts, kopf retries on closed connections for 5 s; it need not.
        await asyncio.wait({serving}, timeout=KOPF_SECONDS)
        told.cancel()
        if not serving.done():
            asyncio.get_running_loop().set_exception_handler(_quietly)
            serving.cancel()
            await asyncio.wait({serving}, timeout=KOPF_SECONDS)
        elif serving.exception() is not None:
            serving.result()

    def _noticed(self, body: Any, deleted: bool) -> None:
        self._runtime.noticed(body, deleted=deleted)

    def _end(self) -> None:
        log.info("stops")
        self._lease.stop()
        self._runtime.stop()
        if not self._lost:
            self._lease.release()
        self._health.stop()
        self._client.close()

    def _take_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ask_to_stop)

    async def _own_signals(self) -> None:
        """kopf takes the signals when it starts; stopped by its own it waits 5 s for our flag."""
        await self._watching.wait()
        self._take_signals()

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._lease.stop()
        _exit_soon(0)

    def _on_loss(self) -> None:
        """Nothing may be written any more: end soon, whatever hangs."""
        self._lost = True
        self._runtime.queue.stop()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        _exit_soon(1)

    async def _pulse(self) -> None:
        while True:
            self._turned_at = time.monotonic()
            await asyncio.sleep(1.0)

    def _has_streaming_lists(self) -> bool:
        try:
            version = self._client.request("GET", "/version")
            minor = "".join(filter(str.isdigit, str(version["minor"])))
            return (int(version["major"]), int(minor)) >= STREAMING_LISTS_SINCE
        except (ApiError, KeyError, ValueError):
            return False

    def _what_hangs(self) -> str:
        still = time.monotonic() - self._turned_at
        if still > STUCK_SECONDS:
            return f"the event loop has not turned for {still:.0f} s"
        hung = self._runtime.caches.hung() if self._leading else ()
        return f"watches hang: {', '.join(hung)}" if hung else ""

    def _what_is_missing(self) -> str:
        if not self._lease.held:
            return "the lease is not held"
        if not self._runtime.caches.synced:
            return "the cluster is still being read"
        return "" if self._watching.is_set() else "ModelDeployments are not watched yet"


def _exit_soon(code: int) -> None:
    """The process ends even where a request hangs that nothing can interrupt."""
    last = threading.Timer(EXIT_SECONDS, os._exit, args=(code,))
    last.daemon = True
    last.start()


def _quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.debug("while stopping: %s", context.get("message"))
