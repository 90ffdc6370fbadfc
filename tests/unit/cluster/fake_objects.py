"""The objects behind the API server in memory: versions, selectors, and the patches we send.

No schemas, no defaults, no controllers: what depends on those is tested on the real one.
"""

import itertools
import json
import threading
import uuid
from typing import Any

Body = dict[str, Any]
Query = dict[str, str]
MARKS = ("BOOKMARK", "ERROR")  # events that are about no object


class RefusedError(Exception):
    """An answer that is not the wanted one."""

    def __init__(self, code: int, reason: str, message: str = "", **extra: Any) -> None:
        self.code = code
        self.retry_after = extra.pop("retry_after", None)
        self.body = {"kind": "Status", "code": code, "reason": reason, **extra}
        self.body["message"] = message or reason


class FakeObjects:
    """Objects by plural, namespace and name, and everything that happened to them."""

    def __init__(self) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.objects: dict[tuple[str, str, str], Body] = {}
        self.history: list[tuple[int, str, str, Body]] = []  # version, plural, type, object
        self.version = 99
        self.compacted = 0
        self._versions = itertools.count(100)

    def put(self, plural: str, body: Body) -> Body:
        with self.lock:
            return self._store(plural, json.loads(json.dumps(body)))

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        with self.lock:
            gone = self.objects.pop((plural, namespace, name))
            self.record(plural, "DELETED", {**gone, "metadata": dict(gone["metadata"])})

    def get(self, plural: str, name: str, namespace: str = "") -> Body | None:
        with self.lock:
            return self.objects.get((plural, namespace, name))

    def forget_history(self) -> None:
        """Positions up to now can no longer be watched from."""
        with self.lock:
            self.compacted = self.version
            self.history.clear()

    def bookmark(self, plural: str) -> None:
        self.record(plural, "BOOKMARK", {"metadata": {}})

    def send_error(self, plural: str, refused: RefusedError) -> None:
        self.record(plural, "ERROR", {**refused.body, "metadata": {}})

    def record(self, plural: str, kind: str, body: Body) -> None:
        with self.lock:
            self.version = next(self._versions)
            body["metadata"]["resourceVersion"] = str(self.version)
            self.history.append((self.version, plural, kind, json.loads(json.dumps(body))))
            self.lock.notify_all()

    def news(self, plural: str, namespace: str, query: Query, after: int) -> list[tuple[int, str]]:
        """Lines of a watch, each with its version; empty ones stand for what is not selected."""
        return [
            (version, self._line(kind, body, namespace, query))
            for version, place, kind, body in self.history
            if version > after and place == plural
        ]

    def list(self, plural: str, namespace: str, query: Query) -> Body:
        chosen = [
            body
            for (place, _, _), body in sorted(self.objects.items())
            if place == plural and selected(body, namespace, query)
        ]
        begin = int(query.get("continue", 0))
        end = begin + int(query.get("limit", len(chosen) or 1))
        metadata = {"resourceVersion": str(self.version)}
        if end < len(chosen):
            metadata["continue"] = str(end)
        return {"metadata": metadata, "items": chosen[begin:end]}

    def create(self, plural: str, namespace: str, sent: Body) -> Body:
        if (plural, namespace, sent["metadata"]["name"]) in self.objects:
            raise RefusedError(409, "AlreadyExists")
        return self._store(plural, sent, namespace)

    def apply(self, plural: str, namespace: str, name: str, sent: Body) -> Body:
        live = self.objects.get((plural, namespace, name)) or {}
        return self._store(plural, merged(live, sent), namespace)

    def replace(self, plural: str, live: Body, sent: Body) -> Body:
        if sent["metadata"].get("resourceVersion") != live["metadata"]["resourceVersion"]:
            raise RefusedError(409, "Conflict")
        return self._store(plural, {**live, "spec": sent["spec"]})

    def patch(self, plural: str, live: Body, patch: Any) -> Body:
        changed = json_patched(live, patch) if isinstance(patch, list) else merged(live, patch)
        return self._store(plural, changed)

    def delete(self, plural: str, live: Body, options: Body | None) -> Body:
        wanted = ((options or {}).get("preconditions") or {}).get("uid")
        if wanted and wanted != live["metadata"]["uid"]:
            raise RefusedError(409, "Conflict")
        self.remove(plural, live["metadata"]["name"], live["metadata"].get("namespace", ""))
        return live

    def _store(self, plural: str, sent: Body, namespace: str = "") -> Body:
        body = {**sent, "metadata": dict(sent["metadata"])}
        metadata = body["metadata"]
        if namespace:
            metadata["namespace"] = namespace
        key = (plural, metadata.get("namespace", ""), metadata["name"])
        old = self.objects.get(key)
        if old == body:
            return old
        metadata.setdefault("uid", str(uuid.uuid4()))
        before = old["metadata"]["generation"] if old else 0
        metadata["generation"] = before + (not old or old.get("spec") != body.get("spec"))
        self.record(plural, "MODIFIED" if old else "ADDED", body)
        self.objects[key] = body
        return body

    def _line(self, kind: str, body: Body, namespace: str, query: Query) -> str:
        if kind not in MARKS and not selected(body, namespace, query):
            return ""
        return json.dumps({"type": kind, "object": body})


def selected(body: Body, namespace: str, query: Query) -> bool:
    metadata = body["metadata"]
    if namespace not in ("", metadata.get("namespace", "")):
        return False
    labels = metadata.get("labels") or {}
    for term in filter(None, query.get("labelSelector", "").split(",")):
        name, equals, value = term.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def merged(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    both = {**base, **{name: merged(base.get(name), value) for name, value in over.items()}}
    return {name: value for name, value in both.items() if value is not None}


def json_patched(live: Body, patch: list[Body]) -> Body:
    body = json.loads(json.dumps(live))
    for step in patch:
        *parents, last = step["path"].strip("/").split("/")
        target = body
        for part in parents:
            target = target[part]
        if step["op"] == "test" and target.get(last) != step["value"]:
            raise RefusedError(422, "Invalid", "the test of a JSON patch failed")
        if step["op"] == "add":
            target[last] = step["value"]
    return body
