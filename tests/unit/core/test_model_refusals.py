"""What is not known by name is refused, with the class and the way out."""

import pytest

from builders_families import tiny_llama
from builders_models import config_of, facts_from
from shipfitter.core.cache_layout import cache_layout
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.model import model_facts
from shipfitter.errors import UnknownArchitectureError
from shipfitter.units import GIB


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param("NeverHeardOfForCausalLM", id="an unknown class"),
        pytest.param("DeepseekV41ForCausalLM", id="rows shared between layers, tables of n-grams"),
        pytest.param("LongcatFlashForCausalLM", id="two latents in one layer"),
        pytest.param("ChameleonForConditionalGeneration", id="a class the engine dropped"),
        pytest.param("NeverHeardOfModel", id="an unknown class for embeddings"),
    ],
)
def test_a_class_not_known_by_name_is_refused(architecture):
    with pytest.raises(UnknownArchitectureError) as refusal:
        facts_from(tiny_llama(architectures=[architecture]))
    message = str(refusal.value)
    assert "a/model" in message
    assert architecture in message
    assert "spec.model.facts" in message


def test_a_packed_cache_of_other_widths_is_refused():
    facts = model_facts(config_of("DeepSeek-V4-Flash", head_dim=256), name="a/narrow-model")
    settings = EngineSettings(version=EngineVersion(0, 33, 0), kv_cache_dtype="fp8")
    card = Gpu(product="NVIDIA-H200", total_bytes=139 * GIB)
    with pytest.raises(UnknownArchitectureError, match="heads of 512 only"):
        cache_layout(facts, resolve(settings, facts, card), card)


def test_a_wrapper_around_an_unknown_language_model_names_its_type():
    config = tiny_llama(model_type="llava", text_config=tiny_llama(architectures=None))
    config |= {"architectures": ["LlavaForConditionalGeneration"]}
    config["text_config"]["model_type"] = "strange"
    with pytest.raises(UnknownArchitectureError, match="'strange'"):
        facts_from(config)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"architectures": []}, "`architectures`", id="no class at all"),
        pytest.param({"hidden_size": None}, "`hidden_size`", id="no width"),
        pytest.param({"num_hidden_layers": "many"}, "'many'", id="a number that is none"),
        pytest.param({"layer_types": ["spiral"] * 2}, "'spiral'", id="a layer type unheard of"),
    ],
)
def test_a_config_without_what_sizing_needs_says_what_is_missing(change, want):
    with pytest.raises(UnknownArchitectureError, match=want):
        facts_from(tiny_llama(**change))
