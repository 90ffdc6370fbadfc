"""ModelDeployment: what a user asks for. Its status is in `model_deployment_status`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field

from shipfitter.api.base import ApiModel, FreeForm, Metadata, Name, Word, validated
from shipfitter.api.model_deployment_status import ModelDeploymentStatus
from shipfitter.api.model_source import ModelRef
from shipfitter.api.parsing import parse_resource
from shipfitter.api.pod_fields import EnvVar, LocalObjectReference, Placement, Resources
from shipfitter.api.rules import (
    DEFAULT_MAX_GPUS_PER_REPLICA,
    MIN_UP_TO_PREFERRED,
    NAME_RULE,
    PRODUCTS_NOT_EMPTY,
    TENSOR_PARALLEL_WITHIN_REPLICA,
    VERSION_FOR_IMAGE,
)
from shipfitter.core.intent import Prefer, SizeFor

MAX_TOKENS = 2**30
MAX_SEQUENCES = 65_536
Parallel = Annotated[int, Field(ge=1, le=1024)]


class Allocation(StrEnum):
    """How pods ask for GPUs."""

    DEVICE_PLUGIN = "DevicePlugin"
    DRA = "DRA"


class RolloutMode(StrEnum):
    """How a new template replaces the old one."""

    AUTO = "Auto"
    SURGE = "Surge"
    IN_PLACE = "InPlace"


class ResizeMode(StrEnum):
    """What happens to a running plan when a better one appears."""

    AUTOMATIC = "Automatic"
    RECOMMEND = "Recommend"
    OFF = "Off"


class EngineSpec(ApiModel):
    """The serving engine."""

    model_config = ConfigDict(json_schema_extra=validated(VERSION_FOR_IMAGE))

    kind: Literal["vllm"] = "vllm"
    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """Absent: the operator's default, pinned in status when first used."""
    version: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Read from the image's tag when that is one; must be given for a digest or a private tag."""
    args: Annotated[tuple[Annotated[str, Field(max_length=8192)], ...], Field(max_length=256)] = ()
    """Passed through; a sizing flag here is pinned, and the rest is solved around it."""
    env: Annotated[tuple[EnvVar, ...], Field(max_length=128)] = ()


class WantedTokens(ApiModel):
    """The least and the best number of tokens; equal values pin it."""

    model_config = ConfigDict(json_schema_extra=validated(MIN_UP_TO_PREFERRED))

    min: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    preferred: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None


class WantedSequences(ApiModel):
    """The least and the best number of requests at once; equal values pin it."""

    model_config = ConfigDict(json_schema_extra=validated(MIN_UP_TO_PREFERRED))

    min: Annotated[int, Field(ge=1, le=MAX_SEQUENCES)] | None = None
    preferred: Annotated[int, Field(ge=1, le=MAX_SEQUENCES)] | None = None


class Workload(ApiModel):
    """What the user wants, not how."""

    max_model_len: WantedTokens | None = None
    """Tokens of one request, prompt and output. Absent: at least 8192, best the model's limit."""
    max_num_seqs: WantedSequences | None = None
    """Requests at once. Absent: at least 4, best 256."""
    typical_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    """Tokens a running request holds on average. Absent: 8192, 2048 or 1024 by prefer."""
    size_for: SizeFor = SizeFor.TYPICAL
    """WorstCase: every sequence may be as long as maxModelLen."""
    prefer: Prefer = Prefer.BALANCED
    """How much of the cache one request may take."""


class PerReplica(ApiModel):
    """Bounds on one replica."""

    max: Parallel = DEFAULT_MAX_GPUS_PER_REPLICA
    """Most GPUs one replica may take."""


class GpuSpec(ApiModel):
    """Which GPUs may be used, and how."""

    model_config = ConfigDict(
        json_schema_extra=validated(PRODUCTS_NOT_EMPTY, TENSOR_PARALLEL_WITHIN_REPLICA)
    )

    products: Annotated[tuple[Word, ...], Field(max_length=64)] | None = None
    """Allowed products, as gpu-feature-discovery spells them; absent: any."""
    per_replica: PerReplica | None = None
    tensor_parallel_size: Parallel | None = None
    """Absent: chosen."""
    kv_cache_dtype: Literal["auto", "fp8", "Any"] = "auto"
    """auto: the model's own. Any: fp8 where that is what fits."""
    allocation: Allocation = Allocation.DEVICE_PLUGIN
    allow_shared: bool = False
    """Also GPUs that are time-sliced or shared by MPS."""


class StorageSpec(ApiModel):
    """Where model files are kept."""

    cache_claim: Name | None = None
    """A claim mounted as the model cache; absent: each pod downloads for itself."""


class RolloutSpec(ApiModel):
    """How changes reach the pods."""

    mode: RolloutMode = RolloutMode.AUTO


class ResizeSpec(ApiModel):
    """What a change of the cluster may do to a running plan."""

    mode: ResizeMode = ResizeMode.AUTOMATIC
    minimum_gain_percent: Annotated[int, Field(ge=0, le=1000)] = 15
    stabilization_seconds: Annotated[int, Field(ge=0, le=604_800)] = 300


class VerifySpec(ApiModel):
    """A load test of the plan after each rollout."""

    enabled: bool = False


class ModelDeploymentSpec(ApiModel):
    """What the user asks for; only the model's uri is required."""

    replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    model: ModelRef
    engine: EngineSpec = EngineSpec()
    workload: Workload = Workload()
    gpus: GpuSpec = GpuSpec()
    placement: Placement = Placement()
    storage: StorageSpec = StorageSpec()
    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], Field(max_length=16)] = ()
    """For the engine and the inspection Job alike."""
    service_account_name: Name = ""
    resources: Resources = Resources()
    """Replaces the computed CPU and memory, name by name."""
    rollout: RolloutSpec = RolloutSpec()
    resize: ResizeSpec = ResizeSpec()
    verify: VerifySpec = VerifySpec()
    template: FreeForm = Field(default_factory=dict)
    """Laid over the pod template; hostPath, host namespaces and privileged are refused."""


class ModelDeployment(ApiModel):
    """A model the cluster should serve, on the GPUs it has."""

    model_config = ConfigDict(json_schema_extra=validated(NAME_RULE))

    api_version: Literal["shipfitter.dev/v1alpha1"] = "shipfitter.dev/v1alpha1"
    kind: Literal["ModelDeployment"] = "ModelDeployment"
    metadata: Metadata
    spec: ModelDeploymentSpec
    status: ModelDeploymentStatus = ModelDeploymentStatus()

    @classmethod
    def parse(
        cls, body: Mapping[str, Any], *, unknown: Literal["ignore", "forbid"] = "ignore"
    ) -> Self:
        """Read a resource.

        Raises InvalidSpecError with every mistake at once, each with its path.
        """
        return parse_resource(cls, body, unknown=unknown)
