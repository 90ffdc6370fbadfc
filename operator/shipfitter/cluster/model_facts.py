"""What is known of each model: asked once, kept beside the ModelDeployment, never needed again.

A revision is resolved once per ModelDeployment and kept with its facts in a ConfigMap it owns, so
neither a hub that is down nor a restart changes anything. Failures are tried again by themselves.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from shipfitter.api.model_source import canonical_uri, hub_repository
from shipfitter.cluster.backoff import Backoff
from shipfitter.cluster.inspection import Inspections, Look
from shipfitter.cluster.kept_facts import KeptFacts, ModelKey
from shipfitter.cluster.model_choices import (
    choices,
    has_token,
    inline_facts,
    on_a_claim,
    pinned_revision,
)
from shipfitter.cluster.queue import Key
from shipfitter.core.model import ModelFacts
from shipfitter.errors import (
    HubUnavailableError,
    ModelHiddenError,
    TokenRequiredError,
    UserError,
)

FETCH_SECONDS = 30.0
SHARED_SECONDS = 600.0  # how long a branch resolved for one deployment is good for another
FIRST_RETRY_SECONDS = 10.0
MOST_RETRY_SECONDS = 300.0
FETCHES_AT_ONCE = 4

log = logging.getLogger(__name__)
Found = ModelFacts | UserError
Wanted = tuple[str, str, bool]  # uri, revision, and whether what we know of it will do


class Fetch(Protocol):
    """The hub's door, as we call it."""

    def __call__(
        self,
        uri: str,
        *,
        revision: str | None,
        endpoint: str | None,
        timeout_seconds: float,
        may_be_known: bool = True,
    ) -> ModelFacts:
        """The facts of a model; a UserError where there are none.

        `may_be_known`: for a gated model, what comes with Shipfitter will do.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The models of one deployment as far as they are known."""

    models: Mapping[str, Found]
    pending: bool  # a first answer is still to come; the key is woken then
    retry_after_seconds: float | None = None  # a failure will be tried again then
    looks: Mapping[str, Look] = field(default_factory=dict)  # into models only a Job can read


@dataclass(slots=True)
class _Question:
    """One (uri, revision) asked of the hub."""

    backoff: Backoff
    answer: Found | None = None
    asked: bool = False  # an answer is under way
    answered_at: float = 0.0
    retry_at: float = 0.0
    waiting: set[Key] = field(default_factory=set)


class ModelCache:
    """Facts by deployment and model."""

    def __init__(
        self,
        kept: KeptFacts,
        fetch: Fetch,
        *,
        endpoint: str = "",
        inspections: Inspections | None = None,
        on_news: Callable[[Key], None] = lambda key: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept = kept
        self._fetch = fetch
        self._endpoint = endpoint or None
        self._inspections = inspections
        self._on_news = on_news
        self._clock = clock
        self._lock = threading.Lock()
        self._questions: dict[Wanted, _Question] = {}
        self._inline: dict[Key, tuple[Any, dict[str, Found]]] = {}
        self._slots = threading.BoundedSemaphore(FETCHES_AT_ONCE)

    def resolve(self, key: Key, body: Mapping[str, Any]) -> Resolved:
        """What is known now of the model and its alternatives; unknown ones are asked for."""
        models: dict[str, Found] = {}
        pending, retries = False, []
        looks: dict[str, Look] = {}
        for choice in choices(body):
            uri, revision = canonical_uri(choice["uri"]), str(choice.get("revision") or "")
            if choice.get("facts") is not None:
                models[uri] = self._inline_facts(key, body, uri, choice["facts"])
                continue
            known: Found | None = self._kept.facts(body, (uri, revision))
            if known is None:
                known, retry_at = self._first_answer(key, body, (uri, revision))
                look = self._inspected(key, body, (uri, revision), known)
                if look is not None:
                    looks[uri] = look
                    known, retry_at = look.found, self._clock() + look.again_after_seconds
                retries += [retry_at] if isinstance(known, UserError) and retry_at else []
                pending |= known is None
            if known is not None:
                models[uri] = known
        wait = max(0.5, min(retries) - self._clock()) if retries else None
        return Resolved(models=models, pending=pending, retry_after_seconds=wait, looks=looks)

    def keep(self, key: Key, body: Mapping[str, Any], resolved: Resolved) -> None:
        """What was learnt is kept in the cluster; apart, so that no pod waits for it."""
        if self._kept.save(body) and not resolved.pending:
            self._tidy(key, resolved.models, resolved.looks)

    def forget(self, key: Key) -> None:
        """The deployment is gone."""
        with self._lock:
            for question in self._questions.values():
                question.waiting.discard(key)
            self._inline.pop(key, None)
        self._kept.forget(key)
        if self._inspections is not None:
            self._inspections.forget(key)

    def _inline_facts(self, key: Key, body: Mapping[str, Any], uri: str, facts: Any) -> Found:
        """Facts that the user wrote out; computed once for each version of the spec."""
        metadata = body["metadata"]
        version = (metadata.get("uid"), metadata.get("generation"))
        with self._lock:
            known_version, found = self._inline.get(key, (None, {}))
            if known_version != version:
                self._inline[key] = (version, found := {})
        if uri not in found:
            found[uri] = inline_facts(uri, facts)
        return found[uri]

    def _first_answer(
        self, key: Key, body: Mapping[str, Any], model: ModelKey
    ) -> tuple[Found | None, float]:
        """What the operator itself can say of a model, and when it may say something else."""
        if hub_repository(model[0]) is None:
            return on_a_claim(model[0]), 0.0
        return self._ask(key, body, model)

    def _inspected(
        self, key: Key, body: Mapping[str, Any], model: ModelKey, said: Found | None
    ) -> Look | None:
        """What a Job says of a model that only a pod can read; None for all other models."""
        if self._inspections is None:
            return None
        hidden = isinstance(said, TokenRequiredError | ModelHiddenError)
        if isinstance(said, HubUnavailableError):  # what a Job found before does not need the hub
            hidden = self._inspections.began(key)
        if hub_repository(model[0]) is not None and not (hidden and has_token(body)):
            return None
        look = self._inspections.look(key, body, model[0], self._pinned(body, model))
        if isinstance(look.found, ModelFacts):
            self._kept.keep(body, model, look.found)
        return look

    def _tidy(self, key: Key, models: Mapping[str, Found], looks: Mapping[str, Look]) -> None:
        """Only Jobs that still have something to tell stay; none goes before all have answered."""
        unknown = {uri for uri, found in models.items() if isinstance(found, UserError)}
        if self._inspections is not None and unknown <= set(looks):
            self._inspections.tidy(key, [looks[uri].job for uri in unknown])

    def _pinned(self, body: Mapping[str, Any], model: ModelKey) -> str:
        uri, revision = model
        return self._kept.commit(body, model) or pinned_revision(body, uri) or revision

    def _ask(
        self, key: Key, body: Mapping[str, Any], model: ModelKey
    ) -> tuple[Found | None, float]:
        may_be_known = self._inspections is None or not has_token(body)
        wanted = (model[0], self._pinned(body, model), may_be_known)
        with self._lock:
            question = self._questions.get(wanted)
            if question is None:
                backoff = Backoff(
                    first_seconds=FIRST_RETRY_SECONDS, most_seconds=MOST_RETRY_SECONDS
                )
                question = self._questions[wanted] = _Question(backoff)
            now, answer = self._clock(), question.answer
            if isinstance(answer, ModelFacts) and now - question.answered_at < SHARED_SECONDS:
                self._kept.keep(body, model, answer)
                return answer, 0.0
            if isinstance(answer, ModelFacts):
                question.answer = answer = None  # a branch may have moved on since
            question.waiting.add(key)
            if not question.asked and (answer is None or now >= question.retry_at):
                question.asked = True
                threading.Thread(
                    target=self._answer, args=(wanted, question), name="hub", daemon=True
                ).start()
            return answer, max(question.retry_at, now + FIRST_RETRY_SECONDS * question.asked)

    def _answer(self, wanted: Wanted, question: _Question) -> None:
        uri, revision, may_be_known = wanted
        found: Found
        with self._slots:
            try:
                found = self._fetch(
                    uri,
                    revision=revision or None,
                    endpoint=self._endpoint,
                    timeout_seconds=FETCH_SECONDS,
                    may_be_known=may_be_known,
                )
            except UserError as error:
                found = error
            except Exception as error:
                log.exception("model %s: a mistake of ours while reading it", uri)
                found = HubUnavailableError(
                    f"spec.model.uri: {uri} could not be read ({type(error).__name__}: {error}); "
                    "tried again by itself, and the operator's log has the details"
                )
        with self._lock:
            news = repr(found) != repr(question.answer)
            question.answer, question.asked = found, False
            question.answered_at = self._clock()
            if isinstance(found, UserError):
                wait = question.backoff.next_seconds()
                question.retry_at = question.answered_at + wait
                if news:
                    log.warning("model %s: %s", uri, found)
            else:
                question.backoff.reset()
                log.info("model %s: %s at %s", uri, found.architecture, found.revision or "?")
            waiting = set(question.waiting) if news else set()
            if isinstance(found, ModelFacts):
                question.waiting.clear()
        for key in waiting:
            self._on_news(key)
