"""Laws of the cache, for every model, engine and card that can be thought of."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builders_core import attention, card, gated_delta_net, latent, model, resolved, weights
from shipfitter.core.budget import budget, reserve_bytes, utilization_for
from shipfitter.core.kvcache import cache_layout, longest_fitting_tokens, plan_cache
from shipfitter.core.model import LayerFacts, LayerKind
from shipfitter.units import GIB

VERSIONS = ["0.9.2", "0.11.0", "0.13.0", "0.16.0", "0.18.0", "0.20.0", "0.26.0", "0.28.0", "0.33.0"]


@st.composite
def models(draw):
    """Every mix of layers that an engine keeps."""
    head_dim = draw(st.sampled_from([64, 128, 256]))
    kv_heads = draw(st.sampled_from([1, 2, 8]))
    shape = {"heads": 16, "kv_heads": kv_heads, "head_dim": head_dim, "intermediate_size": 4096}
    full = attention(**shape)
    others = draw(
        st.sampled_from(
            [
                None,
                attention(LayerKind.SLIDING, window_tokens=draw(st.integers(1, 5000)), **shape),
                attention(LayerKind.CHUNKED, window_tokens=draw(st.integers(1, 9000)), **shape),
                LayerFacts(kind=LayerKind.STATE, state=gated_delta_net(), intermediate_size=4096),
                LayerFacts(kind=LayerKind.NONE, mlp="none"),
            ]
        )
    )
    if others is None:
        full = draw(st.sampled_from([full, latent(intermediate_size=4096)]))
    layers = [full] * draw(st.integers(1, 20))
    if others is not None:
        layers += [others] * draw(st.integers(1, 40))
    layers = draw(st.permutations(layers))
    return model(
        layers,
        weight_groups=weights(
            layer_bytes=100_000_000, count=len(layers), embedding_bytes=GIB, head_bytes=GIB
        ),
    )


@st.composite
def asked(draw):
    """Settings a person could ask for."""
    return {
        "version": draw(st.sampled_from(VERSIONS)),
        "max_model_len": draw(st.integers(1, 300_000)),
        "max_num_seqs": draw(st.integers(1, 1024)),
        "max_num_batched_tokens": draw(st.integers(1024, 16384)),
        "tensor_parallel_size": draw(st.sampled_from([1, 2, 4])),
        "enable_prefix_caching": draw(st.booleans()),
        "kv_cache_dtype": draw(st.sampled_from(["auto", "fp8"])),
        "num_speculative_tokens": draw(st.sampled_from([0, 0, 3])),
        "disable_hybrid_kv_cache_manager": draw(st.booleans()),
    }


cards = st.sampled_from([card("NVIDIA-L4"), card(), card("NVIDIA-B200")])


def laid_out(facts, wish, gpu):
    chosen = resolved(facts, gpu, **wish)
    return chosen, cache_layout(facts, chosen, gpu)


@given(models(), asked(), cards, st.integers(0, 10**11), st.integers(0, 10**10))
def test_more_memory_is_never_fewer_blocks(facts, wish, gpu, available, more):
    chosen, layout = laid_out(facts, wish, gpu)
    less = plan_cache(layout, chosen, (available,))
    plenty = plan_cache(layout, chosen, (available + more,))
    assert plenty.num_gpu_blocks >= less.num_gpu_blocks
    assert plenty.kv_cache_tokens >= less.kv_cache_tokens


@given(models(), asked(), cards, st.integers(0, 300_000), st.integers(0, 300_000))
def test_longer_is_never_fewer_pages(facts, wish, gpu, tokens, more):
    _, layout = laid_out(facts, wish, gpu)
    assert layout.pages(tokens + more) >= layout.pages(tokens)
    assert layout.hold_pages(tokens + more) >= layout.hold_pages(tokens)
    assert layout.needed_bytes(tokens + more) >= layout.needed_bytes(tokens)


@given(models(), asked(), cards, st.integers(0, 300_000))
def test_a_running_request_holds_no_more_than_it_was_admitted_with(facts, wish, gpu, tokens):
    _, layout = laid_out(facts, wish, gpu)
    assert 0 <= layout.hold_pages(tokens) <= layout.pages(tokens)


@given(models(), asked(), cards, st.integers(0, 200_000), st.integers(1, 2_000_000))
def test_the_longest_fitting_length_is_exact(facts, wish, gpu, blocks, limit):
    _, layout = laid_out(facts, wish, gpu)
    longest = longest_fitting_tokens(layout, blocks, limit)
    assert 0 <= longest <= limit
    if longest:
        assert layout.pages(longest) <= blocks - 1
    if longest < limit:
        assert layout.pages(longest + 1) > blocks - 1


@given(models(), asked(), cards, st.integers(1, 10**11))
def test_a_refusal_names_a_length_that_would_start(facts, wish, gpu, available):
    chosen, layout = laid_out(facts, wish, gpu)
    plan = plan_cache(layout, chosen, (available,))
    if plan.refusal != "KVCacheTooSmall" or plan.estimated_max_model_len is None:
        return
    shorter = replace(chosen, max_model_len=plan.estimated_max_model_len)
    assert plan_cache(layout, shorter, (available,)).refusal in (None, "StateBlocksTooFew")
    longer = replace(chosen, max_model_len=plan.estimated_max_model_len + 1)
    assert plan_cache(layout, longer, (available,)).refusal == "KVCacheTooSmall"


@given(models(), asked(), cards)
def test_every_budget_adds_up_and_its_interval_holds_its_point(facts, wish, gpu):
    chosen = resolved(facts, gpu, **wish)
    for stage in budget(facts, chosen, gpu):
        assert stage.check()


@given(models(), asked(), cards, st.integers(0, 20 * GIB))
def test_other_tenants_never_raise_the_utilization(facts, wish, gpu, taken):
    chosen = resolved(facts, gpu, **wish)
    crowded = replace(gpu, foreign_used_bytes=taken)
    assert 0 <= utilization_for(facts, chosen, crowded) <= utilization_for(facts, chosen, gpu)
    assert utilization_for(facts, chosen, gpu) <= 0.95


@given(models(), asked(), cards)
def test_more_sequences_never_leave_more_cache(facts, wish, gpu):
    """Lengths are given, so only sampler, penalty state, captures and reserve grow."""
    wish = {**wish, "max_num_seqs": 512, "gpu_memory_utilization": 0.9}
    many = resolved(facts, gpu, **wish)
    few = resolved(facts, gpu, **{**wish, "max_num_seqs": 8})
    (crowded,), (calm,) = budget(facts, many, gpu), budget(facts, few, gpu)
    assert crowded.kv_cache_bytes.point <= calm.kv_cache_bytes.point
    assert reserve_bytes(facts, many, gpu) >= reserve_bytes(facts, few, gpu)
