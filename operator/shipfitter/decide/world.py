"""What one decision sees (World) and what it wants (Outcome)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shipfitter.core.calibrate import CalibrationKey, Learning
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.inventory import NodeCapacity
from shipfitter.core.model import ModelFacts
from shipfitter.core.quota import GpuQuota
from shipfitter.errors import UserError
from shipfitter.status.load_test import LoadTest
from shipfitter.status.pods import LivePod

__all__ = [
    "Apply",
    "Delete",
    "LivePod",
    "LiveWorkload",
    "Notice",
    "Outcome",
    "Settings",
    "World",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the chart sets for all deployments."""

    default_image: str = "vllm/vllm-openai:v0.33.0"
    cluster_domain: str = "cluster.local"
    settle_seconds: float = 10.0  # how long a change of nodes rests before it may change plans
    hub_endpoint: str = ""
    declared: tuple[ExpectedNodes, ...] = ()  # what the chart says of nodes nobody describes
    read_pod_logs: bool = False  # whether an ended engine's log may be read, for its cause
    label_nodes: bool = False  # whether nodes may be told apart by a label of ours
    inspection_image: str = ""  # of Jobs that read models: our own; empty: there are none


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkload:
    """A variant's Deployment as the API server has it."""

    name: str
    body: Mapping[str, Any]  # the whole object


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that was observed, once, for one decision."""

    now_seconds: float
    nodes: tuple[NodeCapacity, ...]
    models: Mapping[str, ModelFacts | UserError]  # by uri
    workloads: tuple[LiveWorkload, ...] = ()
    pods: tuple[LivePod, ...] = ()
    departed: tuple[LivePod, ...] = ()  # that ended badly and are gone: groups restart whole
    leader_worker_sets: bool = False  # whether a replica can be a group of pods over nodes
    learnt: Mapping[CalibrationKey, Learning] = field(default_factory=dict)
    claim_access_modes: tuple[str, ...] | None = None  # of the cache claim, where it exists
    disruption_budget_uid: str = ""  # of the one that exists
    claim_templates: Mapping[str, str] = field(default_factory=dict)  # of this deployment: uids
    expected: tuple[ExpectedNodes, ...] = ()  # nodes that are not there yet
    has_claims: bool = True  # whether the cluster serves resource.k8s.io/v1
    load_tests: tuple[LoadTest, ...] = ()
    quotas: tuple[GpuQuota, ...] = ()  # of the namespace, on GPUs
    own_requests: Mapping[str, int] = field(default_factory=dict)  # GPUs all pods of it ask for
    settings: Settings = field(default_factory=Settings)

    @property
    def replicas(self) -> tuple[LivePod, ...]:
        """A pod for each replica: of a group over several nodes its leader."""
        return tuple(pod for pod in self.pods if pod.serves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """A manifest to be applied server-side under a field manager."""

    manifest: Mapping[str, Any]
    manager: str = "shipfitter"  # or shipfitter-scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """An owned object that is no longer wanted; deleted only if its uid still matches."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationUpdate:
    """What an engine of one key taught."""

    key: CalibrationKey
    learning: Learning  # with this observation, as far as the world of this decision knew
    variant: str
    difference_bytes: int = 0  # observed less predicted, on one GPU
    total_bytes: int = 0  # of that GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A Kubernetes Event to post: one per transition."""

    type: str  # Normal | Warning
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What should be: manifests, deletions, status, events, and when to look again."""

    applies: tuple[Apply, ...] = ()
    deletes: tuple[Delete, ...] = ()
    deletion_costs: Mapping[str, int] = field(default_factory=dict)  # by pod
    calibrations: tuple[CalibrationUpdate, ...] = ()
    status: Mapping[str, Any] | None = None  # whole desired status; None: leave as it is
    notices: tuple[Notice, ...] = ()
    load_test: Mapping[str, Any] | None = None  # a Job to make, once the status is told
    requeue_after_seconds: float | None = None
