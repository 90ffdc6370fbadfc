"""The stub's weights against what public logs of the real engine say; GiB on one rank."""

import pytest

from world.engine.checkpoint import Checkpoint
from world.engine.scenario import GIB
from world.engine.weights import Ranks, stage_of, weight_bytes
from world.hub import published_bytes, published_config
from world.hub.tensors import tensors_of


def checkpoint(name: str) -> Checkpoint:
    config = published_config(name)
    tensors = [(tensor.name, tensor.dtype, list(tensor.shape)) for tensor in tensors_of(config)]
    return Checkpoint(config, tensors, published_bytes(name))


@pytest.mark.parametrize(
    ("name", "ranks", "want_gib", "tolerance"),
    [
        pytest.param(
            "meta-llama/Llama-3.1-8B-Instruct", Ranks(), 14.9889, 0.0002, id="Llama-3.1-8B"
        ),
        pytest.param("Qwen/Qwen3-32B", Ranks(), 61.03, 0.01, id="Qwen3-32B"),
        pytest.param("Qwen/Qwen3-32B", Ranks(tensor=8), 7.64, 0.01, id="Qwen3-32B on eight"),
        pytest.param(
            "Qwen/Qwen3-32B", Ranks(tensor=16), 3.90, 0.01, id="on sixteen: KV heads replicated"
        ),
        pytest.param(
            "Qwen/Qwen3-32B",
            Ranks(tensor=2, pipeline=3),
            10.27,
            0.01,
            id="the first of three stages",
        ),
        pytest.param(
            "Qwen/Qwen3-Next-80B-A3B-Instruct",
            Ranks(tensor=2),
            74.281,
            0.01,
            id="Qwen3-Next: the MTP layer stays out",
        ),
        pytest.param("openai/gpt-oss-120b", Ranks(), 65.94, 0.03, id="gpt-oss: padded experts"),
        pytest.param(
            "deepseek-ai/DeepSeek-V3",
            Ranks(tensor=8),
            79.31 + 0.238,  # as stored, and W_UK and W_UV in bf16: 61 times 4 MiB
            0.03,
            id="DeepSeek-V3 on eight",
        ),
        pytest.param("google/gemma-3-27b-it", Ranks(), 51.1, 0.3, id="Gemma 3 with its tower"),
    ],
)
def test_a_rank_holds_what_the_real_one_says(name, ranks, want_gib, tolerance):
    assert weight_bytes(checkpoint(name), ranks)[0] / GIB == pytest.approx(want_gib, abs=tolerance)


def test_without_tensors_the_total_is_divided():
    only_total = Checkpoint({"num_hidden_layers": 4}, [], 8 * GIB)
    assert weight_bytes(only_total, Ranks(tensor=2, pipeline=2)) == [2 * GIB, 2 * GIB]


@pytest.mark.parametrize(
    ("layers", "stages", "want"),
    [
        pytest.param(64, 3, [21, 22, 21], id="one left over: the stage before the last"),
        pytest.param(62, 4, [15, 16, 16, 15], id="two left over"),
        pytest.param(61, 4, [15, 15, 16, 15], id="the last stage never takes one"),
        pytest.param(63, 4, [16, 16, 16, 15], id="the first only when all others have"),
    ],
)
def test_layers_are_spread_over_stages(layers, stages, want):
    held = [stage_of(layer, layers, stages) for layer in range(layers)]
    assert [held.count(stage) for stage in range(stages)] == want
