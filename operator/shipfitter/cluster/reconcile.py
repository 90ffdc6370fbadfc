"""One pass over one ModelDeployment: read, observe, decide, apply."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shipfitter.cluster.apply import Applier
from shipfitter.cluster.client import Client
from shipfitter.cluster.events import EventPoster
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import MODEL_DEPLOYMENT
from shipfitter.cluster.model_facts import ModelCache
from shipfitter.cluster.observe import Observer
from shipfitter.cluster.queue import Key
from shipfitter.decide.world import Notice, Outcome, World
from shipfitter.status.apply_refused import NAME_TAKEN, REASON, with_refusal

Decide = Callable[[Mapping[str, Any], World], Outcome]

PENDING_SECONDS = 60.0  # a model's answer wakes its key; this is for the case that it cannot

log = logging.getLogger(__name__)


class GoneError(Exception):
    """The ModelDeployment exists no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """How one look went."""

    again_after_seconds: float | None = None  # None: the steady round is soon enough
    changed: bool = False  # something was written


@dataclass(slots=True, kw_only=True)
class Reconciler:
    """Makes the cluster agree with one ModelDeployment at a time."""

    client: Client
    observer: Observer
    models: ModelCache
    applier: Applier
    events: EventPoster
    decide: Decide
    # One decides at a time, and what it decided counts from then on: no two count the same GPU.
    planning: threading.Lock = field(default_factory=threading.Lock)

    def reconcile(self, key: Key) -> Pass:
        """The cluster agrees with the deployment, as far as it can now.

        Raises GoneError where there is nothing to reconcile, ApiError where the cluster refuses.
        """
        body = self.client.read(MODEL_DEPLOYMENT, key.namespace, key.name)
        if body is None:
            raise GoneError
        if "deletionTimestamp" in body["metadata"]:
            return Pass()  # what we made goes with it, by its owner references
        resolved = self.models.resolve(key, body)
        if resolved.pending:
            self.models.keep(key, body, resolved)
            return Pass(again_after_seconds=PENDING_SECONDS)
        own = self.observer.own_state(key, body)
        with self.planning:
            outcome = self.decide(body, self.observer.world(key, own, resolved.models))
            self.observer.promise(key, own, outcome)
        changed, refused = self._apply(key, outcome)
        self.models.keep(key, body, resolved)
        if refused is not None and not refused.retryable:
            outcome = self._refused(body, outcome, refused)
        changed |= self._report(key, body, outcome)
        if self.observer.calibrations is not None:
            for update in outcome.calibrations:
                self.observer.calibrations.write(update)
        if refused is not None:
            raise refused
        self.applier.delete(key, outcome.deletes)
        retry = self._start_load_test(key, outcome)
        self.applier.set_costs(key, outcome.deletion_costs)
        looks = (outcome.requeue_after_seconds, resolved.retry_after_seconds, retry)
        again = min((seconds for seconds in looks if seconds is not None), default=None)
        return Pass(again_after_seconds=again, changed=changed or bool(outcome.deletes))

    def forget(self, key: Key) -> None:
        """The ModelDeployment is gone."""
        self.models.forget(key)
        self.applier.forget(key)
        if self.observer.verifications is not None:
            self.observer.verifications.forget(key)

    def _start_load_test(self, key: Key, outcome: Outcome) -> float | None:
        """Last of all, when the status tells of it: a refusal must not be in the way of others."""
        tests = self.observer.verifications
        if tests is None or outcome.load_test is None:
            return None
        return tests.start(key, outcome.load_test)

    def _apply(self, key: Key, outcome: Outcome) -> tuple[bool, ApiError | None]:
        """Whether something was sent, and the refusal that ended it: the status comes first."""
        try:
            return self.applier.apply(key, outcome.applies), None
        except ApiError as error:
            return True, error
        finally:
            self.observer.promises.withdraw(key)

    def _refused(self, body: Mapping[str, Any], outcome: Outcome, refused: ApiError) -> Outcome:
        """The outcome with the server's words in its status, and an Event where they are new."""
        prior = body.get("status") or {}
        reason = NAME_TAKEN if refused.reason == NAME_TAKEN else REASON
        told = Notice(type="Warning", reason=reason, message=refused.message)
        if outcome.status is None:
            return replace(outcome, notices=(told,))
        status = with_refusal(
            outcome.status,
            prior,
            words=refused.message,
            reason=reason,
            now_seconds=self.observer.now(),
        )
        changed = condition_changes(prior, status)
        news = {line.partition(":")[0].split()[2] for line in changed}
        known = reason in {each["reason"] for each in status["conditions"]} - news
        notices = [each for each in outcome.notices if each.reason in {*news, "Resized"}]
        return replace(outcome, status=status, notices=(*notices, *([] if known else [told])))

    def _report(self, key: Key, body: Mapping[str, Any], outcome: Outcome) -> bool:
        told = outcome.status is not None and self.applier.write_status(body, outcome.status)
        if told and outcome.status is not None:
            for line in condition_changes(body.get("status") or {}, outcome.status):
                log.info("%s: %s", key, line)
        for notice in outcome.notices:
            self.events.post(body, notice)
        return told


def condition_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One line for each condition that turned, or turned for another reason."""
    before = {
        each["type"]: (each["status"], each["reason"]) for each in old.get("conditions") or ()
    }
    return [
        f"{each['type']} {each['status']} {each['reason']}: {each['message']}"
        for each in new.get("conditions") or ()
        if before.get(each["type"]) != (each["status"], each["reason"])
    ]
