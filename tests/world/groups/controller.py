"""Makes the groups of LeaderWorkerSets: one thread that looks at every set after each change.

Played: LeaderCreated and LeaderReady, RecreateGroupOnPodRestart, scaling from the highest group
down, rolling updates with surge and unavailable, the headless Service, status. Not played:
partitions, subgroups, exclusive topology, UniquePerReplica.
"""

import contextlib
import logging
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from world.groups.group import (
    NAME_LABEL,
    WORKER_LABEL,
    Group,
    groups,
    pod,
    ready,
    revision,
    service,
    size,
    worker_index,
)
from world.nodes.api import Api, ApiError, Watch

LOG = logging.getLogger("world.groups")
Object = dict[str, Any]
SETS = "/apis/leaderworkerset.x-k8s.io/v1"
TOLD = (404, 409)  # gone meanwhile, there already, or changed meanwhile: the next look knows more
LOOK_SECONDS = 1.0


def definition() -> Object:
    """The CustomResourceDefinition to apply."""
    body: Object = yaml.safe_load((Path(__file__).parent / "crd.yaml").read_text("utf-8"))
    return body


class GroupController:
    """Start it once the definition is served."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._sets: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        self._gone: set[tuple[str, str]] = set()  # sets whose pods have to go
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._watches = (
            Watch(api, f"{SETS}/leaderworkersets", self._on_set),
            Watch(api, "/api/v1/pods", self._on_pod, labelSelector=NAME_LABEL),
        )
        self._thread = threading.Thread(target=self._run, name="groups", daemon=True)

    def start(self) -> None:
        """Begin to watch and to act."""
        for watch in self._watches:
            watch.start()
        self._thread.start()

    def stop(self) -> None:
        """End; what it made stays."""
        self._stopped.set()
        self._changed.set()
        for watch in self._watches:
            watch.stop()
        self._thread.join()

    def _on_set(self, kind: str, body: Object) -> None:
        place = (body["metadata"]["namespace"], body["metadata"]["name"])
        if kind == "DELETED":
            self._gone.add(place)
        else:
            self._gone.discard(place)
        self._keep(self._sets, kind, body)

    def _on_pod(self, kind: str, body: Object) -> None:
        self._keep(self._pods, kind, body)

    def _keep(self, kept: dict[str, Object], kind: str, body: Object) -> None:
        with self._lock:
            if kind == "DELETED":
                kept.pop(body["metadata"]["uid"], None)
            else:
                kept[body["metadata"]["uid"]] = body
        self._changed.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._changed.wait(LOOK_SECONDS)
            self._changed.clear()
            with self._lock:
                sets, pods = list(self._sets.values()), list(self._pods.values())
            # Not left to the garbage collector: of kinds as new as this it learns only every 30 s.
            for group in groups(each for each in pods if _place(each) in self._gone).values():
                self._delete(group)
            for body in sets:
                if "deletionTimestamp" in body["metadata"] or self._stopped.is_set():
                    continue
                try:
                    self._look(body, [each for each in pods if _belongs(each, body)])
                except ApiError as error:
                    if error.status not in TOLD:
                        LOG.warning("%s: %s", body["metadata"]["name"], error)
                except Exception:  # one set that is not understood must not stop all others
                    if not self._stopped.is_set():
                        LOG.exception("%s", body["metadata"]["name"])

    def _look(self, body: Object, pods: list[Object]) -> None:
        self._ensure_service(body)
        found, wanted = groups(pods), int(body["spec"].get("replicas", 1))
        for group in found.values():
            self._keep_whole(body, group)
        surge = self._roll(body, found, wanted)
        for index in range(wanted + surge):
            if index not in found:
                self._create(pod(body, index, 0, body))
        for index in sorted(found, reverse=True):
            if index >= wanted + surge:
                self._delete(found[index])
        self._tell(body, found)

    def _keep_whole(self, body: Object, group: Group) -> None:
        """Its missing workers, or its end where one pod has ended."""
        policy = body["spec"]["leaderWorkerTemplate"].get("restartPolicy")
        leader = group.leader
        if leader is None or (group.is_broken and policy == "RecreateGroupOnPodRestart"):
            self._delete(group)
            return
        if group.is_going:
            if policy == "RecreateGroupOnPodRestart":
                self._delete(group)
            return
        if body["spec"].get("startupPolicy") == "LeaderReady" and not ready(leader):
            return
        if group.revision != revision(body):
            return  # it goes as a whole, when its turn comes
        there = {worker_index(each) for each in group.pods}
        for worker in range(1, size(body)):
            if worker not in there:
                self._create(pod(body, group.index, worker, {**leader, **_POD}))

    def _roll(self, body: Object, found: dict[int, Group], wanted: int) -> int:
        """One outdated group at a time gives way; how many groups there may be besides."""
        outdated = [g for i, g in found.items() if i < wanted and g.revision != revision(body)]
        rolling = body["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        surge = int(rolling.get("maxSurge") or 0)
        if not outdated:  # those besides stay until the last one is ready in its new form
            whole = sum(i < wanted and g.is_ready(size(body)) for i, g in found.items())
            return min(surge, sum(i >= wanted for i in found)) if whole < wanted else 0
        least = wanted - int(rolling.get("maxUnavailable") or 0)
        serving = sum(group.is_ready(size(body)) for group in found.values())
        for group in reversed(outdated):
            spare = serving - group.is_ready(size(body)) >= least
            if not group.is_going and (spare or not group.is_ready(size(body))):
                self._delete(group)
                break
        return surge

    def _ensure_service(self, body: Object) -> None:
        metadata = body["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/services"
        try:
            self._api.get(f"{path}/{metadata['name']}")
        except ApiError as error:
            if error.status != 404:
                raise
            self._api.post(path, service(body))

    def _create(self, body: Object) -> None:
        with contextlib.suppress(ApiError):
            self._api.post(f"/api/v1/namespaces/{body['metadata']['namespace']}/pods", body)

    def _delete(self, group: Group) -> None:
        for each in group.pods:
            metadata = each["metadata"]
            if "deletionTimestamp" in metadata:
                continue
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            with contextlib.suppress(ApiError):
                self._api.delete(path, {"preconditions": {"uid": metadata["uid"]}})

    def _tell(self, body: Object, found: dict[int, Group]) -> None:
        """The status, where it says something new."""
        metadata, wanted = body["metadata"], size(body)
        live = [group for group in found.values() if not group.is_going]
        whole = sum(group.is_ready(wanted) for group in live)
        available = whole >= int(body["spec"].get("replicas", 1))
        status = {
            "replicas": len(live),
            "readyReplicas": whole,
            "updatedReplicas": sum(group.revision == revision(body) for group in live),
            "hpaPodSelector": f"{NAME_LABEL}={metadata['name']},{WORKER_LABEL}=0",
        }
        known = body.get("status") or {}
        if all(known.get(key) == value for key, value in status.items()):
            return
        condition = {
            "type": "Available",
            "status": str(available),
            "reason": "AllGroupsReady" if available else "GroupsProgressing",
            "message": f"{whole} groups are ready",
            "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        place = f"{SETS}/namespaces/{metadata['namespace']}/leaderworkersets/{metadata['name']}"
        patch = {"status": {**status, "conditions": [condition]}}
        answer = self._api.patch(f"{place}/status", patch)
        self._on_set("MODIFIED", answer)


_POD = {"apiVersion": "v1", "kind": "Pod"}


def _place(each: Object) -> tuple[str, str]:
    return each["metadata"]["namespace"], each["metadata"]["labels"][NAME_LABEL]


def _belongs(each: Object, body: Object) -> bool:
    mine, its = body["metadata"], each["metadata"]
    same = its["namespace"] == mine["namespace"] and its["labels"][NAME_LABEL] == mine["name"]
    owners = [owner["uid"] for owner in its.get("ownerReferences") or ()]
    return same and (mine["uid"] in owners or worker_index(each) > 0)
