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

from shipfitter.api.inline_facts import inline_model_facts
from shipfitter.api.model_source import canonical_uri, hub_repository
from shipfitter.cluster.backoff import Backoff
from shipfitter.cluster.kept_facts import KeptFacts, ModelKey
from shipfitter.cluster.queue import Key
from shipfitter.core.model import ModelFacts
from shipfitter.errors import HubUnavailableError, InvalidSpecError, UserError

FETCH_SECONDS = 30.0
SHARED_SECONDS = 600.0  # how long a branch resolved for one deployment is good for another
FIRST_RETRY_SECONDS = 10.0
MOST_RETRY_SECONDS = 300.0
FETCHES_AT_ONCE = 4

ON_A_CLAIM = (
    "spec.model.uri: {uri} is on a claim, which the operator cannot read; "
    "write what sizing needs into spec.model.facts (config and weightsBytes)"
)

log = logging.getLogger(__name__)
Found = ModelFacts | UserError


class Fetch(Protocol):
    """The hub's door, as we call it."""

    def __call__(
        self, uri: str, *, revision: str | None, endpoint: str | None, timeout_seconds: float
    ) -> ModelFacts:
        """The facts of a model; a UserError where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The models of one deployment as far as they are known."""

    models: Mapping[str, Found]
    pending: bool  # a first answer is still to come; the key is woken then
    retry_after_seconds: float | None = None  # a failure will be tried again then


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
        on_news: Callable[[Key], None] = lambda key: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept = kept
        self._fetch = fetch
        self._endpoint = endpoint or None
        self._on_news = on_news
        self._clock = clock
        self._lock = threading.Lock()
        self._questions: dict[ModelKey, _Question] = {}
        self._inline: dict[Key, tuple[Any, dict[str, Found]]] = {}
        self._slots = threading.BoundedSemaphore(FETCHES_AT_ONCE)

    def resolve(self, key: Key, body: Mapping[str, Any]) -> Resolved:
        """What is known now of the model and its alternatives; unknown ones are asked for."""
        models: dict[str, Found] = {}
        pending, retries = False, []
        for choice in _choices(body):
            uri, revision = canonical_uri(choice["uri"]), str(choice.get("revision") or "")
            if choice.get("facts") is not None:
                models[uri] = self._inline_facts(key, body, uri, choice["facts"])
                continue
            known: Found | None = self._kept.facts(body, (uri, revision))
            if known is None and hub_repository(uri) is None:
                known = InvalidSpecError((ON_A_CLAIM.format(uri=uri),))
            elif known is None:
                known, retry_at = self._ask(key, body, (uri, revision))
                retries += [retry_at] if isinstance(known, UserError) else []
                pending |= known is None
            if known is not None:
                models[uri] = known
        self._kept.save(body)
        wait = max(0.5, min(retries) - self._clock()) if retries else None
        return Resolved(models=models, pending=pending, retry_after_seconds=wait)

    def forget(self, key: Key) -> None:
        """The deployment is gone."""
        with self._lock:
            for question in self._questions.values():
                question.waiting.discard(key)
            self._inline.pop(key, None)
        self._kept.forget(key)

    def _inline_facts(self, key: Key, body: Mapping[str, Any], uri: str, facts: Any) -> Found:
        """Facts that the user wrote out; computed once for each version of the spec."""
        metadata = body["metadata"]
        version = (metadata.get("uid"), metadata.get("generation"))
        with self._lock:
            known_version, found = self._inline.get(key, (None, {}))
            if known_version != version:
                self._inline[key] = (version, found := {})
        if uri not in found:
            found[uri] = _inline(uri, facts)
        return found[uri]

    def _ask(
        self, key: Key, body: Mapping[str, Any], model: ModelKey
    ) -> tuple[Found | None, float]:
        uri, revision = model
        wanted = (uri, self._kept.commit(body, model) or pinned_revision(body, uri) or revision)
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

    def _answer(self, model: ModelKey, question: _Question) -> None:
        uri, revision = model
        found: Found
        with self._slots:
            try:
                found = self._fetch(
                    uri,
                    revision=revision or None,
                    endpoint=self._endpoint,
                    timeout_seconds=FETCH_SECONDS,
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


def pinned_revision(body: Mapping[str, Any], uri: str) -> str:
    """The commit this spec already runs, where only the status still knows it."""
    status = body.get("status") or {}
    if status.get("observedGeneration") != body["metadata"].get("generation"):
        return ""  # the spec changed since: it may ask for another revision
    variants = (status.get("plan") or {}).get("variants") or ()
    if not any(each.get("modelUri") == uri for each in variants):
        return ""
    return str((status.get("model") or {}).get("revision") or "")


def _choices(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The model and its alternatives as written; what is malformed is for the parser to report."""
    model = (body.get("spec") or {}).get("model")
    if not isinstance(model, Mapping):
        return []
    alternatives = model.get("alternatives")
    listed = [model, *(alternatives if isinstance(alternatives, list) else [])]
    return [
        each for each in listed if isinstance(each, Mapping) and isinstance(each.get("uri"), str)
    ]


def _inline(uri: str, facts: Any) -> Found:
    """Facts that the user wrote out."""
    try:
        return inline_model_facts(uri, facts)
    except UserError as error:
        return error
