"""ResourceQuotas: what of them is kept, whose pods they count, and who is woken by a change."""

import pytest

from shipfitter.cluster.queue import Key
from shipfitter.cluster.quotas import gpu_quotas, namespace_quota
from shipfitter.core.quota import GpuQuota

GPU = "requests.nvidia.com/gpu"
KEY = Key("default", "llama")


def quota(hard, used=None, name="gpus", **spec):
    """A ResourceQuota as the API server has it."""
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }


def said(*raws, own=None, priority=""):
    return gpu_quotas(map(namespace_quota, raws), KEY, priority, own or {})


def test_own_use_is_given_back():
    (found,) = said(quota({GPU: "8"}, {GPU: "5"}), own={"nvidia.com/gpu": 3})
    assert found == GpuQuota(name="gpus", resource_name="nvidia.com/gpu", hard=8, used_by_others=2)
    assert found.left == 6
    assert str(found) == "ResourceQuota gpus allows 8 nvidia.com/gpu, of which others use 2"


@pytest.mark.parametrize(
    ("hard", "want"),
    [
        pytest.param({"requests.cpu": "8", "pods": "5"}, {}, id="one that counts no devices"),
        pytest.param(
            {GPU: "8", "requests.nvidia.com/mig-1g.10gb": "2"},
            {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 2},
            id="devices of any name",
        ),
        pytest.param(
            {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "4"},
            {"gpu.nvidia.com/*": 4},
            id="devices that claims take",
        ),
        pytest.param({"requests.storage": "10Gi", GPU: "1"}, {"nvidia.com/gpu": 1}, id="storage"),
    ],
)
def test_what_is_counted(hard, want):
    assert {each.resource_name: each.hard for each in said(quota(hard))} == want


def test_claimed_devices_count_whatever_the_product():
    devices = {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "4"}
    (found,) = said(quota(devices, devices), own={"gpu.nvidia.com/NVIDIA-L40S": 1})
    assert (found.left, found.counts("gpu.nvidia.com/NVIDIA-L4")) == (1, True)
    assert not found.counts("nvidia.com/gpu")
    assert found.key == "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"


def scoped(scope, operator="Exists", *values):
    expression = {"scopeName": scope, "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [expression]}}


@pytest.mark.parametrize(
    ("spec", "priority", "want"),
    [
        pytest.param({"scopes": ["NotTerminating"]}, "", True, id="pods without an end"),
        pytest.param({"scopes": ["Terminating"]}, "", False, id="pods with an end"),
        pytest.param({"scopes": ["NotBestEffort"]}, "", True, id="pods with requests"),
        pytest.param({"scopes": ["BestEffort"]}, "", False, id="pods without requests"),
        pytest.param(scoped("PriorityClass", "In", "low"), "low", True, id="this priority"),
        pytest.param(scoped("PriorityClass", "In", "low"), "", False, id="another priority"),
        pytest.param(scoped("PriorityClass", "NotIn", "low"), "high", True, id="all but another"),
        pytest.param(scoped("PriorityClass"), "", False, id="any priority where there is none"),
        pytest.param(scoped("PriorityClass", "DoesNotExist"), "", True, id="no priority"),
        pytest.param(
            {"scopes": ["NotTerminating", "BestEffort"]}, "", False, id="all scopes must match"
        ),
    ],
)
def test_scopes(spec, priority, want):
    assert bool(said(quota({GPU: "8"}, **spec), priority=priority)) is want


def test_what_counts_no_devices_changes_nothing_that_is_kept():
    before = namespace_quota(quota({"pods": "5"}, {"pods": "1"}))
    assert namespace_quota(quota({"pods": "5"}, {"pods": "2"})) == before


def test_quotas_of_other_namespaces_say_nothing():
    raw = quota({GPU: "8"})
    raw["metadata"]["namespace"] = "other"
    assert not said(raw)
