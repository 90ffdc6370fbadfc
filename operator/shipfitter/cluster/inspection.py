"""Models that only a pod can read: a Job reads each, and its last words are the facts.

Nothing is remembered that matters: a restarted operator finds the Job by its name and goes on. A
Job that failed stays until it is asked again; one that succeeded goes when its facts are kept.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import claim_and_path
from shipfitter.cluster.backoff import Backoff
from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.inspection_state import OwnJob, answer, waiting_for
from shipfitter.cluster.kinds import CLAIM, JOB, POD
from shipfitter.cluster.queue import Key
from shipfitter.core.facts import ModelFacts
from shipfitter.errors import (
    InspectingError,
    InspectionFailedError,
    ModelNotFoundError,
    UserError,
)
from shipfitter.render.inspection_job import DEADLINE_SECONDS, inspection_job

MANAGER = "shipfitter"
LOOK_SECONDS = 10.0  # while it runs; its end wakes the deployment sooner
GONE_SECONDS = 1.0  # until an object that is being deleted is gone
FIRST_RETRY_SECONDS = 15.0
MOST_RETRY_SECONDS = 600.0  # a Secret may have been mended, which nobody tells us

log = logging.getLogger(__name__)
Found = ModelFacts | UserError


@dataclass(slots=True)
class _Attempts:
    """The Jobs of one name so far."""

    backoff: Backoff
    failure: UserError | None = None
    failed_uid: str = ""  # of the Job the failure is from
    retry_at: float = 0.0
    trouble: str = ""


@dataclass(slots=True, kw_only=True)
class Look:
    """One model as its Job sees it."""

    found: Found
    job: str = ""  # its name; empty where none can be
    again_after_seconds: float = LOOK_SECONDS


@dataclass(slots=True, kw_only=True)
class Inspections:
    """The Jobs of all deployments; `image` is ours, and without it there are none."""

    client: Client
    image: str
    hub_endpoint: str = ""
    jobs: Callable[[], Sequence[OwnJob]] = tuple  # those that live, as last seen
    clock: Callable[[], float] = time.monotonic
    _attempts: dict[tuple[Key, str], _Attempts] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, key: Key, body: Mapping[str, Any], uri: str, revision: str) -> Look:
        """Facts, what is wrong, or that a Job is reading; there is a Job where one is needed."""
        try:
            resource = ModelDeployment.parse(body)
        except UserError as error:
            return Look(found=error)  # told as it is by whoever parses it next
        missing = self._missing_claim(key, uri)
        if missing is not None:
            return Look(found=missing)
        manifest = inspection_job(
            resource, uri, revision, image=self.image, hub_endpoint=self.hub_endpoint
        )
        name = manifest["metadata"]["name"]
        with self._lock:
            fresh = Backoff(first_seconds=FIRST_RETRY_SECONDS, most_seconds=MOST_RETRY_SECONDS)
            attempts = self._attempts.setdefault((key, name), _Attempts(fresh))
        live = self.client.read(JOB, key.namespace, name)
        if live is None:
            return self._start(uri, manifest, attempts)
        return self._follow(key, uri, live, resource.metadata.uid, attempts)

    def began(self, key: Key) -> bool:
        """Whether this deployment has a Job, perhaps of an operator before us."""
        return any((job.namespace, job.owner) == key for job in self.jobs())

    def tidy(self, key: Key, wanted: Collection[str]) -> None:
        """Jobs of this deployment that nobody waits for are gone."""
        with self._lock:
            for place in [each for each in self._attempts if each[0] == key]:
                if place[1] not in wanted:
                    del self._attempts[place]
        for job in self.jobs():
            if (job.namespace, job.owner) == key and job.name not in wanted:
                self._delete(key, job.name, job.uid)

    def forget(self, key: Key) -> None:
        """The deployment is gone, and its Jobs with it."""
        with self._lock:
            for place in [each for each in self._attempts if each[0] == key]:
                del self._attempts[place]

    def _missing_claim(self, key: Key, uri: str) -> UserError | None:
        """A claim without a volume is never mounted: that alone would bind it somewhere."""
        place = claim_and_path(uri)
        if place is None:
            return None
        claim = self.client.read(CLAIM, key.namespace, place[0])
        if claim is None:
            return ModelNotFoundError(
                f"{uri}: namespace {key.namespace} has no claim {place[0]!r}; create it, or name "
                "one of its claims in spec.model.uri"
            )
        if (claim.get("status") or {}).get("phase") != "Bound":
            return ModelNotFoundError(
                f"{uri}: claim {place[0]!r} is not bound to a volume, so no model is on it; put "
                "the model there with a pod of yours first"
            )
        return None

    def _start(self, uri: str, manifest: Mapping[str, Any], attempts: _Attempts) -> Look:
        name = manifest["metadata"]["name"]
        wait = attempts.retry_at - self.clock()
        if attempts.failure is not None and wait > 0:  # its Job was removed by somebody, or by age
            return Look(found=attempts.failure, job=name, again_after_seconds=wait)
        try:
            self.client.apply(manifest, manager=MANAGER)
        except ApiError as error:
            if error.retryable:
                raise
            refused = InspectionFailedError(
                f"{uri}: the Job that would read it was refused: {error.message}"
            )
            return self._failed(refused, name, "", attempts)
        log.info("%s: Job %s reads %s", manifest["metadata"]["namespace"], name, uri)
        return self._reading(uri, name, attempts)

    def _follow(
        self, key: Key, uri: str, live: Mapping[str, Any], owner_uid: str, attempts: _Attempts
    ) -> Look:
        metadata = live["metadata"]
        name, uid = metadata["name"], metadata["uid"]
        owners = [owner.get("uid") for owner in metadata.get("ownerReferences") or ()]
        if "deletionTimestamp" in metadata or owner_uid not in owners:
            # Of a deployment of the same name that is gone: its Job is going, too.
            self._delete(key, name, uid)
            return self._reading(uri, name, attempts, again_after_seconds=GONE_SECONDS)
        pods = self._pods(key, uid)
        found = answer(uri, live, pods, attempts.trouble)
        if found is None:
            attempts.trouble = waiting_for(pods)
            return self._reading(uri, name, attempts)
        if isinstance(found, ModelFacts):
            log.info("%s: Job %s has read %s: %s", key, name, uri, found.architecture)
            return Look(found=found, job=name)
        if uid != attempts.failed_uid:
            return self._failed(found, name, uid, attempts)
        wait = attempts.retry_at - self.clock()
        if wait > 0:
            return Look(found=found, job=name, again_after_seconds=wait)
        self._delete(key, name, uid)
        return self._reading(uri, name, attempts, again_after_seconds=GONE_SECONDS)

    def _failed(self, error: UserError, name: str, uid: str, attempts: _Attempts) -> Look:
        wait = attempts.backoff.next_seconds()
        attempts.failure, attempts.failed_uid = error, uid
        attempts.retry_at, attempts.trouble = self.clock() + wait, ""
        log.warning("Job %s: %s", name or "refused", error)
        return Look(found=error, job=name, again_after_seconds=wait)

    def _reading(
        self,
        uri: str,
        name: str,
        attempts: _Attempts,
        *,
        again_after_seconds: float = LOOK_SECONDS,
    ) -> Look:
        """The last failure while it is asked again, so that the status stands still."""
        found: UserError | None = attempts.failure
        if found is None:
            trouble = f"; {attempts.trouble}" if attempts.trouble else ""
            found = InspectingError(
                f"{uri}: Job {name} reads the model, up to {DEADLINE_SECONDS} s{trouble}"
            )
        return Look(found=found, job=name, again_after_seconds=again_after_seconds)

    def _pods(self, key: Key, job_uid: str) -> list[Mapping[str, Any]]:
        selection = {"labelSelector": f"batch.kubernetes.io/controller-uid={job_uid}"}
        return [
            raw
            for page in self.client.pages(POD, key.namespace, query=selection)
            for raw in page.get("items") or ()
        ]

    def _delete(self, key: Key, name: str, uid: str) -> None:
        if self.client.delete(JOB, key.namespace, name, uid=uid):
            log.info("%s: deleted Job %s", key, name)
