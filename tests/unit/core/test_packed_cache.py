"""DeepSeek-V4's packed cache: the planner's own group bytes, and token lines of logs."""

from dataclasses import replace

import pytest

from builders_models import config_of, facts_of
from shipfitter.core.cache_layout import cache_layout
from shipfitter.core.cache_specs import CacheKey
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.kvcache import plan_cache
from shipfitter.core.model import LayerKind, Shard, model_facts
from shipfitter.core.packed_cache import packed_cache
from shipfitter.core.weights import ParallelLayout, weights_bytes
from shipfitter.errors import InvalidSpecError
from shipfitter.units import GIB

CARD = Gpu(product="NVIDIA-H200", total_bytes=139 * GIB, compute_capability=(9, 0))
PRO_RATIOS = [128, 128] + [4, 128] * 29 + [4]


def flash():
    return facts_of("DeepSeek-V4-Flash")


def pro():
    """DeepSeek-V4-Pro's layers; the rest of it does not matter to the cache."""
    config = config_of("DeepSeek-V4-Flash", num_hidden_layers=61, compress_ratios=PRO_RATIOS)
    return model_facts(config, name="deepseek-ai/DeepSeek-V4-Pro")


def key(version):
    return CacheKey(
        version=EngineVersion.parse(version),
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        cache_dtype="fp8",
        block_tokens=256,
        caches_prefixes=True,
        num_speculative_tokens=0,
        decode_context_parallel_size=1,
        hybrid_manager=True,
        compute_capability=(9, 0),
    )


# Source: vLLM's own grouping functions of the releases, run on these specs.
@pytest.mark.parametrize(
    ("facts", "version", "want_groups", "want_pool"),
    [
        pytest.param(
            flash(),
            "0.22.0",
            [1_002_240, 823_680, 786_240, 967_680, 748_800],
            1_051_776,
            id="Flash, whole tuples",
        ),
        pytest.param(
            flash(),
            "0.25.0",
            [1_002_240, 823_680, 786_240, 967_680, 748_800],
            1_039_680,
            id="Flash, a pool of pages",
        ),
        pytest.param(
            flash(),
            "0.28.0",
            [1_002_240, 823_680, 786_240, 870_912, 656_640],
            1_002_240,
            id="Flash, states unpadded",
        ),
        pytest.param(
            pro(),
            "0.25.0",
            [1_435_968, 1_160_640, 1_123_200, 1_382_400, 1_160_640],
            1_473_408,
            id="Pro",
        ),
        pytest.param(
            pro(),
            "0.33.0",
            [1_435_968, 1_160_640, 1_123_200, 1_244_160, 1_017_792],
            1_435_968,
            id="Pro, states unpadded",
        ),
    ],
)
def test_groups_and_pool(facts, version, want_groups, want_pool):
    layers = facts.layers
    everything = range(len(layers))
    got = packed_cache(facts, layers, (everything,), key(version), in_flight_tokens=8192)
    assert [group.size(everything) for group in got.groups] == want_groups
    assert got.bytes_per_block == (want_pool,)


# Source: token lines and refusals in public logs; in-flight tokens are the batch (to 0.25), or the
# batches in flight.
@pytest.mark.parametrize(
    ("version", "length", "batched", "available_gib", "want_tokens"),
    [
        pytest.param("0.23.0", 262_144, 8192, 32.08, 2_175_276, id="H200 NVL over two, 0.23"),
        pytest.param("0.25.0", 131_072, 8192, 7.754, 301_529, id="RTX PRO 6000 over two, 0.25"),
        pytest.param("0.31.0", 262_144, 8192, 47.43, 1_728_531, id="H100 over eight, 0.31"),
    ],
)
def test_tokens(version, length, batched, available_gib, want_tokens):
    settings = EngineSettings(
        version=EngineVersion.parse(version),
        max_model_len=length,
        max_num_batched_tokens=batched,
        kv_cache_dtype="fp8",
    )
    resolved = resolve(settings, flash(), CARD)
    layout = cache_layout(flash(), resolved, CARD)
    got = plan_cache(layout, resolved, (int(available_gib * GIB),))
    assert got.kv_cache_tokens == pytest.approx(want_tokens, rel=0.0003)


def test_the_need_of_a_refusal():
    # Source: GH200 over two, 0.22: 6.66 GiB needed for 30,000 tokens, 13,528 estimated.
    settings = EngineSettings(
        version=EngineVersion(0, 22, 0),
        max_model_len=30_000,
        max_num_batched_tokens=16_384,
        kv_cache_dtype="fp8",
    )
    resolved = resolve(settings, flash(), CARD)
    layout = cache_layout(flash(), resolved, CARD)
    got = plan_cache(layout, resolved, (int(5.44 * GIB),))
    assert got.refusal == "KVCacheTooSmall"
    assert got.needed_bytes / GIB == pytest.approx(6.66, abs=0.005)
    assert got.estimated_max_model_len == pytest.approx(13_528, rel=0.01)


def test_drafting_adds_a_window():
    settings = EngineSettings(
        version=EngineVersion(0, 33, 0), num_speculative_tokens=1, kv_cache_dtype="fp8"
    )
    alone = replace(settings, num_speculative_tokens=0)
    sizes = {
        drafts: cache_layout(flash(), resolve(given, flash(), CARD), CARD).num_groups
        for drafts, given in ((True, settings), (False, alone))
    }
    assert sizes == {True: 5, False: 5}  # 43 or 44 windows in two groups of 22 at most


def test_stages_hold_their_own_layers():
    settings = EngineSettings(
        version=EngineVersion(0, 33, 0),
        layout=ParallelLayout(pipeline_parallel_size=2),
        kv_cache_dtype="fp8",
    )
    layout = cache_layout(flash(), resolve(settings, flash(), CARD), CARD)
    first, second = layout.bytes_per_block
    assert first + second >= 1_002_240


@pytest.mark.parametrize(
    ("version", "dtype", "want_said"),
    [
        pytest.param("0.19.0", "fp8", "0.20 or newer", id="before 0.20 the class is not there"),
        pytest.param("0.29.0", "auto", "use fp8", id="auto is refused until 0.30"),
        pytest.param("0.33.0", "bfloat16", "use fp8", id="there is no 16-bit cache"),
    ],
)
def test_refusals(version, dtype, want_said):
    settings = EngineSettings(version=EngineVersion.parse(version), kv_cache_dtype=dtype)
    with pytest.raises(InvalidSpecError, match=want_said):
        resolve(settings, flash(), CARD)


def test_layers_are_read_from_their_ratios():
    ratios = [layer.compress_ratio for layer in flash().layers]
    assert {layer.kind for layer in flash().layers} == {LayerKind.COMPRESSED}
    assert (ratios.count(0), ratios.count(4), ratios.count(128)) == (2, 21, 20)


@pytest.mark.parametrize(
    ("ranks", "want_gib"),
    [
        pytest.param(1, 146.2, id="one card: the file without its drafting layer, and tables"),
        pytest.param(2, 74.2, id="over two"),
    ],
)
def test_weights(ranks, want_gib):
    layout = ParallelLayout(tensor_parallel_size=ranks)
    assert weights_bytes(flash(), layout) / GIB == pytest.approx(want_gib, rel=0.01)


def test_the_config_explains_the_file():
    facts = flash()
    experts = sum(
        group.loaded_bytes for group in facts.weight_groups if group.shard is Shard.EXPERTS
    )
    # 43 layers of 256 experts, three matrices each, half a byte and a scale for 32.
    want = 43 * 256 * 3 * 2048 * 4096 * (0.5 + 1 / 32)
    assert experts == pytest.approx(want, rel=0.03)  # and the drafting layer's
