"""The parts of a pod that a ModelDeployment lets through, in Kubernetes' own names and bounds."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from shipfitter.api.base import (
    MAX_INTEGER,
    ApiModel,
    Labels,
    LabelValue,
    Line,
    Name,
    Quantity,
    Word,
    validated,
)
from shipfitter.api.rules import EXISTS_HAS_NO_VALUE, ONE_ENV_SOURCE

LabelKey = Annotated[str, Field(max_length=317)]  # prefix 253, '/', name 63


class Toleration(ApiModel):
    """A taint that the pods bear."""

    model_config = ConfigDict(json_schema_extra=validated(EXISTS_HAS_NO_VALUE))

    key: LabelKey | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Field(ge=0, le=MAX_INTEGER)] | None = None


class LabelRequirement(ApiModel):
    """One line of a label selector."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[tuple[LabelValue, ...], Field(max_length=64)] = ()


class LabelSelector(ApiModel):
    """Which pods count."""

    match_labels: Labels | None = None
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=32)] = ()


class TopologySpreadConstraint(ApiModel):
    """How the pods spread over zones or hosts; an absent labelSelector means this deployment's."""

    max_skew: Annotated[int, Field(ge=1, le=2**31 - 1)]
    topology_key: LabelKey
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    match_label_keys: Annotated[tuple[LabelKey, ...], Field(max_length=32)] = ()
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None


class Placement(ApiModel):
    """Where the pods may run, beside what the plan asks for."""

    node_selector: Labels = Field(default_factory=dict)
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=64)] = ()
    topology_spread_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...], Field(max_length=16)
    ] = ()
    priority_class_name: Name = ""


class LocalObjectReference(ApiModel):
    """An object of the deployment's namespace."""

    name: Name


class KeySelector(ApiModel):
    """A key of a Secret or ConfigMap in the deployment's namespace."""

    name: Name
    key: Name
    optional: bool | None = None


class FieldSelector(ApiModel):
    """A field of the pod."""

    field_path: Line
    api_version: Word | None = None


class EnvSource(ApiModel):
    """Where a variable's value comes from."""

    secret_key_ref: KeySelector | None = None
    config_map_key_ref: KeySelector | None = None
    field_ref: FieldSelector | None = None


class EnvVar(ApiModel):
    """An environment variable of the engine."""

    model_config = ConfigDict(json_schema_extra=validated(ONE_ENV_SOURCE))

    name: Annotated[str, Field(max_length=253, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")]
    value: Annotated[str, Field(max_length=8192)] | None = None
    value_from: EnvSource | None = None


Quantities = Annotated[dict[str, Quantity], Field(max_length=32)]


class Resources(ApiModel):
    """Requests and limits that replace the computed ones, name by name."""

    requests: Quantities | None = None
    limits: Quantities | None = None
