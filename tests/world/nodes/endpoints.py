"""Where a Service's name or address leads: its ready endpoints, kept by two watches."""

import itertools
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from world.nodes.addresses import loopback
from world.nodes.api import Api, Watch

Object = dict[str, Any]
SERVICE_OF_SLICE = "kubernetes.io/service-name"
Key = tuple[str, str]  # namespace, name


class NoEndpointError(Exception):
    """No such Service, or nothing ready behind this port of it."""


def service_name(host: str) -> tuple[str, str, str] | None:
    """(hostname, service, namespace) of a cluster name; None for any other name.

    >>> service_name("api.team.svc.cluster.local"), service_name("leader.group.team.svc")
    (('', 'api', 'team'), ('leader', 'group', 'team'))
    >>> service_name("example.org")
    """
    words = host.rstrip(".").removesuffix(".cluster.local").split(".")
    if len(words) not in (3, 4) or words[-1] != "svc":
        return None
    return (words[0] if len(words) == 4 else "", words[-3], words[-2])


def backends(
    service: Object, slices: list[Object], port: int, hostname: str = ""
) -> list[tuple[str, int]]:
    """The ready addresses behind a Service's port; with a hostname only that endpoint's."""
    ports = service["spec"].get("ports") or []
    headless = service["spec"].get("clusterIP") == "None"
    named = {entry.get("name") or "" for entry in ports if entry["port"] == port}
    found = []
    for part in slices:
        numbers = [p["port"] for p in part.get("ports") or () if (p.get("name") or "") in named]
        if headless and not numbers:
            numbers = [port]  # a headless name is an address: the port is the caller's own
        for endpoint in part.get("endpoints") or ():
            wanted = not hostname or endpoint.get("hostname") == hostname
            if wanted and (endpoint.get("conditions") or {}).get("ready", True):
                found += [(address, n) for address in endpoint["addresses"][:1] for n in numbers]
    return sorted(found)


class Services:
    """The Services of the cluster and what is ready behind them."""

    def __init__(self, api: Api) -> None:
        self._services: dict[Key, Object] = {}
        self._slices: dict[Key, Object] = {}
        self._turns: dict[Key, Iterator[int]] = {}
        self._lock = threading.Lock()
        self._watches = (
            Watch(api, "/api/v1/services", self._on_service),
            Watch(api, "/apis/discovery.k8s.io/v1/endpointslices", self._on_slice),
        )

    def start(self) -> None:
        """Begin to watch."""
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """End both watches."""
        for watch in self._watches:
            watch.stop()

    def in_namespace(self, namespace: str) -> list[Mapping[str, Any]]:
        """Its Services, by name."""
        with self._lock:
            return [
                body for (space, _), body in sorted(self._services.items()) if space == namespace
            ]

    def locate(self, host: str, port: int) -> tuple[str, int]:
        """The address to dial for a host as a pod knows it; foreign hosts are themselves."""
        with self._lock:
            name = service_name(host) or self._by_search_path(host)
            if name is not None:
                hostname, service, namespace = name
                return self._pick((namespace, service), port, hostname)
            for key, body in self._services.items():
                if body["spec"].get("clusterIP") == host:
                    return self._pick(key, port, "")
        return loopback(host), port

    def _by_search_path(self, host: str) -> tuple[str, str, str] | None:
        """What a pod's resolver makes of a short name: there is such a Service below `svc`."""
        name = service_name(f"{host}.svc")
        return name if name is not None and (name[2], name[1]) in self._services else None

    def _pick(self, key: Key, port: int, hostname: str) -> tuple[str, int]:
        namespace, name = key
        if key not in self._services:
            raise NoEndpointError(f"no Service {name} in namespace {namespace}")
        slices = [
            body
            for (space, _), body in self._slices.items()
            if space == namespace
            and body["metadata"].get("labels", {}).get(SERVICE_OF_SLICE) == name
        ]
        found = backends(self._services[key], slices, port, hostname)
        if not found:
            raise NoEndpointError(
                f"Service {name} in {namespace} has no ready endpoint for port {port}"
            )
        turn = next(self._turns.setdefault(key, itertools.count()))
        address, number = found[turn % len(found)]
        return loopback(address), number

    def _on_service(self, kind: str, body: Object) -> None:
        self._keep(self._services, kind, body)

    def _on_slice(self, kind: str, body: Object) -> None:
        self._keep(self._slices, kind, body)

    def _keep(self, kept: dict[Key, Object], kind: str, body: Object) -> None:
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        with self._lock:
            if kind == "DELETED":
                kept.pop(key, None)
            else:
                kept[key] = body
