"""The emulator: all nodes of a test cluster in one process, with one watch for all their pods."""

import logging
import tempfile
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from world.nodes.addresses import AddressPool
from world.nodes.api import Api, ApiError, Watch
from world.nodes.endpoints import Services
from world.nodes.events import Events
from world.nodes.kubelet_server import KubeletServer
from world.nodes.logs import LogRequest, read
from world.nodes.node import Node, NodeSpec
from world.nodes.pods import Pod
from world.nodes.processes import Processes
from world.nodes.programs import ProgramMap
from world.nodes.proxy import Proxy
from world.nodes.runtime import Part, Runtime, Timing
from world.nodes.tokens import Tokens
from world.nodes.volumes import remove

LOG = logging.getLogger("world.nodes")
BEATS_AT_ONCE = 16
BEATS_PER_REPORT = 30  # a Lease is renewed at each beat, the whole status at every thirtieth


class Emulator:
    """Registers nodes and runs what is bound to them; after `stop` nothing of it runs."""

    def __init__(
        self,
        *,
        api: Api,
        programs: ProgramMap,
        folder: Path | None = None,
        timing: Timing | None = None,
        environment: Mapping[str, str] | None = None,
        url_for_pods: str = "",
    ) -> None:
        self.api = api
        self._url_for_pods = url_for_pods
        self.programs = programs
        self.timing = timing or Timing()
        self._folder = Path(folder or tempfile.mkdtemp(prefix="nodes-"))
        self._owns_folder = folder is None
        self._environment = dict(environment or {})
        self.addresses = AddressPool()
        self.nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._hearts = ThreadPoolExecutor(BEATS_AT_ONCE, thread_name_prefix="heartbeat")
        self._parts: list[Part] = []  # what runs, the last started first

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Open the sandbox, the kubelet's port and the proxy; begin to watch."""
        self._folder.mkdir(parents=True, exist_ok=True)
        services = Services(self.api)
        self._proxy = Proxy(services)
        self._server = KubeletServer(self._folder, self._open_log)
        self.runtime = Runtime(
            api=self.api,
            processes=Processes(),
            programs=self.programs,
            services=services,
            events=Events(self.api),
            tokens=Tokens(self.api),
            folder=self._folder,
            proxy_url=self._proxy.url,
            addresses=self.addresses,
            timing=self.timing,
            environment=self._environment,
            url_for_pods=self._url_for_pods,
        )
        watch = Watch(self.api, "/api/v1/pods", self._on_pod, fieldSelector="spec.nodeName!=")
        for part in (
            self.runtime.processes,
            self.runtime.events,
            services,
            self._proxy,
            self._server,
            watch,
        ):
            part.start()
            self._parts.insert(0, part)
        self._heart.start()

    def stop(self) -> None:
        """End every pod's processes at once, and all else of ours; the API objects stay."""
        self._stopped.set()
        with self._lock:
            for node in self.nodes.values():
                node.silent.set()
            pods = list(self._pods.values())
        for pod in pods:
            pod.abandon()
        for pod in pods:
            pod.join()
        for part in self._parts:
            part.stop()
        for node in self.nodes.values():
            node.close()
        if self._heart.is_alive():
            self._heart.join()
        self._hearts.shutdown()
        self.addresses.close()
        self.api.close()
        if self._owns_folder:
            remove(self._folder)

    @property
    def proxy_url(self) -> str:
        """Through which pods and Services are reached from anywhere on this machine."""
        return self._proxy.url

    def add_node(self, spec: NodeSpec) -> Node:
        """Register a node; the scheduler uses it a moment later."""
        node = Node(
            self.api,
            spec,
            kubelet_port=self._server.port,
            folder=self._folder / "nodes" / spec.name,
        )
        node.register()
        with self._lock:
            self.nodes[spec.name] = node
        self._relist(spec.name)
        return node

    def remove_node(self, name: str) -> None:
        """The machine is gone for good: processes, Node and pods, as a cloud would do it."""
        with self._lock:
            node = self.nodes.pop(name)
        node.silent.set()
        self._abandon_pods(node)
        node.close()
        node.delete()
        for pod in self._bound_to(name):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            try:
                self.api.delete(path, options)
            except ApiError as error:
                if error.status not in (404, 409):
                    raise

    def silence(self, name: str, *, power_off: bool = False) -> None:
        """The node no longer reaches the API server; without power its processes end too."""
        node = self.nodes[name]
        node.silent.set()
        if power_off:
            self._abandon_pods(node)

    def resume(self, name: str) -> None:
        """A silent node is back, and learns what it missed."""
        node = self.nodes[name]
        node.silent.clear()
        node.report()
        node.renew()
        self._relist(name)

    def cordon(self, name: str, unschedulable: bool = True) -> None:
        """Keep the scheduler away from a node, or let it come back."""
        self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": unschedulable or None}})

    def pods_on(self, name: str) -> list[Pod]:
        """The pods that this node runs now."""
        with self._lock:
            return [pod for pod in self._pods.values() if pod.node.name == name]

    def _abandon_pods(self, node: Node) -> None:
        with self._lock:
            pods = [pod for pod in self._pods.values() if pod.node is node]
            for pod in pods:
                del self._pods[pod.uid]
        for pod in pods:
            pod.abandon()
        for pod in pods:
            pod.join()

    def _bound_to(self, name: str) -> Iterable[dict[str, Any]]:
        listing = self.api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")
        return listing.get("items") or ()

    def _relist(self, name: str) -> None:
        bound = {pod["metadata"]["uid"]: pod for pod in self._bound_to(name)}
        for pod in bound.values():
            self._on_pod("MODIFIED", pod)
        for known in self.pods_on(name):
            if known.uid not in bound:
                known.vanish()
            known.resync()

    def _on_pod(self, kind: str, body: dict[str, Any]) -> None:
        uid = body["metadata"]["uid"]
        with self._lock:
            node = self.nodes.get(body["spec"]["nodeName"])
            if node is None or node.silent.is_set():
                return
            pod = self._pods.get(uid)
            if kind == "DELETED":
                self._pods.pop(uid, None)
            elif pod is None and (body.get("status") or {}).get("phase") not in (
                "Succeeded",
                "Failed",
            ):
                self._pods[uid] = Pod(self.runtime, node, body)
                self._pods[uid].start()
        if pod is not None:
            if kind == "DELETED":
                pod.vanish()
            else:
                pod.update(body)

    def _beat(self) -> None:
        beats = 0
        while not self._stopped.wait(self.timing.heartbeat_seconds):
            beats += 1
            with self._lock:
                nodes = list(self.nodes.values())
            # Side by side: behind a slow API server the last of many would be taken for lost.
            report = beats % BEATS_PER_REPORT == 0
            list(self._hearts.map(lambda node, report=report: node.beat(report=report), nodes))

    def _open_log(
        self, namespace: str, name: str, container: str, previous: bool, request: LogRequest
    ) -> Iterable[bytes]:
        with self._lock:
            pods = list(self._pods.values())
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        pod = next((pod for pod in pods if pod.path == path), None)
        if pod is None:
            raise LookupError(f"pod {namespace}/{name} does not run here")
        log, ended = pod.log(container, previous=previous)
        return read(log, request, ended)
