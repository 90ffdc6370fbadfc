"""A plan written down and read again."""

import json
from dataclasses import fields, replace

import pytest

from shipfitter.api.engine_version import engine_version
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.inventory import CapacitySource, Pool, Taint
from shipfitter.core.weights import ParallelLayout
from shipfitter.render.plan_record import plan_record, read_plan
from unit.api.mistakes import minimal
from unit.render.plans import (
    BUDGET,
    DECIDED_AT,
    INPUTS,
    LLAMA_8B,
    SETTINGS,
    SIZING,
    plan,
    ranks,
    record,
    resource,
    sizing,
)

MODELS = {SIZING.model.uri: LLAMA_8B}


def read(planned):
    return read_plan(json.loads(json.dumps(record(resource(), planned))), MODELS)


def as_recorded(planned):
    """With its time, and without who is in the pool: that is not part of a plan."""
    return replace(
        planned,
        variants=tuple(
            replace(
                v,
                sizing=replace(v.sizing, pool=replace(v.sizing.pool, nodes=())),
                decided_at=DECIDED_AT,
            )
            for v in planned.variants
        ),
    )


def test_the_record_holds_what_a_person_wants_to_know():
    written = record(resource(), plan(SIZING))
    (variant,) = written["variants"]
    assert written["inputsHash"] == INPUTS
    assert written["decidedAt"] == DECIDED_AT
    assert written["alternatives"] == [
        {"summary": "2 × NVIDIA-L40S", "wouldAllow": "max_num_seqs 256"}
    ]
    assert written["frontier"][0] == {"maxModelLen": 65_536, "maxNumSeqs": 3}
    assert variant["maxModelLen"] == 131_072
    assert variant["budget"]["marginBytes"] == 433_162_185
    parts = ("weightsBytes", "overheadBytes", "activationBytes", "cudaGraphBytes", "kvCacheBytes")
    budget = variant["budget"]
    assert sum(budget[part] for part in parts) == budget["requestedBytes"]
    assert budget["requestedBytes"] + budget["notRequestedBytes"] == budget["totalBytes"]
    assert "settings" not in variant, "usual settings are left out"
    assert "cudagraphCaptureSizes" not in variant, "the usual list follows from its largest size"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="as it is"),
        pytest.param(
            {"settings": {"layout": ranks(4, data_parallel_size=2, enable_expert_parallel=True)}},
            id="a layout",
        ),
        pytest.param(
            {"settings": {"enforce_eager": True, "cudagraph_capture_sizes": (),
                          "max_cudagraph_capture_size": 0}},
            id="no graphs",
        ),
        pytest.param(
            {"settings": {"cudagraph_capture_sizes": (1, 3), "max_cudagraph_capture_size": 3}},
            id="a pinned list of graphs",
        ),
        pytest.param({"settings": {"version": EngineVersion(0, 11, 2),
                                   "cudagraph_capture_sizes": (1, 2, 4)}}, id="an older engine"),
        pytest.param(
            {"pool": {"source": CapacitySource.LABEL, "sharing": "mps", "replicas_per_gpu": 4,
                      "mig_profile": "1g.10gb", "resource_name": "nvidia.com/mig-1g.10gb",
                      "selector_is_exact": False, "nvlink": True, "foreign_used_bytes": 7,
                      "compute_capability": None, "host_memory_bytes": 0, "taints": (),
                      "other_products": ("NVIDIA-L4",), "unified": True, "selector": {}}},
            id="an unusual pool",
        ),
        pytest.param({"pool": {"taints": (Taint(key="a", value="b", effect="NoExecute"),)}},
                     id="a pool with a taint"),
        pytest.param({"calibrated_observations": 0}, id="without calibration"),
    ],
)  # fmt: skip
def test_what_is_written_is_read_back(changes):
    planned = plan(sizing(**changes))
    assert read(planned) == as_recorded(planned)


def unusual(usual):
    """Another value of the same kind as a setting's default."""
    if isinstance(usual, bool):
        return not usual
    if isinstance(usual, int):
        return usual + 1
    if isinstance(usual, float):
        return usual / 2
    return f"not {usual}" if isinstance(usual, str) else 5


OWN_NAMES = {"version", "layout", "cudagraph_capture_sizes"}


@pytest.mark.parametrize(
    "name", [f.name for f in fields(EngineSettings) if f.name not in OWN_NAMES]
)
def test_no_setting_is_forgotten(name):
    value = unusual(getattr(SETTINGS, name))
    planned = plan(sizing(settings={name: value}))
    got = read(planned).variants[0].sizing.settings
    assert getattr(got, name) == value


@pytest.mark.parametrize("name", [f.name for f in fields(ParallelLayout)])
def test_no_part_of_the_layout_is_forgotten(name):
    layout = replace(ParallelLayout(), **{name: unusual(getattr(ParallelLayout(), name))})
    planned = plan(sizing(settings={"layout": layout}))
    assert read(planned).variants[0].sizing.settings.layout == layout


POOL_NAMES = {"nodes", "selector", "taints", "source", "compute_capability", "other_products"}
OF_NOW = {"grows"}  # what an autoscaler offers today is no part of a plan


@pytest.mark.parametrize(
    "name", [f.name for f in fields(Pool) if f.name not in POOL_NAMES | OF_NOW]
)
def test_no_part_of_the_pool_is_forgotten(name):
    value = unusual(getattr(SIZING.pool, name))
    planned = plan(sizing(pool={name: value}))
    assert getattr(read(planned).variants[0].sizing.pool, name) == value


def test_a_record_fits_the_api():
    written = record(resource(), plan(SIZING, sizing(pool={"name": "other"})))
    body = {**minimal(), "status": {"plan": written, "lastGoodPlan": written}}
    status = ModelDeployment.parse(body).status
    assert status.plan is not None
    assert status.plan.model_dump(mode="json", by_alias=True, exclude_defaults=True) == written


def test_the_api_bounds_what_is_listed():
    many = replace(
        plan(SIZING), alternatives=plan(SIZING).alternatives * 9, frontier=plan(SIZING).frontier * 9
    )
    written = record(resource(), many)
    assert (len(written["alternatives"]), len(written["frontier"])) == (3, 8)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda r: None, "there is no record"),
        (lambda r: {}, "the record is empty"),
        (lambda r: {"variants": []}, "it has no variant"),
        (lambda r: {"variants": [{"name": "x"}]}, "a variant is not whole"),
        (lambda r: {"variants": "x"}, "it is no record of ours"),
        (lambda r: changed_variant(r, modelUri="hf://a/b"), "its model is not known"),
        (lambda r: changed_variant(r, engineVersion="latest"), "its engine is not known"),
        (lambda r: changed_variant(r, capacitySource="Guess"), "its source is not known"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_plan_is_read_where(damage, why):
    assert read_plan(damage(record(resource(), plan(SIZING))), MODELS) is None, why


def changed_variant(written, **changes):
    (variant,) = written["variants"]
    return {**written, "variants": [{**variant, **changes}]}


def test_what_a_newer_release_added_is_passed_over():
    written = record(resource(), plan(SIZING))
    newer = changed_variant(written, settings={"new_setting": "true"}, newField=1)
    assert read_plan(newer, MODELS) == as_recorded(plan(SIZING))


def test_reading_and_writing_again_changes_nothing():
    rough = plan(replace(SIZING, max_concurrency=1.6119384765625, one_request_share=1 / 3))
    once = record(resource(), rough)
    again = plan_record(
        resource(), read_plan(once, MODELS), inputs_hash=INPUTS, decided_at=DECIDED_AT,
        reason="Decided",
    )  # fmt: skip
    assert again == once


@pytest.mark.parametrize(
    ("image", "want"),
    [
        ("vllm/vllm-openai:v0.33.0", "0.33.0"),
        ("registry.example:5000/vllm:0.33.0-cu129", "0.33.0"),
        ("vllm:v0.20.1rc1", "0.20.1"),
        ("vllm:v0.33", "0.33"),
        ("vllm:v0.33.0.post1", "0.33.0"),
        ("vllm:latest", None),
        ("vllm", None),
        ("registry.example:5000/vllm", None),
        ("vllm:v0.33.0@sha256:" + "0" * 64, None),
    ],
)
def test_engine_version(image, want):
    assert engine_version(image) == want


def test_engines_that_took_less_than_nothing_of_overhead_are_written_with_the_same_sum():
    """A calibration may be larger than the overhead it is taken off."""
    thrifty = replace(
        BUDGET,
        overhead_bytes=-95_756_864,
        activation_bytes=BUDGET.activation_bytes + BUDGET.overhead_bytes + 95_756_864,
    )
    assert thrifty.check()
    (variant,) = record(resource(), plan(replace(SIZING, budget=thrifty)))["variants"]
    budget = variant["budget"]
    parts = ("weightsBytes", "overheadBytes", "activationBytes", "cudaGraphBytes", "kvCacheBytes")
    assert budget["overheadBytes"] == 0
    assert sum(budget[part] for part in parts) == budget["requestedBytes"]
