"""A plan as status.plan and the workload's annotation keep it, and back."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from shipfitter.api.engine_version import engine_version
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_deployment_status import (
    AlternativeStatus,
    FrontierStatus,
    PlanStatus,
    VariantStatus,
)
from shipfitter.core.model import ModelFacts
from shipfitter.core.plan import (
    Alternative,
    FrontierPoint,
    ModelChoice,
    Plan,
    Sizing,
    VariantPlan,
)
from shipfitter.errors import UnknownEngineError
from shipfitter.render.budget_record import budget_record, read_budget
from shipfitter.render.inputs import inputs_hash
from shipfitter.render.pool_record import pool_record, read_pool
from shipfitter.render.settings_record import read_settings, settings_record
from shipfitter.render.variant import nodes_per_replica, variant_name

__all__ = ["engine_version", "inputs_hash", "plan_record", "read_plan", "variant_record"]

MOST_ALTERNATIVES = 3
MOST_FRONTIER_POINTS = 8


def plan_record(
    resource: ModelDeployment,
    plan: Plan,
    *,
    inputs_hash: str,
    decided_at: str,
    reason: str = "",
) -> dict[str, Any]:
    """The plan as status.plan, in the names and bounds of the API."""
    record = PlanStatus(
        variants=tuple(variant_record(resource, variant) for variant in plan.variants),
        alternatives=tuple(
            AlternativeStatus(summary=_line(each.summary), would_allow=_line(each.would_allow))
            for each in plan.alternatives[:MOST_ALTERNATIVES]
        ),
        frontier=tuple(
            FrontierStatus(max_model_len=point.max_model_len, max_num_seqs=point.max_num_seqs)
            for point in plan.frontier[:MOST_FRONTIER_POINTS]
        ),
        inputs_hash=inputs_hash,
        decided_at=decided_at,
        reason=reason or None,
        why=plan.why or None,
    )
    written: dict[str, Any] = record.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return written


def _line(text: str) -> str:
    return text[:1024]


def variant_record(resource: ModelDeployment, variant: VariantPlan) -> VariantStatus:
    """One variant with its numbers and the budget that proves them."""
    sizing = variant.sizing
    allocation = resource.spec.gpus.allocation
    return VariantStatus(
        name=variant_name(resource.metadata.name, sizing, allocation=allocation),
        pool=sizing.pool.name,
        gpu_product=sizing.pool.product,
        gpus_per_replica=sizing.gpus_per_replica,
        nodes_per_replica=nodes_per_replica(sizing),
        replicas=variant.replicas,
        model_uri=sizing.model.uri,
        model_revision=sizing.model.facts.revision or None,
        verdict=sizing.verdict,
        budget=budget_record(sizing.budget),
        kv_cache_tokens=sizing.kv_cache_tokens,
        num_gpu_blocks=sizing.num_gpu_blocks,
        max_concurrency=round(sizing.max_concurrency, 2),
        running_at_typical=sizing.running_at_typical,
        one_request_share=round(sizing.one_request_share, 4),
        native_max_model_len=sizing.native_len,
        preferred_reached=sizing.preferred_reached,
        capacity_source=str(sizing.pool.source),
        limited_by=_line(sizing.limited_by),
        calibrated_observations=sizing.calibrated_observations or None,
        allocation=str(allocation),
        placement=pool_record(sizing.pool),
        **settings_record(sizing.settings),
    )


def read_plan(record: Mapping[str, Any] | None, models: Mapping[str, ModelFacts]) -> Plan | None:
    """The plan of a record; None where there is none, or it names a model or engine we lack."""
    if not record:
        return None
    try:
        status = PlanStatus.model_validate(record, by_alias=True, by_name=False, extra="ignore")
        decided = str(status.decided_at or "")
        variants = tuple(_read_variant(each, models, decided) for each in status.variants)
    except (ValidationError, UnknownEngineError, KeyError, ValueError):
        return None
    if not variants:
        return None
    return Plan(
        variants=variants,
        alternatives=tuple(Alternative(a.summary, a.would_allow) for a in status.alternatives),
        frontier=tuple(FrontierPoint(p.max_model_len, p.max_num_seqs) for p in status.frontier),
        why=status.why or "",
    )


def _read_variant(
    record: VariantStatus, models: Mapping[str, ModelFacts], decided_at: str
) -> VariantPlan:
    sizing = Sizing(
        pool=read_pool(record),
        model=ModelChoice(uri=record.model_uri, facts=models[record.model_uri]),
        settings=read_settings(record),
        budget=read_budget(record.budget),
        verdict=record.verdict,
        kv_cache_tokens=record.kv_cache_tokens,
        num_gpu_blocks=record.num_gpu_blocks or 0,
        max_concurrency=record.max_concurrency,
        running_at_typical=record.running_at_typical,
        limited_by=record.limited_by,
        one_request_share=record.one_request_share or 0.0,
        native_len=record.native_max_model_len or record.max_model_len,
        preferred_reached=record.preferred_reached or 0,
        calibrated_observations=record.calibrated_observations or 0,
    )
    return VariantPlan(
        sizing=sizing, replicas=record.replicas, decided_at=str(record.decided_at or decided_at)
    )
