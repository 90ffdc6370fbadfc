"""What is kept of each object, and that the rest may change without a trace."""

import copy

import pytest

from shipfitter.cluster import trim

NODE = {
    "metadata": {
        "name": "n1",
        "uid": "u1",
        "labels": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
        "annotations": {"noise": "1"},
        "managedFields": [{"manager": "kubelet"}],
        "resourceVersion": "7",
    },
    "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule", "timeAdded": "2026"}]},
    "status": {
        "allocatable": {"nvidia.com/gpu": "8"},
        "capacity": {"nvidia.com/gpu": "8", "memory": "1Ti"},
        "conditions": [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        ],
        "images": [{"names": ["big"], "sizeBytes": 1}],
        "nodeInfo": {"bootID": "b1", "architecture": "amd64"},
    },
}


def node_with(path, value):
    changed = copy.deepcopy(NODE)
    *parents, last = path.split(".")
    target = changed
    for part in parents:
        target = target[int(part)] if part.isdigit() else target[part]
    target[last] = value
    return changed


def test_a_node_keeps_the_apis_own_shape():
    assert trim.node(NODE) == {
        "metadata": {
            "name": "n1",
            "uid": "u1",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
        },
        "spec": {
            "unschedulable": False,
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": "8"},
            "capacity": {"nvidia.com/gpu": "8", "memory": "1Ti"},
            "nodeInfo": {"bootID": "b1", "architecture": "amd64"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.mark.parametrize(
    ("path", "value", "want_same"),
    [
        pytest.param("metadata.resourceVersion", "8", True, id="a version is no news"),
        pytest.param(
            "status.conditions.0.lastHeartbeatTime", "2027", True, id="a heartbeat is no news"
        ),
        pytest.param("status.images", [], True, id="a pulled image is no news"),
        pytest.param("metadata.annotations", {}, True, id="an annotation is no news"),
        pytest.param("status.conditions.0.status", "False", False, id="not ready is news"),
        pytest.param("spec.unschedulable", True, False, id="a cordon is news"),
        pytest.param("metadata.deletionTimestamp", "2026", False, id="leaving is news"),
        pytest.param("status.nodeInfo.bootID", "b2", False, id="a reboot is news"),
        pytest.param("status.allocatable", {}, False, id="fewer GPUs are news"),
        pytest.param("metadata.labels", {}, False, id="a label is news"),
    ],
)
def test_what_is_news_of_a_node(path, value, want_same):
    assert (trim.node(node_with(path, value)) == trim.node(NODE)) is want_same


POD = {
    "metadata": {
        "name": "llama-abc-x",
        "namespace": "team",
        "labels": {
            "shipfitter.dev/modeldeployment": "llama",
            "shipfitter.dev/variant": "llama-abc",
            "shipfitter.dev/serves": "true",
        },
        "annotations": {"shipfitter.dev/template": "77"},
    },
    "spec": {
        "nodeName": "n1",
        "containers": [
            {"name": "engine", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}}},
            {"name": "sidecar"},
        ],
    },
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.7",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [
            {"name": "sidecar", "restartCount": 0, "state": {"running": {}}},
            {
                "name": "engine",
                "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "message": "out of memory"}},
            },
        ],
    },
}


def test_a_pod_keeps_where_it_is_and_its_last_words():
    assert trim.own_pod(POD) == trim.OwnPod(
        namespace="team",
        name="llama-abc-x",
        owner="llama",
        variant="llama-abc",
        phase="Running",
        ready=False,
        node="n1",
        gpus={"nvidia.com/gpu": 2},
        template_hash="77",
        container="engine",
        restarts=3,
        waiting_reason="CrashLoopBackOff",
        termination_message="out of memory",
        exit_code=1,
        address="10.0.0.7",
    )


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        pytest.param(
            {"status": "False", "reason": "Unschedulable", "lastTransitionTime": "2026-01-02"},
            "2026-01-02",
            id="no node fits: since then",
        ),
        pytest.param(
            {"status": "False", "reason": "SchedulingGated", "lastTransitionTime": "2026-01-02"},
            "",
            id="held back on purpose is no waiting for a GPU",
        ),
        pytest.param({"status": "True"}, "", id="scheduled"),
    ],
)
def test_since_when_a_pod_waits_for_a_node(condition, want):
    raw = copy.deepcopy(POD)
    raw["status"]["conditions"].append({"type": "PodScheduled", **condition})
    assert trim.own_pod(raw).unschedulable_since == want


def test_a_new_pod_without_any_status_is_pending():
    raw = {"metadata": POD["metadata"], "spec": {"containers": [{"name": "engine"}]}}
    pod = trim.own_pod(raw)
    assert (pod.phase, pod.ready, pod.node, pod.gpus) == ("Pending", False, "", {})


WORKLOAD = {
    "metadata": {
        "name": "llama-abc",
        "namespace": "team",
        "uid": "u",
        "labels": {"shipfitter.dev/modeldeployment": "llama", "shipfitter.dev/variant": "v"},
        "annotations": {"deployment.kubernetes.io/revision": "1"},
        "resourceVersion": "5",
    },
    "spec": {
        "replicas": 3,
        "template": {
            "spec": {
                "nodeSelector": {"kubernetes.io/arch": "amd64"},
                "containers": [{"name": "e", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            }
        },
    },
    "status": {
        "readyReplicas": 2,
        "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "2026"}],
    },
}


def workload_with(**changes):
    raw = copy.deepcopy(WORKLOAD)
    for part, value in changes.items():
        raw[part] = {**raw[part], **value}
    return trim.own_workload(raw)


@pytest.mark.parametrize(
    ("changes", "want_same"),
    [
        pytest.param(
            {"metadata": {"resourceVersion": "6", "managedFields": []}}, True, id="bookkeeping"
        ),
        pytest.param(
            {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}},
            True,
            id="the controller's own count",
        ),
        pytest.param({"spec": {"replicas": 4}}, False, id="somebody scaled it"),
        pytest.param({"metadata": {"labels": {}}}, False, id="somebody took its labels"),
        pytest.param({"status": {"readyReplicas": 3}}, False, id="one more is ready"),
        pytest.param(
            {
                "status": {
                    "readyReplicas": 2,
                    "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "27"}],
                }
            },
            True,
            id="a condition's clock",
        ),
    ],
)
def test_what_is_news_of_a_workload(changes, want_same):
    assert (workload_with(**changes) == workload_with()) is want_same


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param(
            {"shipfitter.dev/claims": "gpu.nvidia.com/NVIDIA-L40S=2"},
            {"gpu.nvidia.com/NVIDIA-L40S": 2},
            id="by its claims",
        ),
        pytest.param({"shipfitter.dev/claims": "nonsense"}, {}, id="what nobody wrote so"),
        pytest.param({}, {}, id="a pod without GPUs"),
    ],
)
def test_what_a_pod_takes_by_claims(annotations, want):
    raw = copy.deepcopy(POD)
    raw["metadata"]["annotations"] = annotations
    for container in raw["spec"]["containers"]:
        container.pop("resources", None)
    assert trim.own_pod(raw).gpus == want


@pytest.mark.parametrize(
    ("written", "want"),
    [("7", 7), ("", 0), ("soon", 0), ("-3", 0)],
    ids=["a number", "nothing", "no number", "below what we ever write"],
)
def test_a_pod_says_how_dear_it_is_to_take_away(written, want):
    raw = copy.deepcopy(POD)
    raw["metadata"].setdefault("annotations", {})
    raw["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = written
    assert trim.own_pod(raw).deletion_cost == want
