"""Kubernetes Events: one for each transition, counted up when it repeats; never in the way."""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shipfitter.cluster.client import MERGE_PATCH, Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import EVENT, MODEL_DEPLOYMENT
from shipfitter.decide.world import Notice

CONTROLLER = "shipfitter.dev/operator"
NOTE_CHARACTERS = 1024  # the API's own limit
REMEMBERED = 4096

log = logging.getLogger(__name__)


class EventPoster:
    """Posts notices about ModelDeployments."""

    def __init__(self, client: Client, *, instance: str) -> None:
        self._client = client
        self._instance = instance[:128]
        self._counts: OrderedDict[str, int] = OrderedDict()  # of what was posted, by event name

    def post(self, body: Mapping[str, Any], notice: Notice) -> None:
        """The event exists or counts one more; a failure is only logged."""
        event = _event(body, notice, self._instance)
        name = event["metadata"]["name"]
        namespace = event["metadata"]["namespace"]
        try:
            try:
                self._client.request("POST", EVENT.path(namespace), body=event)
                self._remember(name, 1)
            except ApiError as error:
                if not error.conflict:
                    raise
                count = self._counts.get(name, 1) + 1
                series = {"count": count, "lastObservedTime": event["eventTime"]}
                path = EVENT.path(namespace, name)
                self._client.patch(path, {"series": series}, content_type=MERGE_PATCH)
                self._remember(name, count)
        except ApiError as error:
            about = f"{namespace}/{body['metadata']['name']}"
            log.warning("%s: event not posted: %s", about, error.message)

    def _remember(self, name: str, count: int) -> None:
        self._counts[name] = count
        self._counts.move_to_end(name)
        while len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)


def _event(body: Mapping[str, Any], notice: Notice, instance: str) -> dict[str, Any]:
    metadata = body["metadata"]
    told = "\n".join((metadata["uid"], notice.type, notice.reason, notice.message))
    digest = hashlib.blake2s(told.encode(), digest_size=8).hexdigest()
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {
            "name": f"{metadata['name'][:200]}.{digest}",  # the same words make the same event
            "namespace": metadata["namespace"],
        },
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": notice.type,
        "reason": notice.reason[:128],
        "note": notice.message[:NOTE_CHARACTERS],
        "action": "Reconcile",
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "regarding": {
            "apiVersion": MODEL_DEPLOYMENT.api_version,
            "kind": MODEL_DEPLOYMENT.kind,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
    }
