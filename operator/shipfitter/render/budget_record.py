"""A memory budget as status keeps it, and back."""

from shipfitter.api.model_deployment_status import BudgetStatus
from shipfitter.core.budget import Budget, Estimate


def budget_record(budget: Budget) -> BudgetStatus:
    """The budget's parts; the cache's interval as distances from its point."""
    cache, outside = budget.kv_cache_bytes, budget.outside_bytes
    return BudgetStatus(
        total_bytes=budget.total_bytes,
        requested_bytes=budget.requested_bytes,
        weights_bytes=budget.weights_bytes,
        activation_bytes=budget.activation_bytes,
        cuda_graph_bytes=budget.cuda_graph_bytes,
        overhead_bytes=budget.overhead_bytes,
        kv_cache_bytes=cache.point,
        not_requested_bytes=budget.not_requested_bytes,
        margin_bytes=cache.point - cache.low,
        upside_bytes=cache.high - cache.point,
        uncharged_cuda_graph_bytes=budget.uncharged_cuda_graph_bytes,
        outside_bytes=outside.point,
        outside_low_bytes=outside.low,
        outside_high_bytes=outside.high,
        load_peak_bytes=budget.load_peak_bytes,
    )


def read_budget(record: BudgetStatus) -> Budget:
    """The budget; what an older release did not record is nothing."""
    cache, outside = record.kv_cache_bytes, record.outside_bytes or 0
    return Budget(
        total_bytes=record.total_bytes,
        requested_bytes=record.requested_bytes,
        weights_bytes=record.weights_bytes,
        overhead_bytes=record.overhead_bytes,
        activation_bytes=record.activation_bytes,
        cuda_graph_bytes=record.cuda_graph_bytes,
        kv_cache_bytes=Estimate(
            low=cache - record.margin_bytes,
            point=cache,
            high=cache + (record.upside_bytes or 0),
        ),
        not_requested_bytes=record.not_requested_bytes,
        uncharged_cuda_graph_bytes=record.uncharged_cuda_graph_bytes or 0,
        outside_bytes=Estimate(
            low=outside if record.outside_low_bytes is None else record.outside_low_bytes,
            point=outside,
            high=outside if record.outside_high_bytes is None else record.outside_high_bytes,
        ),
        load_peak_bytes=record.load_peak_bytes or 0,
    )
