"""Load tests: their Jobs made, read and understood. What a test found is kept in status, not here.

A restarted operator finds the Job by its labels and goes on; there is one for each plan.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from shipfitter.api.model_deployment_status import VerifyStatus
from shipfitter.cluster.backoff import Backoff
from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.inspection_state import OwnJob, ended_state, waiting_for
from shipfitter.cluster.kinds import JOB, OWNER_LABEL, POD
from shipfitter.cluster.queue import Key
from shipfitter.render.verify_job import (
    COMPONENT,
    COMPONENT_LABEL,
    CONTAINER,
    LOAD_ANNOTATION,
    PLAN_HASH_ANNOTATION,
    RESTARTS_ANNOTATION,
)
from shipfitter.status.load_test import LoadTest

MANAGER = "shipfitter"
FIRST_RETRY_SECONDS = 15.0
MOST_RETRY_SECONDS = 600.0  # a quota or a policy may have been mended, which nobody tells us

log = logging.getLogger(__name__)
Body = Mapping[str, Any]


@dataclass(slots=True)
class _Refused:
    """A Job that the cluster did not take."""

    test: LoadTest
    backoff: Backoff
    retry_at: float


@dataclass(slots=True, kw_only=True)
class Verifications:
    """The load tests of all deployments."""

    client: Client
    jobs: Callable[[], Sequence[OwnJob]] = tuple  # those that live, as last seen
    clock: Callable[[], float] = time.monotonic
    _refused: dict[Key, _Refused] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, key: Key, body: Body) -> tuple[LoadTest, ...]:
        """The tests of one deployment as they are now: asked live, or one might be made twice."""
        if not _wished(body) and not any((job.namespace, job.owner) == key for job in self.jobs()):
            return ()
        selection = {"labelSelector": f"{OWNER_LABEL}={key.name},{COMPONENT_LABEL}={COMPONENT}"}
        owner = body["metadata"].get("uid")
        found = tuple(
            self._test(key, raw, owner)
            for page in self.client.pages(JOB, key.namespace, query=selection)
            for raw in page.get("items") or ()
        )
        with self._lock:
            refused = self._refused.get(key)
        waits = refused is not None and self.clock() < refused.retry_at
        return (*found, refused.test) if refused is not None and waits else found

    def start(self, key: Key, manifest: Body) -> float | None:
        """The Job is made; seconds until the next try where the cluster does not take it."""
        name = manifest["metadata"]["name"]
        try:
            self.client.apply(manifest, manager=MANAGER)
        except ApiError as error:
            if error.retryable:
                raise
            with self._lock:
                before = self._refused.get(key)
                backoff = (
                    before.backoff
                    if before
                    else Backoff(first_seconds=FIRST_RETRY_SECONDS, most_seconds=MOST_RETRY_SECONDS)
                )
                wait = backoff.next_seconds()
                test = LoadTest(
                    name=name,
                    plan_hash=_annotation(manifest, PLAN_HASH_ANNOTATION),
                    load=_counts(_annotation(manifest, LOAD_ANNOTATION)),
                    trouble=f"it was refused: {error.message}",
                )
                self._refused[key] = _Refused(test, backoff, self.clock() + wait)
            log.warning("%s: Job %s was refused: %s", key, name, error.message)
            return wait
        with self._lock:
            self._refused.pop(key, None)
        log.info("%s: Job %s puts the plan under load", key, name)
        return None

    def forget(self, key: Key) -> None:
        """The deployment is gone, and its Jobs with it."""
        with self._lock:
            self._refused.pop(key, None)

    def _test(self, key: Key, raw: Body, owner: Any) -> LoadTest:
        metadata = raw["metadata"]
        ours = any(each.get("uid") == owner for each in metadata.get("ownerReferences") or ())
        selection = {"labelSelector": f"batch.kubernetes.io/controller-uid={metadata['uid']}"}
        pods = [
            pod
            for page in self.client.pages(POD, key.namespace, query=selection)
            for pod in page.get("items") or ()
        ]
        return load_test(raw, pods, ours=ours)


def load_test(job: Body, pods: Sequence[Body], *, ours: bool = True) -> LoadTest:
    """A Job and its pods as a test; that of an earlier deployment of the name tests no plan."""
    metadata = job["metadata"]
    figures, error, running = _outcome(job, pods)
    return LoadTest(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        plan_hash=_annotation(job, PLAN_HASH_ANNOTATION) if ours else "",
        running=running,
        going="deletionTimestamp" in metadata,
        figures=figures,
        error=error,
        trouble=waiting_for(pods) if running else "",
        load=_counts(_annotation(job, LOAD_ANNOTATION)),
        restarts=_counts(_annotation(job, RESTARTS_ANNOTATION)),
    )


def _outcome(job: Body, pods: Sequence[Body]) -> tuple[Mapping[str, Any], str, bool]:
    """Figures, or why there are none; and whether it still runs."""
    for pod in pods:
        ended = ended_state(pod, CONTAINER)
        if ended is not None:
            return *_last_words(ended), False
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Failed", "Complete"):
            name, seconds = job["metadata"]["name"], job["spec"].get("activeDeadlineSeconds")
            if condition.get("reason") == "DeadlineExceeded":
                why = waiting_for(pods) or f"kubectl describe job {name} tells more"
                return {}, f"Job {name} did not end within {seconds} s: {why}", False
            return {}, f"Job {name} lost its pod before it had an answer", False
    return {}, "", True


def _last_words(ended: Body) -> tuple[Mapping[str, Any], str]:
    """What the test reported; whoever may run pods in that namespace can write anything."""
    words, code = str(ended.get("message") or "").strip(), ended.get("exitCode")
    try:
        told = VerifyStatus.model_validate(json.loads(words), by_alias=True, by_name=False)
    except (ValueError, ValidationError):
        reason = ended.get("reason") or "ended"
        last = words.splitlines()[-1] if words else "no word"
        return {}, f"the load test ended without figures ({reason}, exit code {code}): {last}"
    figures = told.model_dump(mode="json", by_alias=True, exclude_none=True)
    error = str(figures.pop("error", ""))
    for name in ("planHash", "at", "atOnce", "inputTokens", "outputTokens", "engineError"):
        figures.pop(name, None)
    if not error and "requests" not in figures:
        error = "the load test ended without figures"
    return figures, error


def _wished(body: Body) -> bool:
    verify = (body.get("spec") or {}).get("verify")
    return isinstance(verify, Mapping) and verify.get("enabled") is True


def _annotation(body: Body, name: str) -> str:
    return str((body["metadata"].get("annotations") or {}).get(name, ""))


def _counts(text: str) -> Mapping[str, int]:
    try:
        return {str(name): int(count) for name, count in json.loads(text or "{}").items()}
    except (ValueError, AttributeError, TypeError):
        return {}
