"""Laws of the solve and of the decision."""

from hypothesis import given
from hypothesis import strategies as st

from builders_decide import NOW, mdl, world
from builders_plan import facts, node, pool, wish
from shipfitter.core.intent import Prefer, SizeFor, Wanted
from shipfitter.core.plan import NoFit, Plan, solve
from shipfitter.core.sizing import holds
from shipfitter.decide import decide

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B",
    "google/gemma-3-27b-it",
    "openai/gpt-oss-20b",
)
PRODUCTS = ("L4", "L40S", "A100-80GB", "H100", "H200")

pools = st.builds(
    lambda product, gpus, nodes: pool(product, gpus, nodes=nodes, name=f"{product}-{gpus}-{nodes}"),
    st.sampled_from(PRODUCTS), st.sampled_from((1, 2, 4, 8)), st.integers(1, 3),
)  # fmt: skip
inventories = st.lists(pools, max_size=4, unique_by=lambda p: p.name).map(tuple)


@st.composite
def wishes(draw):
    least = draw(st.sampled_from((None, 2048, 8192)))
    best = draw(st.sampled_from((None, 16_384, 32_768)))
    return wish(
        draw(st.sampled_from(MODELS)),
        replicas=draw(st.integers(1, 4)),
        max_model_len=Wanted(least, best),
        max_num_seqs=Wanted(None, draw(st.sampled_from((None, 32, 100)))),
        prefer=draw(st.sampled_from(Prefer)),
        size_for=draw(st.sampled_from(SizeFor)),
    )


@given(wishes(), inventories, pools)
def test_more_gpus_never_lose_a_plan(intent, inventory, extra):
    if isinstance(solve(intent, inventory), Plan):
        more = (*(p for p in inventory if p.name != extra.name), extra)
        assert isinstance(solve(intent, more), Plan)


@given(wishes(), inventories, st.randoms(use_true_random=False))
def test_the_order_of_pools_does_not_matter(intent, inventory, chance):
    shuffled = list(inventory)
    chance.shuffle(shuffled)
    first, second = solve(intent, inventory), solve(intent, tuple(shuffled))
    if isinstance(first, NoFit):
        assert isinstance(second, NoFit)
        assert first.problem == second.problem
    else:
        assert isinstance(second, Plan)
        assert first.variants == second.variants


@given(wishes(), inventories)
def test_a_plan_meets_the_minimums_and_its_own_budget(intent, inventory):
    plan = solve(intent, inventory)
    if isinstance(plan, NoFit):
        return
    sizing = plan.variants[0].sizing
    budget = sizing.budget
    assert sizing.max_model_len >= (intent.max_model_len.minimum or 0)
    assert sizing.max_num_seqs >= 4
    parts = (
        budget.weights_bytes + budget.overhead_bytes + budget.activation_bytes
        + budget.cuda_graph_bytes + budget.kv_cache_bytes.point
    )  # fmt: skip
    assert parts == budget.requested_bytes
    assert budget.requested_bytes + budget.not_requested_bytes == budget.total_bytes
    assert budget.kv_cache_bytes.low <= budget.kv_cache_bytes.point <= budget.kv_cache_bytes.high


@given(wishes(), inventories)
def test_a_plans_flags_put_back_give_the_plans_numbers(intent, inventory):
    plan = solve(intent, inventory)
    if isinstance(plan, NoFit):
        return
    sizing = plan.variants[0].sizing
    assert holds(sizing, sizing.pool) == sizing


@given(st.sampled_from(MODELS), st.sampled_from(PRODUCTS), st.integers(1, 8), st.integers(0, 10**6))
def test_deciding_again_changes_nothing(model, product, gpus, later):
    nodes = (node("a", product, gpus),)
    models = {f"hf://{model}": facts(model)}
    body = mdl(model={"uri": f"hf://{model}"})
    once = decide(body, world(*nodes, models=models))
    again = decide(
        {**body, "status": once.status}, world(*nodes, models=models, now_seconds=NOW + later)
    )
    assert again.status == once.status
