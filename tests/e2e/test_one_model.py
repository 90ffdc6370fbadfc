"""Five lines in, a sized pod out: and the engine's own numbers agree with the plan."""

import json
import re
import subprocess
import sys

import pytest

from e2e.stories import (
    EXAMPLE,
    L40S,
    args_of,
    at_rest,
    call,
    flag,
    gpus_of,
    measured,
    serving,
    stays,
    variant,
    versions,
)
from shipfitter.units import GIB
from world.stage import ROOT

pytestmark = pytest.mark.plane
NAME = "llama-8b"
CACHE_LINE = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
CONCURRENCY_LINE = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")


def planned_on_paper():
    """What `shipfitter plan` says of an L40S: the operator must come to the same."""
    plan = [sys.executable, "-m", "shipfitter", "plan", "-f", EXAMPLE, "--gpu", f"{L40S}:1"]
    result = subprocess.run(
        [*plan, "-o", "json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)["plan"]["variants"][0]


@pytest.fixture(scope="module")
def served(world):
    """The example on one L40S whose engine needs exactly what the plan assumes; and the paper."""
    with world.operator_away():  # what engines of other stories taught it is forgotten
        world.clear()
    paper = planned_on_paper()
    budget = paper["budget"]
    engine = {
        "activation_gib": budget["activationBytes"] / GIB,
        "graphs_gib": budget["cudaGraphBytes"] / GIB,
        "graph_estimate_gib": budget["cudaGraphBytes"] / GIB,
        "overhead_gib": budget["overheadBytes"] / GIB,
    }
    world.add_gpu_node("l40s-1", L40S, 1, engine=engine)
    measured(world, "l40s-1")
    world.apply(EXAMPLE)
    world.eventually(lambda: world.ready(NAME), what="the example serves")
    (pod,) = serving(world, NAME)
    return paper, pod


def number(text):
    return int(text.replace(",", ""))


def test_the_operator_plans_what_the_command_line_planned(world, served):
    paper, _ = served
    here = variant(world, NAME)
    for field in ("maxModelLen", "maxNumSeqs", "gpuMemoryUtilization", "kvCacheTokens", "budget"):
        assert here[field] == paper[field], field
    assert here["capacitySource"] == "Measured"


def test_the_engine_gets_the_cache_the_plan_promised(world, served):
    _, pod = served
    planned = variant(world, NAME)
    log = world.plane.kubectl("logs", pod["metadata"]["name"])
    tokens = number(CACHE_LINE.search(log)[1])
    length, concurrency = CONCURRENCY_LINE.search(log).groups()
    block = planned["attentionBlockSize"]
    assert tokens == pytest.approx(planned["kvCacheTokens"], abs=block)
    assert number(length) == planned["maxModelLen"]
    assert float(concurrency) == pytest.approx(planned["maxConcurrency"], abs=0.01)


def test_metrics_through_the_service_tell_the_same(world, served):
    planned = variant(world, NAME)
    page = call(world, f"http://{NAME}.default.svc:8000/metrics")
    (info,) = (line for line in page.splitlines() if line.startswith("vllm:cache_config_info"))
    blocks = int(re.search(r'num_gpu_blocks="(\d+)"', info)[1])
    assert blocks == pytest.approx(planned["numGpuBlocks"], abs=1)
    assert f'gpu_memory_utilization="{planned["gpuMemoryUtilization"]}"' in info


def test_clients_reach_the_model_by_both_names(world, served):
    paper, _ = served
    models = json.loads(call(world, f"http://{NAME}.default.svc:8000/v1/models"))["data"]
    lengths = {each["id"]: each["max_model_len"] for each in models}
    names = (NAME, "meta-llama/Llama-3.1-8B-Instruct")
    assert lengths == dict.fromkeys(names, paper["maxModelLen"])
    for name in names:
        wish = {"model": name, "prompt": "Hello", "max_tokens": 4}
        answer = json.loads(call(world, f"http://{NAME}.default.svc:8000/v1/completions", wish))
        assert (answer["model"], bool(answer["choices"][0]["text"])) == (name, True)


def test_the_pod_runs_with_the_planned_sizes(world, served):
    _, pod = served
    planned = variant(world, NAME)
    sizes = {
        "max-model-len": "maxModelLen",
        "max-num-seqs": "maxNumSeqs",
        "max-num-batched-tokens": "maxNumBatchedTokens",
        "gpu-memory-utilization": "gpuMemoryUtilization",
        "kv-cache-dtype": "kvCacheDtype",
        "tensor-parallel-size": "tensorParallelSize",
        "pipeline-parallel-size": "pipelineParallelSize",
        "max-cudagraph-capture-size": "maxCudagraphCaptureSize",
    }
    assert {name: flag(pod, name) for name in sizes} == {
        name: str(planned[field]) for name, field in sizes.items()
    }
    assert f"--revision={world.status(NAME)['model']['revision']}" in args_of(pod)


def test_the_pod_asks_for_what_the_plan_needs_and_no_more(world, served):
    _, pod = served
    spec = pod["spec"]
    (engine,) = spec["containers"]
    assert gpus_of(pod) == 1
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(engine)
    assert {"cpu", "memory"} <= set(engine["resources"]["requests"])
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    products = {e["key"]: e["values"] for e in term["matchExpressions"] if e["operator"] == "In"}
    assert products["nvidia.com/gpu.product"] == [L40S]
    assert "kubernetes.io/hostname" not in products
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    shm = [volume for volume in spec["volumes"] if volume.get("emptyDir", {}).get("medium")]
    assert shm, "no memory volume for /dev/shm"


def test_the_users_object_is_left_as_the_user_wrote_it(world, served):
    metadata = world.get("modeldeployment", NAME)["metadata"]
    assert "finalizers" not in metadata
    assert set(metadata["annotations"]) == {"kubectl.kubernetes.io/last-applied-configuration"}
    assert not metadata.get("labels")


def test_everything_made_is_owned_so_that_deleting_works_without_us(world, served):
    uid = world.get("modeldeployment", NAME)["metadata"]["uid"]
    owner = f"shipfitter.dev/modeldeployment={NAME}"
    for kind in ("deployments", "services", "configmaps"):
        made = world.objects(kind, selector=owner)
        assert made, kind
        for each in made:
            assert [o["uid"] for o in each["metadata"]["ownerReferences"]] == [uid], kind


def test_a_world_at_rest_is_written_nothing(world, served):
    before = at_rest(world, NAME)
    assert stays(lambda: versions(world, NAME), seconds=10) == before
