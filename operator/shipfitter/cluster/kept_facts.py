"""Model facts in a ConfigMap owned by the ModelDeployment, and a copy of it in memory."""

import hashlib
import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import CONFIG_MAP, MODEL_DEPLOYMENT, OWNER_LABEL
from shipfitter.cluster.queue import Key
from shipfitter.core.model import ModelFacts

MANAGER = "shipfitter-facts"
MOST_BYTES = 900_000  # a ConfigMap holds 1 MiB; the facts of a large model take some 30 KiB
ModelKey = tuple[str, str]  # uri and revision, both as the user wrote them

FACTS = TypeAdapter(ModelFacts)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Record:
    uid: str
    facts: dict[ModelKey, ModelFacts] = field(default_factory=dict)
    commits: dict[ModelKey, str] = field(default_factory=dict)  # also of facts we cannot read
    unsaved: bool = False


class KeptFacts:
    """Each deployment's models as first resolved."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._records: dict[Key, _Record] = {}

    def facts(self, body: Mapping[str, Any], model: ModelKey) -> ModelFacts | None:
        """The facts kept for this deployment; None where there are none."""
        return self._record(body).facts.get(model)

    def commit(self, body: Mapping[str, Any], model: ModelKey) -> str:
        """The commit a model was resolved to, where its facts are of an older shape."""
        return self._record(body).commits.get(model, "")

    def keep(self, body: Mapping[str, Any], model: ModelKey, facts: ModelFacts) -> None:
        """In memory now, in the cluster with the next `save`."""
        record = self._record(body)
        record.facts.pop(model, None)
        record.facts[model] = facts  # last: the newest
        record.commits[model] = facts.revision
        record.unsaved = True

    def save(self, body: Mapping[str, Any]) -> bool:
        """True where the ConfigMap holds what memory holds; else it is tried again next time."""
        record = self._record(body)
        if not record.unsaved:
            return True
        try:
            self._client.apply(_manifest(body, record), manager=MANAGER)
            record.unsaved = False
        except ApiError as error:
            log.warning("%s: model facts not kept yet: %s", key_of(body), error.message)
        return not record.unsaved

    def forget(self, key: Key) -> None:
        """The deployment is gone; its ConfigMap goes with it."""
        with self._lock:
            self._records.pop(key, None)

    def _record(self, body: Mapping[str, Any]) -> _Record:
        key, uid = key_of(body), body["metadata"].get("uid", "")
        with self._lock:
            record = self._records.get(key)
        if record is None or record.uid != uid:
            live = self._client.read(CONFIG_MAP, key.namespace, _name(body))
            record = _read(uid, live)
            with self._lock:
                self._records[key] = record
        return record


def key_of(body: Mapping[str, Any]) -> Key:
    """The key of a ModelDeployment."""
    return Key(body["metadata"]["namespace"], body["metadata"]["name"])


def owner_reference(body: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the garbage collector take an object away with its ModelDeployment."""
    return {
        "apiVersion": MODEL_DEPLOYMENT.api_version,
        "kind": MODEL_DEPLOYMENT.kind,
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
    }


def _name(body: Mapping[str, Any]) -> str:
    return f"{body['metadata']['name']}-model-facts"


def _manifest(body: Mapping[str, Any], record: _Record) -> dict[str, Any]:
    data: dict[str, str] = {}
    left_bytes = MOST_BYTES
    for (uri, revision), facts in reversed(record.facts.items()):
        entry = {"uri": uri, "revision": revision, "commit": facts.revision}
        entry["facts"] = FACTS.dump_python(facts, mode="json", exclude_defaults=True)
        name = hashlib.sha256(f"{uri}@{revision}".encode()).hexdigest()[:16]
        text = json.dumps(entry, separators=(",", ":"), sort_keys=True)
        left_bytes -= len(text)
        if left_bytes >= 0:
            data[f"{name}.json"] = text
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": _name(body),
            "namespace": body["metadata"]["namespace"],
            "labels": {OWNER_LABEL: body["metadata"]["name"]},
            "ownerReferences": [owner_reference(body)],
        },
        "data": data,
    }


def _read(uid: str, live: Mapping[str, Any] | None) -> _Record:
    record = _Record(uid)
    metadata = (live or {}).get("metadata") or {}
    owners = [owner.get("uid") for owner in metadata.get("ownerReferences") or ()]
    if live is None or uid not in owners:  # of an earlier object of this name, or not ours at all
        return record
    for name, text in sorted((live.get("data") or {}).items()):
        try:
            entry = json.loads(text)
            model = (str(entry["uri"]), str(entry["revision"]))
            record.commits[model] = str(entry["commit"])
            record.facts[model] = FACTS.validate_python(entry["facts"])
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            log.info("model facts %s/%s are read anew: %s", metadata["name"], name, error)
    return record
