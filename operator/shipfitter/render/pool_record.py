"""A pool as a plan keeps it: what it promised and how it is selected, not who is in it."""

from shipfitter.api.model_deployment_status import PoolStatus, TaintStatus, VariantStatus
from shipfitter.core.inventory import CapacitySource, Pool, Taint


def pool_record(pool: Pool) -> PoolStatus:
    """The parts of a pool that the rest of the record does not hold; usual values are left out."""
    capability = pool.compute_capability
    return PoolStatus(
        selector=dict(sorted(pool.selector.items())),
        selector_is_exact=None if pool.selector_is_exact else False,
        taints=tuple(
            TaintStatus(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in pool.taints
        ),
        resource_name=pool.resource_name,
        gpus_per_node=pool.gpus_per_node,
        nominal_bytes=pool.nominal_bytes,
        total_bytes=pool.total_bytes,
        foreign_used_bytes=pool.foreign_used_bytes or None,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        sharing=None if pool.sharing == "none" else pool.sharing,
        replicas_per_gpu=None if pool.replicas_per_gpu == 1 else pool.replicas_per_gpu,
        mig_profile=pool.mig_profile or None,
        host_memory_bytes=pool.host_memory_bytes or None,
        nvlink=pool.nvlink or None,
        other_products=pool.other_products,
        unified=pool.unified or None,
    )


def read_pool(variant: VariantStatus) -> Pool:
    """The pool of a recorded variant, without its nodes."""
    kept = variant.placement or PoolStatus()
    return Pool(
        name=variant.pool,
        product=variant.gpu_product,
        gpus_per_node=kept.gpus_per_node or variant.gpus_per_replica,
        total_bytes=kept.total_bytes or variant.budget.total_bytes,
        nominal_bytes=kept.nominal_bytes or 0,
        foreign_used_bytes=kept.foreign_used_bytes or 0,
        compute_capability=_capability(kept.compute_capability),
        selector=kept.selector or {},
        selector_is_exact=kept.selector_is_exact is not False,
        taints=tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in kept.taints),
        source=CapacitySource(variant.capacity_source),
        sharing=kept.sharing or "none",
        replicas_per_gpu=kept.replicas_per_gpu or 1,
        mig_profile=kept.mig_profile or "",
        resource_name=kept.resource_name or "nvidia.com/gpu",
        host_memory_bytes=kept.host_memory_bytes or 0,
        nvlink=bool(kept.nvlink),
        other_products=kept.other_products,
        unified=bool(kept.unified),
    )


def _capability(text: str | None) -> tuple[int, int] | None:
    if not text:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)
