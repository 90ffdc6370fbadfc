"""From `kubectl apply` to a written Deployment: ours against an operator that only writes one.

Both run on the same control plane and take turns. Both write a Deployment; ours reads the world,
decides, and writes a Service and what the pods need first.
"""

import http.client
import json
import ssl
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bare_operator import GROUP as BARE
from figures import Figure, milliseconds
from ground import MODEL, Ground, Writer, add_nodes, ground
from processes import Started, answers, free_port, shipfitter

from world.controlplane import Plane

OURS = "shipfitter.dev"
ROUNDS = 20
REST_SECONDS = 0.3  # what an operator still does for the last round must not slow the next
COLLECTION = "namespaces/default/modeldeployments"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WAIT_SECONDS = 30.0


def measure() -> Iterator[Figure]:
    with ground() as place:
        add_nodes(place, ["NVIDIA-L40S"], 4)
        install_bare_kind(place.plane)
        with _ours(place), bare_operator_beside(place), Arrivals(place.plane) as arrivals:
            ours, bare = [], []
            for number in range(ROUNDS + 1):
                bare.append(arrivals.create(f"m{number}", BARE))
                ours.append(arrivals.create(f"m{number}"))
    ours_seconds, bare_seconds = statistics.median(ours[1:]), statistics.median(bare[1:])
    ratio = f"{ours_seconds / bare_seconds:.1f} ×"
    yield Figure("ours, against a bare kopf operator", ratio, "at most 3 ×")
    yield Figure(f"ours, median of {ROUNDS}", milliseconds(ours_seconds))
    yield Figure(f"bare, median of {ROUNDS}", milliseconds(bare_seconds))
    yield Figure("ours, the first one (reads the model from the hub)", milliseconds(ours[0]))


class Arrivals:
    """When the Deployment of each owner was seen first, on one watch for all operators."""

    def __init__(self, plane: Plane) -> None:
        self._writer = Writer(plane)
        self._seen: dict[tuple[str, str], float] = {}
        self._news = threading.Condition()
        target = urlsplit(plane.url)
        self._connection = http.client.HTTPSConnection(
            str(target.hostname),
            target.port,
            context=ssl.create_default_context(cafile=str(plane.ca)),
        )
        headers = {"Authorization": f"Bearer {plane.token}"}
        self._connection.request("GET", f"{DEPLOYMENTS}?watch=true", headers=headers)
        self._answer = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "Arrivals":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        if self._connection.sock:
            self._connection.sock.close()

    def create(self, name: str, group: str = OURS) -> float:
        """Seconds from sending a ModelDeployment to seeing its Deployment."""
        body = {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "ModelDeployment",
            "metadata": {"name": name},
            "spec": {"model": {"uri": f"hf://{MODEL}"}},
        }
        began = time.monotonic()
        self._writer.write("POST", f"/apis/{group}/v1alpha1/{COLLECTION}", body)
        seconds = self._wait(group, name) - began
        time.sleep(REST_SECONDS)
        return seconds

    def _wait(self, group: str, name: str) -> float:
        with self._news:
            if not self._news.wait_for(lambda: (group, name) in self._seen, WAIT_SECONDS):
                raise RuntimeError(f"no Deployment of {group} {name} in {WAIT_SECONDS:.0f} s")
            return self._seen[group, name]

    def _read(self) -> None:
        try:
            for line in self._answer:
                now, event = time.monotonic(), json.loads(line)
                with self._news:
                    for owner in event["object"]["metadata"].get("ownerReferences", ()):
                        group = owner["apiVersion"].partition("/")[0]
                        self._seen.setdefault((group, owner["name"]), now)
                    self._news.notify_all()
        except (OSError, ValueError, AttributeError):
            return  # closed at the end


@contextmanager
def _ours(place: Ground) -> Iterator[None]:
    port = free_port()
    with Started(
        shipfitter("operator"), log=place.folder / "ours.log", environment=place.environment(port)
    ) as operator:
        operator.wait_for("/readyz", lambda: answers(f"http://127.0.0.1:{port}/readyz"))
        yield


@contextmanager
def bare_operator_beside(place: Ground) -> Iterator[float]:
    """Seconds from its start until it watches."""
    script = Path(__file__).with_name("bare_operator.py")
    port = free_port()
    argv = [sys.executable, "-m", "kopf", "run", "--standalone", "-A", str(script)]
    argv += ["--liveness", f"http://127.0.0.1:{port}/healthz"]
    environment = {"KUBECONFIG": str(place.plane.kubeconfig)}
    with Started(argv, log=place.folder / "bare.log", environment=environment) as operator:
        yield operator.wait_for("/healthz", lambda: answers(f"http://127.0.0.1:{port}/healthz"))


def install_bare_kind(plane: Plane) -> None:
    """The same kind in another group, taking anything."""
    free: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": free}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    names = {"kind": "ModelDeployment", "plural": "modeldeployments"}
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"modeldeployments.{BARE}"},
        "spec": {"group": BARE, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(kind))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
