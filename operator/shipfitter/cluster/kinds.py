"""Where each kind of object lives in the API: the rows we read or write, and no others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GROUP = "shipfitter.dev"
OWNER_LABEL = f"{GROUP}/modeldeployment"  # on everything we create: the ModelDeployment's name
TEMPLATE_ANNOTATION = f"{GROUP}/template"  # on pods: a digest of what they were made from
CLAIMS_ANNOTATION = f"{GROUP}/claims"  # on pods: what their claims take
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
SERVES_LABEL = f"{GROUP}/serves"  # on pods that answer requests: no workers of a group
VARIANT_LABEL = f"{GROUP}/variant"  # on workloads and their pods


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the API's table of resources."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or its subresource.

        >>> DEPLOYMENT.path("default", "llama")
        '/apis/apps/v1/namespaces/default/deployments/llama'
        >>> NODE.path()
        '/api/v1/nodes'
        """
        root = "/apis/" if "/" in self.api_version else "/api/"
        parts = [f"{root}{self.api_version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


NODE = Kind("v1", "Node", "nodes", namespaced=False)
POD = Kind("v1", "Pod", "pods")
SERVICE = Kind("v1", "Service", "services")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
JOB = Kind("batch/v1", "Job", "jobs")
LEADER_WORKER_SET = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
CLAIM_TEMPLATE = Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_SLICE = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIM = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
DEVICE_CLASS = Kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", namespaced=False)
NODE_POOL = Kind("karpenter.sh/v1", "NodePool", "nodepools", namespaced=False)
# Cluster API's groups under the newer and the older version; a cluster serves one or both.
MACHINE_DEPLOYMENT = Kind("cluster.x-k8s.io/v1beta2", "MachineDeployment", "machinedeployments")
MACHINE_DEPLOYMENT_BEFORE = Kind(
    "cluster.x-k8s.io/v1beta1", "MachineDeployment", "machinedeployments"
)
OPENSHIFT_MACHINE_SET = Kind("machine.openshift.io/v1beta1", "MachineSet", "machinesets")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
EVENT = Kind("events.k8s.io/v1", "Event", "events")
MODEL_DEPLOYMENT = Kind(f"{GROUP}/v1alpha1", "ModelDeployment", "modeldeployments")
GPU_NODE = Kind(f"{GROUP}/v1alpha1", "GPUNode", "gpunodes", namespaced=False)
CALIBRATION = Kind(f"{GROUP}/v1alpha1", "Calibration", "calibrations", namespaced=False)

WORKLOAD_KINDS = frozenset({DEPLOYMENT.kind, LEADER_WORKER_SET.kind})

KINDS: Mapping[tuple[str, str], Kind] = {
    (row.api_version, row.kind): row for row in list(globals().values()) if isinstance(row, Kind)
}


def kind_of(manifest: Mapping[str, Any]) -> Kind:
    """The row of a manifest that carries `apiVersion` and `kind`."""
    return KINDS[manifest["apiVersion"], manifest["kind"]]
