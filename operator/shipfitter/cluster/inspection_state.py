"""What a Job that reads a model says: by its pods' last words, and by what keeps them waiting."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shipfitter.cluster.kinds import OWNER_LABEL
from shipfitter.core.endings import KILLED, ended_with
from shipfitter.core.facts import ModelFacts
from shipfitter.core.inspected import is_packed, unpacked
from shipfitter.errors import InspectionFailedError, UserError
from shipfitter.render.inspection_job import COMPONENT_LABEL, CONTAINER

PULLING = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName")
WAYS = "or write the model's facts into spec.model.facts"

log = logging.getLogger(__name__)
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnJob:
    """A Job of ours: whose it is, and how far."""

    namespace: str
    name: str
    uid: str
    owner: str
    component: str  # what it is for
    progress: tuple[Any, ...]  # counts and conditions: what makes a look worth while


def own_job(raw: Body) -> OwnJob:
    """A Job that carries our label."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    return OwnJob(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        owner=(metadata.get("labels") or {}).get(OWNER_LABEL, ""),
        component=(metadata.get("labels") or {}).get(COMPONENT_LABEL, ""),
        progress=(
            *(int(status.get(name) or 0) for name in ("active", "ready", "succeeded", "failed")),
            *((each["type"], each["status"]) for each in status.get("conditions") or ()),
        ),
    )


def answer(
    uri: str, job: Body, pods: Sequence[Body], trouble: str
) -> ModelFacts | UserError | None:
    """What the Job found; None while it may still find something.

    `trouble` is what kept its pod waiting when it was last seen.
    """
    for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp"))):
        ended = ended_state(pod, CONTAINER)
        if ended is not None:
            return _last_words(uri, ended)
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Failed", "Complete"):
            return _never_spoke(uri, job, str(condition.get("reason") or ""), trouble)
    return None


def ended_state(pod: Body, container: str) -> Body | None:
    """How our container ended; others may have been added to the pod, and may never end."""
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if each["name"] == container:
            ended: Body | None = (each.get("state") or {}).get("terminated")
            return ended
    return None


def _last_words(uri: str, ended: Body) -> ModelFacts | UserError:
    code, words = int(ended.get("exitCode") or 0), str(ended.get("message") or "").strip()
    if code == 0 and is_packed(words):
        return _facts(uri, words)
    if ended.get("reason") == "OOMKilled":
        return InspectionFailedError(f"{uri}: the Job that reads it has not enough memory; {WAYS}")
    if code == KILLED:
        return InspectionFailedError(f"{uri}: the Job that reads it was killed; a new one follows")
    if code == 0 or not words:
        return InspectionFailedError(
            f"{uri}: the Job that reads it ended with exit code {code} and no word; {WAYS}"
        )
    return ended_with(code, words)


def _facts(uri: str, words: str) -> ModelFacts | UserError:
    try:
        return unpacked(words)
    except UserError as error:
        return error
    except Exception as error:  # whoever may run pods in that namespace can write anything
        log.warning("model %s: what its Job told cannot be used", uri, exc_info=True)
        return InspectionFailedError(
            f"{uri}: what the Job found of it cannot be used ({type(error).__name__}: {error})"
        )


def _never_spoke(uri: str, job: Body, reason: str, trouble: str) -> UserError:
    name = job["metadata"]["name"]
    if reason == "DeadlineExceeded":
        seconds = job["spec"].get("activeDeadlineSeconds")
        why = trouble or f"its pod could not be made or did not end (kubectl describe job {name})"
        return InspectionFailedError(
            f"{uri}: out of time: the Job that reads it had no answer within {seconds} s: {why}; "
            f"mend that, {WAYS}"
        )
    return InspectionFailedError(
        f"{uri}: the Job that reads it lost its pod before it had an answer; a new one follows"
    )


def waiting_for(pods: Iterable[Body]) -> str:
    """What keeps the Job's pod from starting, in words that do not change by themselves."""
    for pod in pods:
        status = pod.get("status") or {}
        for each in status.get("containerStatuses") or ():
            waiting = (each.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in PULLING:
                return (
                    f"its image {each.get('image')} cannot be pulled; name a Secret for the "
                    "registry in spec.imagePullSecrets"
                )
            if waiting.get("reason") == "CreateContainerConfigError":
                return f"its pod cannot be started: {waiting.get('message')}"
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return f"no node takes its pod (kubectl describe pod {pod['metadata']['name']})"
    return ""
