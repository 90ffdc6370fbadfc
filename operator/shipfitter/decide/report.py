"""Status from what was decided and seen; nothing in it changes while the world does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.core.engines import EngineVersion, derived_max_model_len
from shipfitter.core.model import ModelFacts
from shipfitter.core.token_bytes import kv_bytes_per_token
from shipfitter.decide.groups import words_of_gone
from shipfitter.decide.prior import Prior
from shipfitter.decide.world import LivePod, World
from shipfitter.errors import InspectingError
from shipfitter.status.availability import NOTHING_BESIDE, Beside, available, ready, trouble
from shipfitter.status.conditions import Condition, merged
from shipfitter.status.summary import summary

KEPT = ("model", "engine", "lastGoodPlan", "observed", "verify")  # while nothing is decided
SELECTOR = "shipfitter.dev/modeldeployment={name},shipfitter.dev/serves=true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What goes into status."""

    body: Mapping[str, Any]
    world: World
    prior: Prior
    plan_record: Mapping[str, Any] | None
    conditions: tuple[Condition, ...]
    facts: ModelFacts | None = None
    uri: str = ""
    engine_image: str = ""
    engine_version: str = ""
    variants: tuple[str, ...] = ()  # that should serve
    rolling: bool = False  # pods of theirs are not yet those of the plan
    recovery: Mapping[str, Any] | None = None
    observed: tuple[Mapping[str, Any], ...] = ()
    verify: Mapping[str, Any] | None = None
    beside: Beside = NOTHING_BESIDE


def status_of(report: Report) -> dict[str, Any]:
    """The whole status to store."""
    spec = report.body.get("spec", {})
    replicas = int(spec.get("replicas", 1))
    serving = tuple(pod for pod in report.world.pods if not pod.terminating)
    ready_replicas = sum(pod.ready for pod in serving)
    generation = int(report.body.get("metadata", {}).get("generation", 1))
    prior = report.prior.status
    status: dict[str, Any] = {key: prior[key] for key in KEPT if key in prior}
    if report.facts is not None:
        status["model"] = _model(report.uri, report.facts, report.engine_version)
        status["engine"] = {"image": report.engine_image, "version": report.engine_version}
        status.pop("observed", None)
        status.pop("verify", None)
        if report.verify:
            status["verify"] = dict(report.verify)
        if report.observed:
            status["observed"] = [dict(entry) for entry in report.observed]
        if report.recovery:
            status["recovery"] = dict(report.recovery)
    elif "recovery" in prior:
        status["recovery"] = prior["recovery"]
    if report.plan_record is not None:
        status["plan"] = report.plan_record
    planned = report.plan_record is not None
    conditions = _conditions(report, serving, replicas, planned=planned)
    uri = report.uri or str(spec.get("model", {}).get("uri", ""))
    status |= {
        "observedGeneration": generation,
        "conditions": merged(
            report.prior.conditions,
            conditions,
            generation=generation,
            now_seconds=report.world.now_seconds,
        ),
        "summary": summary(
            uri=uri, plan=report.plan_record, ready_replicas=ready_replicas, replicas=replicas
        ),
        "replicas": sum(pod.serves for pod in serving),
        "readyReplicas": ready_replicas,
        "selector": SELECTOR.format(name=_name(report.body)),
    }
    served = ready_replicas >= replicas > 0 and _only(report.variants, serving)
    if planned and served and not report.rolling:  # else earlier pods serve, not this plan's
        status["lastGoodPlan"] = report.plan_record
    return status


def _name(body: Mapping[str, Any]) -> str:
    return str(body.get("metadata", {}).get("name", ""))


def _only(variants: tuple[str, ...], pods: tuple[LivePod, ...]) -> bool:
    return bool(variants) and all(pod.variant in variants for pod in pods)


def _conditions(
    report: Report, pods: tuple[LivePod, ...], replicas: int, *, planned: bool
) -> list[Condition]:
    conditions = list(report.conditions)
    if planned:
        current = [pod for pod in pods if pod.variant in report.variants or not report.variants]
        current += words_of_gone(report.world)
        serving = [pod for pod in pods if pod.ready]
        shown = (
            serving
            if len(serving) >= replicas
            else current + [pod for pod in serving if pod not in current]
        )
        conditions.append(
            available(
                shown,
                replicas,
                gpus=_gpus(report),
                startup="the engine is loading the model",
                beside=report.beside,
            )
        )
    summary_condition = ready(conditions)
    reading = not planned and summary_condition.reason == InspectingError.reason
    blocked = not summary_condition.status and not planned and not reading
    if reading:
        conditions.append(Condition("Reconciling", True, summary_condition.reason))
    else:
        conditions.append(_rollout(report, pods, serves=summary_condition.status, planned=planned))
    conditions.append(
        Condition("Stalled", blocked, summary_condition.reason if blocked else "Settled")
    )
    return [summary_condition, *conditions]


def _rollout(
    report: Report, pods: tuple[LivePod, ...], *, serves: bool, planned: bool
) -> Condition:
    """Whether the plan is on its way to the pods, and what is in its way while others serve."""
    moving = report.rolling or (bool(report.variants) and not _only(report.variants, pods))
    if not planned or (serves and not moving):
        return Condition("Reconciling", False, "Settled")
    fresh = [pod for pod in pods if pod.variant in report.variants and not pod.ready]
    found = trouble(fresh, _gpus(report), report.beside) if serves else None
    if found is None:
        return Condition("Reconciling", True, "RollingOut")
    return Condition("Reconciling", True, found[0], f"earlier pods serve; {found[1]}")


def _gpus(report: Report) -> dict[str, str]:
    """What a pod of each variant waits for."""
    variants = (report.plan_record or {}).get("variants") or ()
    return {
        str(
            each.get("name")
        ): f"{_each(each)} × {each.get('gpuProduct')} in pool {each.get('pool')}"
        for each in variants
    }


def _each(variant: Mapping[str, Any]) -> int:
    """GPUs of one pod."""
    return int(variant.get("gpusPerReplica", 1)) // int(variant.get("nodesPerReplica", 1))


def _model(uri: str, facts: ModelFacts, version: str) -> dict[str, Any]:
    native = derived_max_model_len(facts, EngineVersion.parse(version))
    model = {
        "nativeMaxModelLen": native,
        "uri": uri,
        "architecture": facts.architecture,
        "weightsBytes": facts.checkpoint_bytes,
        "kvBytesPerToken": kv_bytes_per_token(facts),
        "quantization": facts.quantization.method if facts.quantization else "none",
    }
    return model | ({"revision": facts.revision} if facts.revision else {})
