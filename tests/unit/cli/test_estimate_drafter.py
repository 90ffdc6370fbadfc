"""A separate drafter: its weights and its layers of cache are counted with the model's."""

import json

import pytest

from shipfitter.units import GIB
from unit.cli.estimates import LLAMA, record_of

# The shape of a published EAGLE-3 head for Llama 3.1 8B.
HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 1,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
    "tie_word_embeddings": False,
}
# One format of packaged heads states the layers apart.
PACKAGED = {
    "architectures": ["Eagle3DraftModel"],
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 32000,
    "transformer_layer_config": {k: v for k, v in HEAD.items() if k != "architectures"},
}
OPTIONS = f"--gpu NVIDIA-L40S --engine-version 0.24.0 {LLAMA}"
SERVE = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192"


def drafted(capsys, method, model, options=OPTIONS, serve=SERVE):
    config = json.dumps({"method": method, "model": str(model), "num_speculative_tokens": 3})
    return record_of(capsys, f"{options} -- {serve} --speculative-config '{config}'")


def folder(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("method", "config", "want_gib"),
    [
        # Three tapped layers into one, a layer that reads twice the width, 32,000 outputs.
        pytest.param("eagle3", HEAD, 0.791, id="a head on three layers"),
        pytest.param("eagle3", PACKAGED, 0.791, id="the same, packaged"),
        # Two widths into one, a layer, the model's own embedding and outputs.
        pytest.param(
            "eagle",
            HEAD | {"architectures": ["EagleLlamaForCausalLM"], "draft_vocab_size": None},
            0.469,
            id="a head on the last layer",
        ),
    ],
)
def test_a_head(capsys, tmp_path, method, config, want_gib):
    plain = record_of(capsys, f"{OPTIONS} -- {SERVE}")
    got = drafted(capsys, method, folder(tmp_path, config))
    added = got["perGpu"]["weightsBytes"] - plain["perGpu"]["weightsBytes"]
    assert added / GIB == pytest.approx(want_gib, abs=0.001)
    assert got["kvBytesPerToken"] == plain["kvBytesPerToken"] * 33 // 32
    assert not any("not counted" in note for note in got["assumptions"])


def test_a_smaller_model_drafts(capsys):
    options = "--gpu NVIDIA-H100-80GB-HBM3 --engine-version 0.24.0"
    serve = "vllm serve Qwen/Qwen3-32B --max-model-len 8192"
    plain = record_of(capsys, f"{options} -- {serve}")
    got = drafted(capsys, "draft_model", "Qwen/Qwen3-0.6B", options, serve)
    added = got["perGpu"]["weightsBytes"] - plain["perGpu"]["weightsBytes"]
    assert added / GIB == pytest.approx(1.12, abs=0.02)
    # 28 layers of 8 heads of 128 keys and values beside 64 of the same.
    assert got["kvBytesPerToken"] == plain["kvBytesPerToken"] * (64 + 28) // 64


def test_a_drafter_that_nothing_is_known_of_is_said(capsys, tmp_path):
    got = drafted(capsys, "medusa", folder(tmp_path, {"architectures": ["MedusaModel"]}))
    assert any("is not counted: its weights and cache" in note for note in got["assumptions"])
    assert got["kvBytesPerToken"] == 131072


def test_a_head_whose_config_cannot_be_had_is_taken_for_a_usual_one(capsys):
    got = drafted(capsys, "eagle3", "/no/such/head")
    plain = record_of(capsys, f"{OPTIONS} -- {SERVE}")
    assert got["kvBytesPerToken"] == plain["kvBytesPerToken"] * 33 // 32
    added = got["perGpu"]["weightsBytes"] - plain["perGpu"]["weightsBytes"]
    assert added / GIB == pytest.approx(0.791, abs=0.001)
    assert any("one layer like the model's own" in note for note in got["assumptions"])
