"""A Job's message: the same facts on both sides, and never longer than a pod may speak."""

import random

import pytest

from builders_models import MODELS, config_of, stored_bytes_of
from shipfitter.core.architectures import architecture_of
from shipfitter.core.inspected import MESSAGE_BYTES, is_packed, packed, unpacked
from shipfitter.core.mixture import moe_facts
from shipfitter.core.model import TensorHeader, model_facts
from shipfitter.core.model_layers import model_layers
from shipfitter.core.model_weights import Blueprint
from shipfitter.core.multimodal import unwrap
from shipfitter.core.quantization import Coverage
from shipfitter.core.text_config import TextConfig
from shipfitter.errors import InspectionFailedError, UnknownArchitectureError
from world.hub.published import published_config
from world.hub.tensors import tensors_of

COMMIT = "0e9e39f249a16976918f6564b8830bc894c89659"


def published(name):
    """A published config, and the tensors of its checkpoint."""
    config = published_config(name)
    return config, headers(config)


def kept(name):
    """A config of the test data, with tensors as its family stores them."""
    config = config_of(name)
    return config, headers(config)


def headers(config):
    return tuple(TensorHeader(each.name, each.dtype, each.shape) for each in tensors_of(config))


def derived(name):
    """A config of the test data, with the tensors that core's own arithmetic expects."""
    config = config_of(name)
    text, wrapper = unwrap(TextConfig.read(config, model=name))
    architecture = architecture_of(text)
    blueprint = Blueprint(
        config=text,
        architecture=architecture,
        layers=model_layers(text, architecture),
        moe=moe_facts(text, architecture),
        wrapper=wrapper,
        coverage=Coverage.read(text),
    )
    return config, tuple(blueprint.headers(blueprint.text_modules(stored=True), float_bytes=2))


FAMILIES = [
    pytest.param(published, "meta-llama/Llama-3.1-8B-Instruct", id="Llama"),
    pytest.param(published, "meta-llama/Llama-3.3-70B-Instruct", id="Llama of 70B"),
    pytest.param(published, "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", id="FP8 by channel"),
    pytest.param(published, "Qwen/Qwen3-32B", id="Qwen3"),
    pytest.param(published, "Qwen/Qwen3-32B-AWQ", id="AWQ"),
    pytest.param(published, "Qwen/Qwen3-32B-FP8", id="FP8 by block"),
    pytest.param(published, "Qwen/Qwen3-30B-A3B", id="Qwen3 with experts"),
    pytest.param(published, "Qwen/Qwen3-Next-80B-A3B-Instruct", id="Qwen3-Next"),
    pytest.param(published, "deepseek-ai/DeepSeek-V3", id="DeepSeek-V3"),
    pytest.param(published, "openai/gpt-oss-120b", id="gpt-oss"),
    pytest.param(published, "google/gemma-3-27b-it", id="Gemma 3 with its tower"),
    pytest.param(kept, "gemma-3-1b-it", id="Gemma 3 without a tower"),
    pytest.param(kept, "gemma-2-27b-it", id="Gemma 2"),
    pytest.param(kept, "Qwen2.5-7B-Instruct", id="Qwen2.5"),
    pytest.param(kept, "Mixtral-8x7B-Instruct-v0.1", id="Mixtral"),
    pytest.param(kept, "DeepSeek-V2-Lite-Chat", id="DeepSeek-V2"),
    pytest.param(derived, "phi-4", id="Phi"),
    pytest.param(derived, "granite-3.3-8b-instruct", id="Granite"),
    pytest.param(derived, "MiniMax-M2", id="MiniMax"),
    pytest.param(derived, "Falcon-H1-3B-Base", id="Falcon-H1"),
    pytest.param(derived, "NVIDIA-Nemotron-Nano-9B-v2", id="Nemotron-H"),
    pytest.param(derived, "Llama-4-Scout-17B-16E-Instruct", id="Llama 4"),
    pytest.param(derived, "Mistral-7B-Instruct-v0.2-GPTQ", id="GPTQ"),
    pytest.param(derived, "Llama-3_3-Nemotron-Super-49B-v1-GPTQ-4bit", id="layers of many widths"),
]


@pytest.mark.parametrize(("source", "name"), FAMILIES)
def test_a_checkpoint_goes_through_the_message_without_loss(source, name):
    config, tensors = source(name)
    given = {"name": name, "revision": COMMIT}
    want = model_facts(config, tensors=tensors, checkpoint_bytes=7, **given)
    message = packed(config, tensors=tensors, stored_bytes=7, **given)
    assert len(message.encode()) <= MESSAGE_BYTES // 2, "half of it is left for what is to come"
    assert unpacked(message) == want
    assert want.weights_source == "safetensors headers"


def test_every_config_we_know_fits_with_room_to_spare():
    longest = {}
    for path in MODELS.glob("*.json"):
        config, stored_bytes = config_of(path.stem), stored_bytes_of(path.stem)
        if sum(map(len, map(str, config.values()))) < 800:
            continue  # a short one fits: time is better spent on the long ones
        try:
            message = packed(config, name=path.stem, stored_bytes=stored_bytes)
        except UnknownArchitectureError:
            continue
        longest[path.stem] = len(message)
    assert len(longest) > 5
    assert max(longest.values()) <= MESSAGE_BYTES - 1000, longest


def test_what_sizing_does_not_read_of_a_config_is_left_behind():
    config = published_config("Qwen/Qwen3-32B")
    noise = {f"key_{n}": random.Random(n).randbytes(40).hex() for n in range(500)}
    short = packed(config, name="a", stored_bytes=7)
    assert packed({**config, **noise}, name="a", stored_bytes=7) == short


def test_tensors_without_any_order_give_way_to_their_total():
    config, chance = published_config("Qwen/Qwen3-0.6B"), random.Random(7)
    tensors = tuple(
        TensorHeader(f"model.layers.{layer}.{name}.weight", "BF16", (chance.randrange(9999), 1024))
        for layer in range(28)
        for name in (chance.randbytes(30).hex() for _ in range(30))
    )
    message = packed(config, name="a", tensors=tensors, stored_bytes=1_503_300_328)
    assert len(message) <= MESSAGE_BYTES
    assert unpacked(message).weights_source == "config and total bytes"
    assert unpacked(message) == model_facts(config, name="a", checkpoint_bytes=1_503_300_328)


def test_a_config_that_is_too_long_by_itself_is_told():
    config = {
        **published_config("Qwen/Qwen3-0.6B"),
        "quantization_config": {
            "quant_method": "fp8",
            "ignored_layers": [random.Random(n).randbytes(40).hex() for n in range(500)],
        },
    }
    with pytest.raises(InspectionFailedError, match=r"spec\.model\.facts"):
        packed(config, name="a", stored_bytes=7)


def test_a_class_that_is_not_known_is_told_by_the_job():
    with pytest.raises(UnknownArchitectureError, match="StrangeForCausalLM"):
        packed({"architectures": ["StrangeForCausalLM"]}, name="a")


MESSAGE = packed(published_config("Qwen/Qwen3-0.6B"), name="a", stored_bytes=7)


@pytest.mark.parametrize(
    ("message", "want"),
    [
        pytest.param(MESSAGE[:-9], "makes no sense", id="cut off"),
        pytest.param(MESSAGE[:40] + "x" + MESSAGE[41:], "makes no sense", id="one letter changed"),
        pytest.param("facts/1:", "makes no sense", id="empty"),
        pytest.param("facts/1:" + "~" * 40, "makes no sense", id="no text at all"),
        pytest.param(MESSAGE.replace("/1:", "/2:"), "another release", id="a newer form"),
    ],
)
def test_a_message_that_is_none_is_an_answer_too(message, want):
    assert is_packed(message)
    with pytest.raises(InspectionFailedError, match=want):
        unpacked(message)
