"""`shipfitter gpus`: pools on 80 columns, as JSON, and what a spelling stands for."""

import json

import pytest
import yaml

from builders_nodes import PLATFORM, gpu, gpu_labels, gpunode, node
from builders_slices import gpu_device, slice_manifest
from shipfitter.cli.gpus import run_gpus
from shipfitter.core.gpus import resolve_product
from shipfitter.units import GIB, MIB

MOST_COLUMNS = 80


@pytest.fixture
def run(capsys):
    def run_once(nodes=None, *, resolve=None, output="text"):
        code = run_gpus(nodes, resolve=resolve, output=output, context=None)
        printed = capsys.readouterr()
        if output == "text":
            assert all(len(line) <= MOST_COLUMNS for line in printed.out.splitlines())
        return code, printed.out, printed.err

    return run_once


@pytest.fixture
def file_of(tmp_path):
    def write(*objects):
        path = tmp_path / "nodes.yaml"
        path.write_text(yaml.safe_dump({"kind": "List", "items": list(objects)}))
        return path

    return write


def kind(of, raw):
    return {"kind": of, **raw}


L40S = gpu_labels("NVIDIA-L40S", 8)
FLEET = (
    kind("Node", node("a1", labels=L40S, gpus=8)),
    kind("GPUNode", gpunode("a1", gpus=(gpu(),) * 8)),
    kind("Node", node("a2", labels=L40S, gpus=8)),
    kind("GPUNode", gpunode("a2", gpus=(gpu(),) * 8)),
    kind("Node", node("c1", labels=L40S, gpus=8, unschedulable=True)),
    kind(
        "Node",
        node("b1", labels=gpu_labels("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 4), gpus=4),
    ),
    kind("Node", node("web", labels=PLATFORM)),
    kind("Node", node("d1", labels=PLATFORM)),
    kind("ResourceSlice", slice_manifest("d1", [gpu_device("g0", "l4"), gpu_device("g1", "h100")])),
)


def test_a_line_for_each_pool_and_the_nodes_that_count_for_none(run, file_of):
    code, out, _ = run(file_of(*FLEET))
    assert code == 0
    assert out.splitlines() == [
        "PRODUCT         NODES  GPUS  FREE    USABLE  SOURCE         CONFIDENCE",
        "L40S                2    16    16  44.4 GiB  Measured       high",
        "RTX-PRO-6000-Blackwell-Server-Edition",
        "                    1     4     4  95.0 GiB  Label          good",
        "H100-80GB-HBM3      1     1     1  79.2 GiB  ResourceSlice  good",
        "  by ResourceClaim: spec.gpus.allocation DRA",
        "L4                  1     1     1  22.1 GiB  ResourceSlice  good",
        "  by ResourceClaim: spec.gpus.allocation DRA",
        "",
        "left out:",
        "  c1: cordoned, or going",
    ]


def test_the_same_for_programs(run, file_of):
    code, out, _ = run(file_of(*FLEET), output="json")
    record = json.loads(out)
    assert code == 0
    first = record["pools"][0]
    assert {key: first[key] for key in ("product", "nodes", "gpus", "free", "source")} == {
        "product": "NVIDIA-L40S",
        "nodes": 2,
        "gpus": 16,
        "free": 16,
        "source": "Measured",
    }
    assert (first["usableBytes"], first["confidence"]) == (45_455 * MIB, "high")
    assert first["members"] == [{"node": "a1", "free": 8}, {"node": "a2", "free": 8}]
    assert record["leftOut"] == [{"node": "c1", "reason": "cordoned, or going"}]
    assert sum(pool["gpus"] for pool in record["pools"]) == 16 + 4 + 2


def test_what_a_plan_has_to_mind_stands_below_the_pool(run, file_of):
    shared = gpu_labels("NVIDIA-L4", 1) | {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "4",
    }
    sliced = gpu(
        "NVIDIA-A100-SXM4-40GB",
        migEnabled=True,
        migDevices=[{"uuid": "MIG-1", "profile": "3g.20gb", "memoryBytes": 19_968 * MIB}],
    )
    busy = gpu("h100", memory={"foreignUsedBytes": 2 * GIB})
    _, out, _ = run(
        file_of(
            kind("Node", node("s", labels=shared, gpus=4)),
            kind("Node", node("m", resources={"nvidia.com/mig-3g.20gb": "1"})),
            kind("GPUNode", gpunode("m", gpus=(sliced,))),
            kind("Node", node("x", labels=PLATFORM, gpus=2)),
            kind("GPUNode", gpunode("x", gpus=(gpu(), gpu("l4")))),
            kind("Node", node("h", labels=gpu_labels("NVIDIA-H100-80GB-HBM3", 1), gpus=1)),
            kind("GPUNode", gpunode("h", gpus=(busy,))),
        )
    )
    assert "time-slicing, 4 a GPU: only with spec.gpus.allowShared" in out
    assert "A100-SXM4-40GB 3g.20gb" in out
    assert "mixed with L40S: sized by the smallest" in out
    assert "other programs hold 2.0 GiB of each" in out
    assert "77.2 GiB" in out, "what an engine could have of it"


@pytest.mark.parametrize(
    ("raw", "measured", "want"),
    [
        pytest.param(
            node("n", labels=PLATFORM, gpus=2), None, "its GPUs are not known", id="nobody tells"
        ),
        pytest.param(
            node("n", labels=L40S, gpus=8)
            | {"status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": []}},
            None,
            "not ready",
            id="not ready",
        ),
        pytest.param(
            node("n", labels=L40S),
            gpunode("n", gpus=(gpu(),) * 8),
            "the kubelet offers none",
            id="no device plugin",
        ),
        pytest.param(
            node("n", labels=L40S, gpus=1),
            gpunode("n", gpus=(gpu(health={"state": "Unhealthy", "reason": "Xid79"}),)),
            "no GPU of it is healthy",
            id="broken",
        ),
    ],
)
def test_a_node_that_counts_for_none_and_why(run, file_of, raw, measured, want):
    objects = [kind("Node", raw)] + ([kind("GPUNode", measured)] if measured else [])
    code, out, _ = run(file_of(*objects))
    assert code == 0
    assert f"n: {want}" in out


def test_what_an_agent_tells_and_is_not_believed_is_shown(run, file_of):
    told = gpu(memory={"totalBytes": 96_000 * MIB})
    _, out, _ = run(
        file_of(
            kind("Node", node("n", labels=L40S, gpus=8)),
            kind("GPUNode", gpunode("n", gpus=(told,) * 8)),
        )
    )
    assert "not believed:\n  n: its agent tells 93.8 GiB of NVIDIA-L40S" in out


def test_a_cluster_without_gpus_is_told_so(run, file_of):
    code, out, _ = run(file_of(kind("Node", node("web", labels=PLATFORM))))
    assert (code, out.partition(":")[0]) == (0, "no GPU")


@pytest.mark.parametrize(
    ("spelling", "want_product", "want_gpus"),
    [
        pytest.param("g6e.12xlarge", "NVIDIA-L40S", 4, id="an instance type"),
        pytest.param("nvidia-h100-80gb", "NVIDIA-H100-80GB-HBM3", None, id="a label's value"),
        pytest.param("NVIDIA L40S", "NVIDIA-L40S", None, id="a product string"),
    ],
)
def test_what_a_spelling_stands_for(run, spelling, want_product, want_gpus):
    code, out, err = run(resolve=spelling, output="json")
    record = json.loads(out)
    row = resolve_product(want_product)
    assert (code, err) == (0, "")
    source = record.pop("source")
    assert row.source in source
    assert record == {
        "product": want_product,
        "usableBytes": row.cuda_total_bytes,
        "nominalBytes": row.nominal_bytes,
        "computeCapability": ".".join(map(str, row.compute_capability)),
        "gpusPerNode": want_gpus,
    }
    code, out, _ = run(resolve=spelling)
    assert (code, out.splitlines()[0]) == (0, want_product)


def test_a_mig_slice_has_its_own_bytes(run):
    code, out, _ = run(resolve="NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", output="json")
    record = json.loads(out)
    assert (code, record["usableBytes"], record["migProfile"]) == (0, 19_968 * MIB, "3g.20gb")


def test_a_spelling_that_names_nothing_ends_with_the_nearest(run):
    code, out, err = run(resolve="a100", output="json")
    assert code == 2
    assert json.loads(out)["nearest"][0] == "NVIDIA-A100-SXM4-80GB"
    assert "did you mean NVIDIA-A100-SXM4-80GB" in err
    assert run(resolve="spaceship")[0] == 2


def test_mistakes_end_with_the_way_out(run, tmp_path, monkeypatch):
    code, out, err = run(tmp_path / "missing.yaml")
    assert (code, out) == (2, "")
    assert "missing.yaml: No such file" in err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "give --nodes FILE" in err


def test_nodes_that_an_autoscaler_would_make_are_expected(run, file_of):
    offered = {
        "metadata": {"name": "gpu"},
        "spec": {
            "template": {
                "spec": {
                    "requirements": [
                        {
                            "key": "node.kubernetes.io/instance-type",
                            "operator": "In",
                            "values": ["p5.48xlarge", "g6e.48xlarge"],
                        }
                    ]
                }
            }
        },
    }
    nodes = file_of(*FLEET[:4], kind("NodePool", offered))
    _, out, _ = run(nodes)
    assert out.splitlines() == [
        "PRODUCT         NODES  GPUS  FREE    USABLE  SOURCE    CONFIDENCE",
        "L40S                2    16    16  44.4 GiB  Measured  high",
        "H100-80GB-HBM3      0     0     0  79.2 GiB  Expected  low",
        "  not there yet, 8 a node: NodePool gpu",
    ]
    _, out, _ = run(nodes, output="json")
    pools = json.loads(out)["pools"]
    assert [(pool["source"], pool["expectedFrom"]) for pool in pools] == [
        ("Measured", []),
        ("Expected", ["NodePool gpu"]),
    ]


def test_free_gpus_by_island_stand_in_the_record(run, file_of):
    gpus = tuple(gpu("h100", uuid=f"GPU-{place}") for place in range(4))
    status = {"nvlinkIslands": [[0, 1], [2, 3]], "allocated": ["GPU-0"]}
    _, out, _ = run(
        file_of(
            kind("Node", node("a", labels=gpu_labels("NVIDIA-H100-80GB-HBM3", 4), gpus=4)),
            kind("GPUNode", gpunode("a", gpus=gpus, **status)),
        ),
        output="json",
    )
    (member,) = json.loads(out)["pools"][0]["members"]
    assert member["nvlinkIslands"] == [{"gpus": 2, "free": 1}, {"gpus": 2, "free": 2}]
