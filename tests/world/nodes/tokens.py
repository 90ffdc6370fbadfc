"""ServiceAccount tokens bound to their pod and renewed, and kubeconfigs that use them."""

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from world.nodes.api import Api

RENEW_AT = 0.8  # of the lifetime. Source: Kubernetes 1.36, pkg/kubelet/token/token_manager.go
LIFETIME_SECONDS = 3600


class Tokens:
    """The valid token for each pod, audience and lifetime."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[tuple[str, str, int], tuple[str, float]] = {}
        self._lock = threading.Lock()

    def token(self, pod: Mapping[str, Any], source: Mapping[str, Any]) -> str:
        """The token for a `serviceAccountToken` volume source."""
        metadata = pod["metadata"]
        lifetime_seconds = source.get("expirationSeconds") or LIFETIME_SECONDS
        key = (metadata["uid"], source.get("audience", ""), lifetime_seconds)
        with self._lock:
            token, renew_seconds = self._known.get(key, ("", 0.0))
        if time.time() < renew_seconds:
            return token
        bound = {
            "kind": "Pod",
            "apiVersion": "v1",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        spec: dict[str, Any] = {"boundObjectRef": bound, "expirationSeconds": lifetime_seconds}
        if source.get("audience"):
            spec["audiences"] = [source["audience"]]
        account = pod["spec"].get("serviceAccountName") or "default"
        answer = self._api.post(
            f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        token = answer["status"]["token"]
        with self._lock:
            self._known[key] = (token, time.time() + RENEW_AT * lifetime_seconds)
        return str(token)

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        with self._lock:
            self._known = {key: known for key, known in self._known.items() if key[0] != pod_uid}


def write_kubeconfig(
    path: Path, *, url: str, ca_file: str, token_file: Path, namespace: str
) -> None:
    """A kubeconfig that reads its token from a file, so that a renewed one is seen."""
    cluster = {"server": url, "certificate-authority": ca_file}
    context = {"cluster": "world", "user": "pod", "namespace": namespace}
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pod",
        "clusters": [{"name": "world", "cluster": cluster}],
        "users": [{"name": "pod", "user": {"tokenFile": str(token_file)}}],
        "contexts": [{"name": "pod", "context": context}],
    }
    path.write_text(json.dumps(body))  # JSON is YAML
    path.chmod(0o600)
