"""Carries out an outcome: every step may be the last one, and doing all of it again is harmless.

Order: a look at every new name, what pods need (ConfigMaps, claim templates), workloads, their
scale, what stands beside them (Services, disruption budgets), status, deletions. A step that would
change nothing is left out.
"""

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from shipfitter.cluster.caches import Caches
from shipfitter.cluster.client import MERGE_PATCH, Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import (
    DELETION_COST_ANNOTATION,
    KINDS,
    MODEL_DEPLOYMENT,
    POD,
    WORKLOAD_KINDS,
    kind_of,
)
from shipfitter.cluster.queue import Key
from shipfitter.cluster.trim import wish_digest
from shipfitter.decide.world import Apply, Delete

BESIDE_KINDS = frozenset({"Service", "PodDisruptionBudget"})
MANAGER = "shipfitter"
# Kinds we do not watch are written again after this time, in case somebody changed them.
UNWATCHED_SECONDS = 600.0

log = logging.getLogger(__name__)


class NameTakenError(ApiError):
    """An object of that name exists and is not ours; it is never taken over."""


@dataclass(frozen=True, slots=True)
class _Written:
    digest: str  # of what we sent
    wish: str  # of what the server made of it
    at_seconds: float


class Applier:
    """Writes to the cluster, one deployment at a time."""

    def __init__(
        self, client: Client, caches: Caches, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[Key, dict[tuple[str, str, str], _Written]] = {}

    def apply(self, key: Key, applies: tuple[Apply, ...]) -> bool:
        """All manifests are in force; True where one had to be sent. A refusal ends it."""
        sent = False
        scales = {_place(each): each.manifest for each in applies if each.manager != MANAGER}
        ordered = [(each, _placed(key, each)) for each in sorted(applies, key=_rank)]
        # Before anything is written: a name that is taken leaves nothing half done.
        live = self._live_wishes(key, [each for each, _ in ordered if each.manager == MANAGER])
        for each, manifest in ordered:
            whole = manifest
            if each.manager == MANAGER and _place(each) in scales and not self._known(manifest):
                # Created without a scale it would start with one replica, wanted or not.
                whole = merged(manifest, scales[_place(each)])
            sent |= self._apply_one(key, whole, each.manager, live.get(_place(each)))
        return sent

    def delete(self, key: Key, deletes: tuple[Delete, ...]) -> None:
        """The objects are going; those of another incarnation stay."""
        for each in deletes:
            kind = KINDS[each.api_version, each.kind]
            if self._client.delete(kind, key.namespace, each.name, uid=each.uid):
                log.info("%s: deleted %s %s", key, each.kind, each.name)
            with self._lock:
                mine = self._written.get(key) or {}
                for place in [place for place in mine if place[:2] == (each.kind, each.name)]:
                    del mine[place]

    def set_costs(self, key: Key, costs: Mapping[str, int]) -> None:
        """Pods say how dear they are to take away; one that is gone needs no price."""
        for name, cost in costs.items():
            patch = {"metadata": {"annotations": {DELETION_COST_ANNOTATION: str(cost)}}}
            try:
                self._client.patch(
                    POD.path(key.namespace, name), patch, content_type=MERGE_PATCH, manager=MANAGER
                )
            except ApiError as error:
                if not error.not_found:
                    raise

    def write_status(self, body: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
        """The status is stored; False where it says the same already.

        A JSON patch replaces it whole whatever the resource version, guarded by the uid: an object
        made anew under the same name keeps its own.
        """
        if same_meaning(body.get("status"), status):
            return False
        metadata = body["metadata"]
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "add", "path": "/status", "value": dict(status)},
        ]
        path = MODEL_DEPLOYMENT.path(metadata["namespace"], metadata["name"], "status")
        answer = self._client.patch(path, patch, manager=MANAGER)
        if not same_meaning(answer.get("status"), status):
            log.warning(
                "%s/%s: the API server dropped part of the status: the installed resource "
                "definitions are older than this operator; apply the newer ones",
                metadata["namespace"],
                metadata["name"],
            )
        return True

    def forget(self, key: Key) -> None:
        """The deployment is gone."""
        with self._lock:
            self._written.pop(key, None)

    def _live_wishes(self, key: Key, applies: Sequence[Apply]) -> dict[tuple[str, str], str | None]:
        """What is there under names we are about to write for the first time; asked at once."""
        manifests = {_place(each): _placed(key, each) for each in applies}
        new = {place: each for place, each in manifests.items() if self._is_new(key, each)}
        if not new:
            return {}
        with ThreadPoolExecutor(len(new)) as readers:
            found = readers.map(lambda each: self._wish_of_live(key, each), new.values())
            return dict(zip(new, found, strict=True))

    def _is_new(self, key: Key, manifest: Mapping[str, Any]) -> bool:
        """Whether we neither see such an object of this deployment nor remember writing it."""
        place = (manifest["kind"], manifest["metadata"]["name"], MANAGER)
        known = self._known(manifest)
        with self._lock:
            remembered = place in self._written.get(key, {})
        return known.owner != key.name if known is not None else not remembered

    def _apply_one(
        self, key: Key, manifest: Mapping[str, Any], manager: str, live: str | None
    ) -> bool:
        kind, name = kind_of(manifest), manifest["metadata"]["name"]
        place = (kind.kind, name, manager)
        digest = _digest(manifest)
        known = self._known(manifest)
        with self._lock:
            written = self._written.setdefault(key, {}).get(place)
        if written is not None and written.digest == digest:
            if known is not None and known.wish == written.wish:
                return False
            fresh = self._clock() - written.at_seconds < UNWATCHED_SECONDS
            if known is None and not self._caches.watches(kind) and fresh:
                return False
        before = known.wish if known is not None else written.wish if written else live
        answer = self._client.apply(manifest, manager=manager)
        self._caches.learn(kind, answer)
        after = wish_digest(answer)
        with self._lock:
            self._written.setdefault(key, {})[place] = _Written(digest, after, self._clock())
        if before != after:
            log.info("%s: %s %s %s", key, "changed" if before else "created", kind.kind, name)
        return True

    def _wish_of_live(self, key: Key, manifest: Mapping[str, Any]) -> str | None:
        """What is there under a name we are about to write for the first time."""
        kind, name = kind_of(manifest), manifest["metadata"]["name"]
        live = self._client.read(kind, manifest["metadata"]["namespace"], name)
        if live is None:
            return None
        owners = live["metadata"].get("ownerReferences") or ()
        if not any(
            owner.get("kind") == MODEL_DEPLOYMENT.kind and owner.get("name") == key.name
            for owner in owners
        ):
            raise NameTakenError(
                422,
                f"{kind.kind} {name} exists and does not belong to this ModelDeployment; "
                f"remove it, or give the ModelDeployment another name",
                reason="NameTaken",
            )
        return wish_digest(live)

    def _known(self, manifest: Mapping[str, Any]) -> Any:
        metadata = manifest["metadata"]
        return self._caches.known(kind_of(manifest), metadata["namespace"], metadata["name"])


def same_meaning(one: Any, other: Any) -> bool:
    """True where two statuses say the same: an absent field, null and empty are alike."""
    return bool(_bare(one or {}) == _bare(other or {}))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the other's fields laid over it, mapping by mapping."""
    both = {
        name: merged(base[name], value)
        if isinstance(value, Mapping) and isinstance(base.get(name), Mapping)
        else value
        for name, value in over.items()
    }
    return {**base, **both}


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        bare = {name: _bare(each) for name, each in value.items()}
        return {name: each for name, each in bare.items() if each not in (None, {}, [])}
    if isinstance(value, (list, tuple)):
        return [_bare(each) for each in value]
    return value


def _rank(each: Apply) -> int:
    kind = each.manifest["kind"]
    if kind in BESIDE_KINDS:
        return 3
    return 0 if kind not in WORKLOAD_KINDS else 1 if each.manager == MANAGER else 2


def _placed(key: Key, each: Apply) -> dict[str, Any]:
    """The manifest in its namespace."""
    return {
        **each.manifest,
        "metadata": {"namespace": key.namespace, **each.manifest["metadata"]},
    }


def _place(each: Apply) -> tuple[str, str]:
    return each.manifest["kind"], each.manifest["metadata"]["name"]


def _digest(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2s(text.encode(), digest_size=16).hexdigest()
