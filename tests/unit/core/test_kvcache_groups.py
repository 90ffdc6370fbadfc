"""Layers of several kinds in one model: how they share blocks, and how releases count them."""

from dataclasses import replace

import pytest

from builders_core import (
    attention,
    card,
    deepseek_v32,
    gemma3_27b,
    gpt_oss_120b,
    llama_8b,
    model,
    qwen3_next,
    resolved,
)
from shipfitter.core.kvcache import cache_layout, longest_fitting_tokens, plan_cache
from shipfitter.core.model import LayerFacts, LayerKind
from shipfitter.core.weights import ParallelLayout
from shipfitter.errors import InvalidSpecError, UnknownArchitectureError
from shipfitter.units import GIB

PAGE = 16 * 8 * 256 * 2  # sixteen tokens, eight heads of 128, keys and values of two bytes


def layer(kind=LayerKind.FULL, *, kv_heads=8, head_dim=128, window_tokens=0):
    return attention(
        kind, heads=32, kv_heads=kv_heads, head_dim=head_dim, window_tokens=window_tokens
    )


FULL = layer()
WINDOW = layer(LayerKind.SLIDING, window_tokens=1024)
CHUNK = layer(LayerKind.CHUNKED, window_tokens=8192)
WIDE = layer(kv_heads=4, head_dim=512)  # twice the page
ODD = layer(kv_heads=3, head_dim=256)  # three quarters of the page


def laid_out(layers, version="0.33.0", **asked):
    facts = model(layers)
    return cache_layout(facts, resolved(facts, version=version, **asked), card())


@pytest.mark.parametrize(
    ("layers", "want_groups", "want_bytes"),
    [
        pytest.param([FULL] * 32, 1, 32 * PAGE, id="layers of one kind are one group"),
        pytest.param([FULL, WIDE] * 8, 1, 8 * 3 * PAGE, id="one kind, two sizes: pages add up"),
        pytest.param([WINDOW] * 32, 1, 32 * PAGE, id="only window layers are one group"),
        pytest.param([FULL, WINDOW] * 12, 2, 12 * PAGE, id="half and half: two groups"),
        pytest.param([FULL] * 10 + [WINDOW] * 52, 7, 10 * PAGE, id="52 windows: six groups of ten"),
        pytest.param(
            [FULL] * 19 + [WINDOW] * 18, 2, 19 * PAGE, id="nearly as many: padded to the larger"
        ),
        pytest.param([FULL, CHUNK, CHUNK, CHUNK] * 12, 4, 12 * PAGE, id="chunks: three for one"),
        pytest.param([WIDE] + [WINDOW] * 5, 6, 2 * PAGE, id="smaller pages hold more tokens"),
        pytest.param([WINDOW, ODD], 2, PAGE, id="pages that do not divide are padded"),
    ],
)
def test_groups(layers, want_groups, want_bytes):
    got = laid_out(layers)
    assert (got.num_groups, got.bytes_per_block) == (want_groups, (want_bytes,))


def test_smaller_pages_get_larger_blocks():
    got = laid_out([WIDE, WINDOW], max_num_batched_tokens=2048)
    window = -(-(1023 + 4096) // 32) + 1  # blocks of 32 tokens, two batches in flight
    assert got.pages(131072) == 131072 // 16 + window
    assert got.hold_pages(131072) == 131072 // 16 + (1023 // 32 + 1) + 1


def test_pages_that_do_not_divide_start_only_from_024():
    with pytest.raises(UnknownArchitectureError, match=r"vLLM 0\.24 or newer; choose a newer"):
        laid_out([WINDOW, ODD], "0.23.0")


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        pytest.param("0.33.0", {"disable_hybrid_kv_cache_manager": True}, id="switched off"),
        pytest.param("0.8.5", {}, id="before 0.9 there is no manager"),
    ],
)
def test_without_the_hybrid_manager_every_layer_keeps_everything(version, asked):
    got = laid_out([FULL, WINDOW] * 12, version, **asked)
    assert (got.num_groups, got.bytes_per_block) == (1, (24 * PAGE,))
    assert got.pages(131072) == got.hold_pages(131072) == 131072 // 16


def test_layers_without_a_cache_take_none():
    silent = LayerFacts(kind=LayerKind.NONE)
    assert laid_out([FULL, silent] * 4).bytes_per_block == (4 * PAGE,)
    nothing = laid_out([silent] * 4)
    chosen = resolved(model([silent]))
    assert plan_cache(nothing, chosen, (GIB,)).num_gpu_blocks == 1


def test_each_stage_weighs_its_own_layers_and_the_heaviest_decides():
    facts = model([FULL] * 11)
    chosen = resolved(facts, layout=ParallelLayout(pipeline_parallel_size=2))
    layout = cache_layout(facts, chosen, card())
    assert layout.bytes_per_block == (6 * PAGE, 5 * PAGE)
    got = plan_cache(layout, chosen, (30 * GIB, 30 * GIB))
    assert got.num_gpu_blocks == 30 * GIB // (6 * PAGE)


NEED_TOKENS = 131072


@pytest.mark.parametrize(
    ("version", "want_pages"),
    [
        pytest.param("0.13.0", 10 * 8192 + 52 * 577, id="every layer's own pages up to 0.13"),
        pytest.param("0.16.0", 10 * 577, id="the first group to 0.16"),
        pytest.param("0.18.0", 10 * 577, id="the first group to 0.18"),
        pytest.param("0.19.0", 10 * (8192 + 6 * 577), id="all groups from 0.19 on"),
        pytest.param("0.25.0", 10 * (8192 + 6 * 577), id="one batch in flight to 0.25"),
        pytest.param("0.26.0", 10 * (8192 + 6 * 1089), id="two batches in flight from 0.26 on"),
    ],
)
def test_what_a_request_needs_by_release(version, want_pages):
    facts = gemma3_27b()
    chosen = resolved(facts, version=version, max_num_batched_tokens=8192)
    layout = cache_layout(facts, chosen, card())
    assert layout.needed_bytes(NEED_TOKENS) == want_pages * 2 * PAGE


def test_the_null_block_is_missing_from_checks_up_to_028():
    facts = llama_8b()
    exactly = (8192 * 32 * PAGE,)  # the whole length, and nothing more
    for version, want in (("0.28.0", None), ("0.29.0", "KVCacheTooSmall")):
        chosen = resolved(facts, version=version)
        layout = cache_layout(facts, chosen, card())
        assert plan_cache(layout, chosen, exactly).refusal == want
        assert longest_fitting_tokens(layout, 8192, 131072) == 131072 - 16


def test_an_override_of_blocks_replaces_memory_in_the_checks_from_0201():
    facts = llama_8b()
    for version, want in (("0.20.0", "KVCacheTooSmall"), ("0.20.1", None)):
        chosen = resolved(facts, version=version, num_gpu_blocks_override=10_000)
        got = plan_cache(cache_layout(facts, chosen, card()), chosen, (GIB,))
        assert (got.num_gpu_blocks, got.refusal) == (10_000, want)


def test_a_length_can_be_fitted_to_the_memory():
    facts = llama_8b()
    chosen = resolved(facts)
    layout = cache_layout(facts, chosen, card())
    got = plan_cache(layout, chosen, (10 * GIB,), auto_fit=True)
    assert (got.max_model_len, got.refusal) == (81_904, None)
    assert got.max_concurrency == pytest.approx(5120 / 5119)


def test_no_memory_at_all_is_its_own_refusal():
    facts = llama_8b()
    chosen = resolved(facts)
    got = plan_cache(cache_layout(facts, chosen, card()), chosen, (-GIB,))
    assert (got.refusal, got.num_gpu_blocks) == ("NoCacheBlocks", 0)
    assert got.estimated_max_model_len is None


@pytest.mark.parametrize(
    ("version", "asked", "want"),
    [
        pytest.param("0.20.0", {"max_num_seqs": 400}, "StateBlocksTooFew", id="refused from 0.20"),
        pytest.param("0.19.0", {"max_num_seqs": 400}, None, id="not before"),
        pytest.param("0.20.0", {"max_num_seqs": 100}, None, id="few sequences"),
        pytest.param(
            "0.20.0", {"max_num_seqs": 400, "enforce_eager": True}, None, id="no graphs, no check"
        ),
    ],
)
def test_fewer_state_blocks_than_sequences(version, asked, want):
    facts = qwen3_next()
    chosen = resolved(facts, version=version, max_model_len=8192, **asked)
    got = plan_cache(cache_layout(facts, chosen, card()), chosen, (4 * GIB,))
    assert got.num_gpu_blocks == 321
    assert got.refusal == want


def test_states_are_held_and_admitted_alike():
    facts = qwen3_next()
    layout = cache_layout(facts, resolved(facts, version="0.28.0"), card())
    assert layout.has_state
    assert layout.pages(2048) == layout.hold_pages(2048) == 4 + 3 * 2


@pytest.mark.parametrize(
    ("version", "capability", "dtype", "want"),
    [
        pytest.param("0.11.0", (9, 0), "auto", 656, id="0.11 packs by itself"),
        pytest.param("0.12.0", (9, 0), "auto", 1152, id="bf16 from 0.12 on"),
        pytest.param("0.33.0", (9, 0), "fp8", 656, id="fp8 on Hopper is packed"),
        pytest.param("0.33.0", (9, 0), "fp8_e4m3", 576, id="plain fp8 on Hopper from 0.30 on"),
        pytest.param("0.17.0", (10, 0), "fp8", 656, id="Blackwell up to 0.17"),
        pytest.param("0.18.0", (10, 0), "fp8", 576, id="Blackwell from 0.18 on"),
        pytest.param("0.33.0", (10, 0), "auto", 1152, id="Blackwell in bf16"),
        pytest.param("0.25.1", (12, 0), "auto", 656, id="always packed on 12.x"),
    ],
)
def test_sparse_attention_keeps_rows_by_backend(version, capability, dtype, want):
    facts = deepseek_v32()
    gpu = card(compute_capability=capability)
    chosen = resolved(facts, gpu, version, kv_cache_dtype=dtype)
    got = cache_layout(facts, chosen, gpu).bytes_per_block[0]
    assert got == 61 * 64 * (want + 132)


def test_shared_indexers_are_free_only_from_024():
    facts = deepseek_v32()
    layers = tuple(
        replace(one, indexer_bytes_per_token=132 if index < 21 else 0)
        for index, one in enumerate(facts.layers)
    )
    shared = replace(facts, layers=layers)
    for version, want_layers in (("0.23.0", 61), ("0.24.0", 21)):
        chosen = resolved(shared, version=version)
        got = cache_layout(shared, chosen, card()).bytes_per_block[0]
        assert got == 64 * (61 * 1152 + want_layers * 132)


@pytest.mark.parametrize(
    ("facts", "gpu", "version", "dtype", "want"),
    [
        pytest.param(
            deepseek_v32(),
            card("NVIDIA-L40S"),
            "0.33.0",
            "auto",
            "no sparse",
            id="none at 8.9",
        ),
        pytest.param(
            deepseek_v32(),
            card("NVIDIA-RTX-PRO-6000"),
            "0.23.0",
            "auto",
            "0.24 or newer",
            id="12.x only from 0.24 on",
        ),
        pytest.param(
            deepseek_v32(), card(), "0.29.0", "fp8_e4m3", "use fp8", id="Hopper's plain fp8"
        ),
        pytest.param(
            replace(deepseek_v32(), layers=deepseek_v32().layers[:0]),
            card(),
            "0.33.0",
            "turboquant",
            "not known",
            id="a dtype without a size",
        ),
    ],
)
def test_caches_no_backend_takes_are_refused_with_the_way_out(facts, gpu, version, dtype, want):
    with pytest.raises(InvalidSpecError, match=want):
        resolved(facts, gpu, version, kv_cache_dtype=dtype)


@pytest.mark.parametrize(
    ("dtype", "want_bytes_per_token"),
    [
        pytest.param("auto", 2 * 8 * 64 * 2, id="the model's own"),
        pytest.param("fp8_e5m2", 2 * 8 * 64, id="one byte"),
        pytest.param("nvfp4", 2 * 8 * (32 + 4), id="half a byte and a scale for sixteen"),
        pytest.param("fp8_per_token_head", 8 * (2 * 64 + 8), id="one byte and two scales a head"),
    ],
)
def test_bytes_of_a_cached_token(dtype, want_bytes_per_token):
    facts = gpt_oss_120b()
    chosen = resolved(facts, kv_cache_dtype=dtype)
    assert cache_layout(facts, chosen, card()).bytes_per_block == (18 * 16 * want_bytes_per_token,)


def test_a_model_in_fp32_keeps_four_bytes():
    facts = replace(llama_8b(), dtype="float32")
    assert cache_layout(facts, resolved(facts), card()).bytes_per_block == (2 * 32 * PAGE,)
