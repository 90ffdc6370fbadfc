"""Verify: once for each plan that is rolled out, a load test; what it showed is kept in status."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.engine_log import EngineRefusal, read_last_words
from shipfitter.core.engines import EngineVersion
from shipfitter.core.refusals import Refusal
from shipfitter.decide.world import Delete, World
from shipfitter.render.load_size import Load, load_of, plan_hash
from shipfitter.render.verify_job import BENCH_FROM, verify_job, verify_job_name
from shipfitter.status.conditions import Condition, timestamp
from shipfitter.status.engine_words import spoken
from shipfitter.status.load_test import LoadTest
from shipfitter.status.pods import LivePod

LOOK_SECONDS = 15.0  # while it runs; its end is heard sooner
_LAST_WORDS = 1024
MOST_NAMED = 500  # pods that a Job's annotation names
_TAKEN = "an engine was taken away meanwhile (scaled down, drained, replaced): nothing is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What to store and say of the load test, and which Jobs to make and delete."""

    record: Mapping[str, Any] | None = None  # status.verify
    condition: Condition | None = None
    start: Mapping[str, Any] | None = None  # a Job to make
    deletes: tuple[Delete, ...] = ()
    look_again_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The plan in force, and how far it is."""

    record: Mapping[str, Any] | None
    rolling: bool
    image: str
    version: EngineVersion
    typical_tokens: int


def verified(
    resource: ModelDeployment, world: World, stored: Mapping[str, Any] | None, rollout: Rollout
) -> Verification:
    """The next step of verifying the plan in force; nothing where nobody asks for it."""
    if not resource.spec.verify.enabled or rollout.record is None:
        return Verification(deletes=_deletes(world.load_tests))
    if rollout.version < BENCH_FROM:
        said = f"vLLM {rollout.version} has no load test that runs without a GPU"
        told = Condition("Verified", False, "VerifyUnsupported", said)
        return Verification(condition=told, deletes=_deletes(world.load_tests))
    digest = plan_hash(rollout.record)
    test = next((each for each in world.load_tests if each.plan_hash == digest), None)
    if stored and stored.get("planHash") == digest:
        found = _judged_before(stored, test)
    elif test is not None and test.going:  # of an earlier wish: first it must be gone
        told = Condition("Verified", False, "Verifying", f"Job {test.name} is being removed")
        found = Verification(condition=told, look_again_seconds=1.0)
    elif test is not None:
        found = _seen(test, digest, world, rollout.record)
    else:
        found = _before(resource, world, rollout, digest)
    others = tuple(each for each in world.load_tests if each is not test)
    return replace(found, deletes=(*_deletes(others), *found.deletes))


def _judged_before(stored: Mapping[str, Any], test: LoadTest | None) -> Verification:
    """A Job that failed stays for a look at its log, until its time to live ends."""
    over = (test,) if test is not None and (test.succeeded or test.running) else ()
    return Verification(record=stored, condition=_judged(stored), deletes=_deletes(over))


def _seen(test: LoadTest, digest: str, world: World, record: Mapping[str, Any]) -> Verification:
    died = _died(world.pods, record, test)
    if test.running and died is None:
        return Verification(condition=_under_way(test), look_again_seconds=LOOK_SECONDS)
    error = test.error or (_TAKEN if test.figures.get("failed") and _lost(test, world) else "")
    found = {
        "planHash": digest,
        "at": timestamp(world.now_seconds),
        **test.load,
        **test.figures,
        **({"engineError": spoken(died)[:_LAST_WORDS] or "it ended"} if died else {}),
        **({"error": error[:_LAST_WORDS]} if error and not died else {}),
    }
    # Look again for the Job: it goes once this is stored.
    return Verification(record=found, condition=_judged(found), look_again_seconds=1.0)


def _lost(test: LoadTest, world: World) -> bool:
    """Whether an engine that was there at the beginning is not there any more."""
    staying = {pod.name for pod in world.pods if not pod.terminating}
    return bool(set(test.restarts) - staying)


def under_load(
    refusal: EngineRefusal | None,
    world: World,
    record: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
) -> EngineRefusal | None:
    """What an engine of this plan refused; one that died under the load test counts as such.

    An engine that serves ten requests and dies of a hundred has too little memory, whatever it says
    in the end. Where it named its cause, that holds.
    """
    if refusal is not None and refusal.kind is not Refusal.OTHER:
        return refusal
    digest = plan_hash(record)
    test = next((each for each in world.load_tests if each.plan_hash == digest), None)
    words = ""
    if stored and stored.get("planHash") == digest:
        words = str(stored.get("engineError") or "")
    elif test is not None:
        died = _died(world.pods, record, test)
        if died is not None and died.kind is not Refusal.OTHER:
            return died
        words = spoken(died) or "it ended under load" if died else ""
    if not words:
        return refusal
    return EngineRefusal(kind=Refusal.OUT_OF_MEMORY_SERVING, message=words)


def _died(
    pods: tuple[LivePod, ...], record: Mapping[str, Any], test: LoadTest
) -> EngineRefusal | None:
    """The last words of an engine that ended badly since the load began, even if it serves again.

    Want of the node's own memory, drivers and the like are told by the pod's conditions; no smaller
    plan mends them.
    """
    names = {each.get("name") for each in record.get("variants") or ()}
    for pod in pods:
        ended_anew = pod.broken or pod.restarts > test.restarts.get(pod.name, 0)
        if pod.variant not in names or pod.terminating or not ended_anew:
            continue
        if pod.exit_code in (None, 0):
            continue
        refusal = read_last_words(pod.termination_message, pod.exit_code, pod.ended_reason)
        if refusal is not None and (refusal.is_memory or refusal.kind is Refusal.OTHER):
            return refusal
    return None


def _before(resource: ModelDeployment, world: World, rollout: Rollout, digest: str) -> Verification:
    """A test is made once all replicas of this plan serve, and no others do."""
    assert rollout.record is not None
    names = {each.get("name") for each in rollout.record.get("variants") or ()}
    live = [pod for pod in world.pods if not pod.terminating]
    ready = [pod for pod in live if pod.ready and pod.variant in names]
    wanted = resource.spec.replicas
    if rollout.rolling or not 0 < wanted <= len(ready) or len(ready) < len(live):
        said = "the plan is put under load once all replicas of it serve"
        return Verification(condition=Condition("Verified", False, "Verifying", said))
    load = _load(rollout, ready)
    job = verify_job(
        resource,
        load,
        digest,
        image=rollout.image,
        model_uri=str(rollout.record["variants"][0]["modelUri"]),
        addresses=[pod.address for pod in ready if pod.address],
        restarts={pod.name: pod.restarts for pod in ready[:MOST_NAMED]},
        cluster_domain=world.settings.cluster_domain,
        hub_endpoint=world.settings.hub_endpoint,
    )
    test = LoadTest(name=verify_job_name(resource, digest), load=load.record())
    return Verification(condition=_under_way(test), start=job, look_again_seconds=LOOK_SECONDS)


def _load(rollout: Rollout, ready: list[LivePod]) -> Load:
    """As many requests as the engines that serve take at once, of typical length."""
    assert rollout.record is not None
    variants = rollout.record["variants"]
    sequences = {each["name"]: int(each["maxNumSeqs"]) for each in variants}
    return load_of(
        rollout.typical_tokens,
        min(int(each["maxModelLen"]) for each in variants),
        sum(sequences[pod.variant] for pod in ready),
    )


def _under_way(test: LoadTest) -> Condition:
    trouble = f"; {test.trouble}" if test.trouble else ""
    said = f"Job {test.name} puts the engines under load: {_size(test.load)}{trouble}"
    return Condition("Verified", False, "Verifying", said)


def _size(load: Mapping[str, Any]) -> str:
    at_once, prompt, answer = (
        int(load.get(name) or 0) for name in ("atOnce", "inputTokens", "outputTokens")
    )
    return f"{at_once:,} requests at once of {prompt:,} + {answer:,} tokens"


def _judged(record: Mapping[str, Any]) -> Condition:
    """The condition that a stored test stands for."""
    if record.get("engineError"):
        said = f"under load an engine died: {record['engineError']}"
        return Condition("Verified", False, "LoadFailed", said)
    if record.get("error"):
        return Condition("Verified", False, "VerifyFailed", str(record["error"]))
    sent, failed = int(record.get("requests") or 0), int(record.get("failed") or 0)
    if failed or not sent:
        said = f"{failed:,} of {sent:,} requests failed; {_shape(record)}"
        return Condition("Verified", False, "LoadFailed", said)
    return Condition("Verified", True, "Verified", f"{sent:,} answered; {_shape(record)}")


def _shape(record: Mapping[str, Any]) -> str:
    parts = [_size(record)]
    if (speed := record.get("outputTokensPerSecond")) is not None:
        parts.append(f"{float(speed):,.0f} tokens/s")
    if (first := record.get("meanFirstTokenMilliseconds")) is not None:
        parts.append(f"first token after {float(first):,.0f} ms")
    if (put_back := record.get("preemptions")) is not None:
        parts.append(f"{int(put_back):,} preemptions")
    return ", ".join(parts)


def _deletes(tests: tuple[LoadTest, ...]) -> tuple[Delete, ...]:
    return tuple(
        Delete(api_version="batch/v1", kind="Job", name=test.name, uid=test.uid)
        for test in tests
        if test.uid and not test.going
    )
