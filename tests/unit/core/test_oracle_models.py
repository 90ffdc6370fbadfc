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
from shipfitter.core.model import model_facts
from shipfitter.core.weights import ParallelLayout, weights_bytes
from shipfitter.units import GIB, MIB

_ORACLE = Path(__file__).parents[2] / "oracle"
_ANSWERS = _ORACLE / "answers" / "models-0.32.0.json.gz"
_CLASSES = json.loads((_ORACLE / "classes.json").read_text())
_AVAILABLE_BYTES = 24 * GIB
_WEIGHTS_TOLERANCE = 0.002
_SMALL_BYTES = 2.1 * MIB  # classes in small: rope tables that transformers makes anew, gates
_GPU = Gpu(product="NVIDIA-H100-80GB-HBM3", total_bytes=85_029_158_912, compute_capability=(9, 0))


@cache
def _answered():
    rows = json.loads(gzip.decompress(_ANSWERS.read_bytes()))["answers"]
    return [row for row in rows if "refused" not in row]


@cache
def _facts(name):
    """A published model, or a class in small."""
    if name in _CLASSES:
        return model_facts(_CLASSES[name], name=name)
    return facts_of(name)


def _settings(row, model):
    layout = ParallelLayout(tensor_parallel_size=row["tp"], pipeline_parallel_size=row["pp"])
    asked = EngineSettings(
        version=EngineVersion(0, 32, 0), layout=layout, kv_cache_dtype=row["cache"]
    )
    return resolve(asked, model, _GPU)


def _planned(row):
    """Our plan in the oracle's form."""
    model = _facts(row["model"])
    settings = _settings(row, model)
    layout = cache_layout(model, settings, _GPU)
    plan = plan_cache(layout, settings, (_AVAILABLE_BYTES,) * row["pp"])
    if not any(layout.bytes_per_block):
        return None  # nothing is kept
    if plan.refusal in (None, "StateBlocksTooFew"):
        figures = (plan.num_gpu_blocks, plan.kv_cache_tokens, round(plan.max_concurrency, 4))
        return ["Fits", *figures, plan.max_model_len, None, None]
    needed = round(plan.needed_bytes / GIB, 2)
    longest = plan.estimated_max_model_len
    return [plan.refusal, None, None, None, plan.max_model_len, needed, longest]


def _weights(row):
    """Bytes of the tensors as the classes make them: not rounded or unpacked by kernels."""
    model = _facts(row["model"])
    groups = tuple(replace(group, tensor="") for group in model.weight_groups if not group.unpacked)
    if model.quantization is not None and model.quantization.method != "mxfp4":
        groups = tuple(  # kernels for NVFP4 pad after loading, those for MXFP4 before
            replace(group, padded_size=0, padded_multiple=1) for group in groups
        )
    model = replace(model, weight_groups=groups)
    layout = _settings(row, model).layout
    return [weights_bytes(model, layout, stage=stage) for stage in range(row["pp"])]


# Where we and the engine still differ, each with what is known of it; nothing else may, and a row
# that comes to agree must leave the list.
_OPEN_WEIGHTS = {
    "BertForSequenceClassification": "the dense layer of the pooler is kept in float32",
    "GPTBigCodeForCausalLM": "one key-value head, learned positions and tables on every stage",
    "PersimmonForCausalLM": "through transformers, which divides nothing between stages",
    "Qwen2ForRewardModel": "the layers that score are kept in float32",
    "Qwen3.8-27B-FP8": "this release keeps a quarter of the rope rows that those up to 0.24 keep",
}


def _differing(agrees):
    return {row["model"] for row in _answered() if not agrees(row)}


def _weighs_alike(row):
    return _weights(row) == pytest.approx(
        row["weights_bytes"], rel=_WEIGHTS_TOLERANCE, abs=_SMALL_BYTES
    )


def test_cache_is_planned_as_the_engine_plans_it():
    assert _differing(lambda row: _planned(row) == row["planned"]) == set()


def test_weights_are_those_of_the_engines_own_classes():
    assert _differing(_weighs_alike) == set(_OPEN_WEIGHTS)


def test_what_the_engine_refuses_is_listed_with_its_reason():
    rows = json.loads(gzip.decompress(_ANSWERS.read_bytes()))["answers"]
    refused = [row for row in rows if "refused" in row]

    assert refused
    assert all(row["refused"] for row in refused)
    assert len(refused) + len(_answered()) == len(rows)
