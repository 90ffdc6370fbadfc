"""What one rank spends beside its cache: release and flags reach the weights."""

from dataclasses import replace

import pytest

from builders_models import facts_of
from shipfitter.core.cache_layout import cache_layout
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.loading import loaded_as
from shipfitter.core.spending import spending
from shipfitter.core.weights import ParallelLayout, weights_bytes
from shipfitter.units import GIB, MIB

H100 = Gpu(product="NVIDIA-H100-80GB-HBM3", total_bytes=79 * GIB, compute_capability=(9, 0))


def spent(name, version="0.33.0", **flags):
    settings = EngineSettings(version=EngineVersion.parse(version), **flags)
    facts = facts_of(name)
    return spending(facts, resolve(settings, facts, H100), H100, stage=0)


@pytest.mark.parametrize(
    ("version", "want_gib"),
    [
        pytest.param("0.19.0", 14.2487, id="up to 0.20 the allocator splits big blocks"),
        pytest.param("0.24.0", 14.2897, id="from 0.21 on it keeps them whole"),
    ],
)
def test_weights_follow_the_release(version, want_gib):
    # Source: "Model loading took" of Qwen2.5-7B-Instruct in logs of 0.6 (14.25) and 0.24 (14.29).
    assert spent("Qwen2.5-7B-Instruct", version).weights_bytes / GIB == pytest.approx(
        want_gib, abs=0.0005
    )


def test_speculation_with_own_layers_loads_them():
    alone = spent("Qwen3.8-27B-INT4").weights_bytes
    drafting = spent("Qwen3.8-27B-INT4", num_speculative_tokens=2).weights_bytes
    other = spent(
        "Qwen3.8-27B-INT4", num_speculative_tokens=2, speculative_method="ngram"
    ).weights_bytes
    assert drafting - alone > 200 * MIB
    assert other == alone


def test_speculation_with_own_layers_gives_them_a_cache():
    facts = facts_of("Qwen3.8-27B-INT4")
    settings = EngineSettings(version=EngineVersion(0, 33, 0), enable_prefix_caching=False)

    def attention_layers(given):
        layout = cache_layout(facts, resolve(given, facts, H100), H100)
        return layout.bytes_per_block[0] // layout.block_size

    alone, drafting = (
        attention_layers(given) for given in (settings, replace(settings, num_speculative_tokens=1))
    )
    assert drafting * 16 == alone * 17


def test_towers_are_not_loaded_for_language_alone():
    whole = spent("Qwen3-VL-30B-A3B-Instruct").weights_bytes
    text = spent("Qwen3-VL-30B-A3B-Instruct", language_model_only=True).weights_bytes
    assert whole - text > GIB


def test_deepstack_levels_keep_a_buffer_of_the_batch():
    def loaded(tokens):
        name = "Qwen3-VL-30B-A3B-Instruct"
        return spent(name, max_num_batched_tokens=tokens).weights_bytes

    levels, hidden = 3, 2048
    assert loaded(8192) - loaded(4096) == levels * 4096 * hidden * 2


def test_attention_and_mamba_side_by_side_are_both_cached():
    facts = facts_of("Falcon-H1-3B-Base")
    settings = EngineSettings(version=EngineVersion(0, 32, 0))
    layout = cache_layout(facts, resolve(settings, facts, H100), H100)
    assert layout.has_state
    assert layout.num_groups == 2
    # One group of attention pages and one of states padded to them: 32 layers each.
    attention = facts.num_hidden_layers * 2 * facts.num_key_value_heads * facts.head_dim * 2
    assert layout.bytes_per_block[0] == layout.block_size * attention


@pytest.mark.parametrize(
    ("version", "want_gib"),
    [
        pytest.param("0.12.0", 15.3, id="the whole 16-bit model is there first"),
        pytest.param("0.33.0", 9.2, id="layer by layer"),
    ],
)
def test_quantising_while_loading_takes_more_than_it_leaves(version, want_gib):
    facts = loaded_as(facts_of("Qwen3-8B"), quantization="fp8")
    settings = resolve(EngineSettings(version=EngineVersion.parse(version)), facts, H100)
    got = spending(facts, settings, H100, stage=0)
    assert got.weights_bytes / GIB == pytest.approx(8.8, abs=0.05)
    assert got.load_peak_bytes / GIB == pytest.approx(want_gib, abs=0.1)


def test_one_answer_for_one_question():
    facts = facts_of("Qwen2.5-7B-Instruct")
    layout = ParallelLayout()
    settings = resolve(EngineSettings(version=EngineVersion(0, 33, 0)), facts, H100)
    first = spending(facts, settings, H100, stage=0)
    assert first is spending(facts, settings, replace(H100, total_bytes=70 * GIB), stage=0)
    assert first.weights_bytes == weights_bytes(facts, layout)
