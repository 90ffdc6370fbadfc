"""A memory budget as status keeps it, and back."""

from shipfitter.api.model_deployment_status import BudgetStatus
from shipfitter.core.budget import Budget, Estimate


def budget_record(budget: Budget) -> BudgetStatus:
    """The budget's parts; the cache's interval as distances from its point.

    Engines that took less than was predicted can leave less than nothing for the overhead; what is
    missing there is then taken off the next part, so that the sum stays right.
    """
    cache, outside = budget.kv_cache_bytes, budget.outside_bytes
    overhead_bytes, activation_bytes, cuda_graph_bytes, weights_bytes = _at_least_nothing(
        budget.overhead_bytes,
        budget.activation_bytes,
        budget.cuda_graph_bytes,
        budget.weights_bytes,
    )
    return BudgetStatus(
        total_bytes=budget.total_bytes,
        requested_bytes=budget.requested_bytes,
        weights_bytes=weights_bytes,
        activation_bytes=activation_bytes,
        cuda_graph_bytes=cuda_graph_bytes,
        overhead_bytes=overhead_bytes,
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


def _at_least_nothing(*parts: int) -> tuple[int, ...]:
    """Parts with the same sum and none below zero, as far as those that follow can pay.

    >>> _at_least_nothing(-5, 3, 10)
    (0, 0, 8)
    """
    paid, debt = [], 0
    for part in parts:
        paid.append(max(0, part + debt))
        debt = min(0, part + debt)
    return tuple(paid)


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
