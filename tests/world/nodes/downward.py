"""What a container may know about its own pod: `fieldRef` in the environment and in files."""

import json
import re
from collections.abc import Mapping
from typing import Any

from world.nodes.node import ADDRESS

SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def field_value(path: str, pod: Mapping[str, Any], pod_ip: str) -> str:
    """The value of one field path; one that Kubernetes refuses never gets here.

    >>> field_value("metadata.labels['app']", {"metadata": {"labels": {"app": "x"}}}, "")
    'x'
    """
    metadata, spec = pod["metadata"], pod.get("spec", {})
    subscript = SUBSCRIPT.fullmatch(path)
    if subscript:
        return str((metadata.get(subscript[1]) or {}).get(subscript[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = metadata.get(path.removeprefix("metadata.")) or {}
        return "".join(f"{key}={json.dumps(value)}\n" for key, value in sorted(entries.items()))
    known = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.podIP": pod_ip,
        "status.podIPs": pod_ip,
        "status.hostIP": ADDRESS,
        "status.hostIPs": ADDRESS,
    }
    return known[path] or ""
