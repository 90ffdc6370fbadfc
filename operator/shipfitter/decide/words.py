"""A plan in a sentence, and what is different in another."""

from shipfitter.core.plan import Plan, VariantPlan
from shipfitter.decide.resize import changes


def sentence(plan: Plan) -> str:
    """What was planned and why, in one sentence with its figures."""
    first = plan.variants[0].sizing
    if len(plan.variants) == 1:
        return (
            f"max_model_len {first.max_model_len}, max_num_seqs {first.max_num_seqs} on "
            f"{plan.why}; limited by {first.limited_by}"
        )
    replicas = sum(variant.replicas for variant in plan.variants)
    figures = ", ".join(f"{_one(each)} (max_num_seqs {_seqs(each)})" for each in plan.variants)
    return (
        f"max_model_len {first.max_model_len}, {replicas} replicas: {figures}. "
        f"First choice: {plan.why}; limited by {first.limited_by}"
    )


def _seqs(variant: VariantPlan) -> int:
    return variant.sizing.max_num_seqs


def _one(variant: VariantPlan) -> str:
    sizing = variant.sizing
    return f"{variant.replicas} on {sizing.gpus_per_replica} × {sizing.pool.product}"


def carried(plan: Plan) -> str:
    """Who carries how many: `2 on 1 × NVIDIA-L40S + 1 on 2 × NVIDIA-L4`."""
    return " + ".join(map(_one, plan.variants))


def differences(running: Plan, fresh: Plan) -> str:
    """The figures that differ, old → new, for events and reasons."""
    first = changes(running.variants[0].sizing, fresh.variants[0].sizing)
    if len(running.variants) == len(fresh.variants) == 1:
        return first
    before, after = carried(running), carried(fresh)
    spread = f"replicas {before} → {after}" if before != after else ""
    others = [
        changes(old.sizing, new.sizing)
        for old, new in zip(running.variants[1:], fresh.variants[1:], strict=False)
        if old.sizing.pool.name == new.sizing.pool.name
    ]
    same_first = running.variants[0].sizing.pool.name == fresh.variants[0].sizing.pool.name
    parts = (spread, first if same_first or not spread else "", *others)
    return ", ".join(dict.fromkeys(part for part in parts if part))


def added(plan: Plan) -> str:
    """Why a running plan has further variants now."""
    new = [variant for variant in plan.variants if not variant.decided_at]
    return f"{' + '.join(map(_one, new))}: no GPU of {plan.variants[0].sizing.pool.name} is free"
