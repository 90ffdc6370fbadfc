"""Published models as the engine itself builds and plans them: weights, blocks, tokens."""

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from builders_models import facts_of
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.kvcache import cache_layout, plan_cache
from shipfitter.core.weights import ParallelLayout, weights_bytes
from shipfitter.units import GIB

_ANSWERS = Path(__file__).parents[2] / "oracle" / "answers" / "models-0.32.0.json.gz"
_AVAILABLE_BYTES = 24 * GIB
_WEIGHTS_TOLERANCE = 0.002
_GPU = Gpu(product="NVIDIA-H100-80GB-HBM3", total_bytes=85_029_158_912, compute_capability=(9, 0))


@cache
def _answered():
    rows = json.loads(gzip.decompress(_ANSWERS.read_bytes()))["answers"]
    return [row for row in rows if "refused" not in row]


def _settings(row, model):
    layout = ParallelLayout(tensor_parallel_size=row["tp"], pipeline_parallel_size=row["pp"])
    asked = EngineSettings(
        version=EngineVersion(0, 32, 0), layout=layout, kv_cache_dtype=row["cache"]
    )
    return resolve(asked, model, _GPU)


def _planned(row):
    """Our plan in the oracle's form."""
    model = facts_of(row["model"])
    settings = _settings(row, model)
    layout = cache_layout(model, settings, _GPU)
    plan = plan_cache(layout, settings, (_AVAILABLE_BYTES,) * row["pp"])
    if plan.refusal in (None, "StateBlocksTooFew"):
        figures = (plan.num_gpu_blocks, plan.kv_cache_tokens, round(plan.max_concurrency, 4))
        return ["Fits", *figures, plan.max_model_len, None, None]
    needed = round(plan.needed_bytes / GIB, 2)
    longest = plan.estimated_max_model_len
    return [plan.refusal, None, None, None, plan.max_model_len, needed, longest]


def _weights(row):
    """Bytes of the tensors, before the allocator rounds each up."""
    model = facts_of(row["model"])
    groups = tuple(replace(group, tensor="") for group in model.weight_groups)
    model = replace(model, weight_groups=groups)
    layout = _settings(row, model).layout
    return [weights_bytes(model, layout, stage=stage) for stage in range(row["pp"])]


# Where we and the engine still differ, each with what is known of it; nothing else may, and a row
# that comes to agree must leave the list.
_OPEN_PLANS = {
    "Mistral-Small-3.1-24B-Instruct-2503-quantized.w8a8": "the config here has no sliding_window: "
    "the engine's config class then takes 4,096, published ones say null",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": "the engine does not see this config's quantization, "
    "so the cache is not fp8 either",
}
_OPEN_WEIGHTS = {
    "DeepSeek-V2-Lite-Chat": "0.5 % over: rope table in float32, as with FlashInfer installed",
    "DeepSeek-V3": "0.3 % over: likewise; we count what loading leaves, latents unpacked too",
    "GLM-5.1-FP8": "0.3 % over: latents likewise",
    "Llama-4-Scout-17B-16E-Instruct": "0.4 to 0.7 % over: the config here has no vision_config: "
    "the engine builds the default tower, half as wide as the published one",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": "the engine does not see this config's quantization",
    "Qwen3-30B-A3B-NVFP4": "we count kernels' padding and repacking, done after loading",
    "Qwen3.8-27B-FP8": "1.9 % over: the config here abridges modules_to_not_convert, so the engine "
    "quantises the tower too (and refuses to divide it)",
}


def _differing(agrees):
    return {row["model"] for row in _answered() if not agrees(row)}


def _weighs_alike(row):
    return _weights(row) == pytest.approx(row["weights_bytes"], rel=_WEIGHTS_TOLERANCE)


def test_cache_is_planned_as_the_engine_plans_it():
    assert _differing(lambda row: _planned(row) == row["planned"]) == set(_OPEN_PLANS)


def test_weights_are_those_of_the_engines_own_classes():
    assert _differing(_weighs_alike) == set(_OPEN_WEIGHTS)


def test_what_the_engine_refuses_is_listed_with_its_reason():
    rows = json.loads(gzip.decompress(_ANSWERS.read_bytes()))["answers"]
    refused = [row for row in rows if "refused" in row]

    assert refused
    assert all(row["refused"] for row in refused)
    assert len(refused) + len(_answered()) == len(rows)
