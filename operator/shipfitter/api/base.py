"""What all our kinds share: names on the wire, bounded types, and rules the API server checks."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

GROUP = "shipfitter.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

# The API server reads a schema's bounds as floating point, which holds whole numbers up to here.
MAX_INTEGER = 2**53


class ApiModel(BaseModel):
    """snake_case in Python, camelCase on the wire; unknown fields are left for newer versions."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        frozen=True,
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in CEL for the API server; `semantics` holds the same rule for everybody else."""

    cel: str
    message: str


def validated(*rules: Rule) -> dict[str, JsonValue]:
    """The rules as a schema's extra keys."""
    return {"x-kubernetes-validations": [{"rule": r.cel, "message": r.message} for r in rules]}


def map_list(*keys: str) -> dict[str, JsonValue]:
    """A list whose items are merged by these keys under server-side apply."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


# Every string and list is bounded: the API server refuses rules whose worst case costs too much.
Name = Annotated[str, Field(max_length=253)]  # longest name Kubernetes gives an object
Word = Annotated[str, Field(max_length=128)]
Line = Annotated[str, Field(max_length=1024)]
Message = Annotated[str, Field(max_length=4096)]
Timestamp = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]

Bytes = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
SignedBytes = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Tokens = Annotated[int, Field(ge=0, le=2**40)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Generation = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Fraction = Annotated[float, Field(ge=0, le=1)]

LabelValue = Annotated[str, Field(max_length=253)]  # selectors also match annotations-like values
Labels = Annotated[dict[str, LabelValue], Field(max_length=64)]

QUANTITY_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
Quantity = Annotated[
    int | Annotated[str, Field(pattern=QUANTITY_PATTERN)],
    Field(
        json_schema_extra={"pattern": QUANTITY_PATTERN, "x-kubernetes-int-or-string": True},
    ),
]

FreeForm = Annotated[
    dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
]


class Metadata(ApiModel):
    """The part of an object's metadata that we read."""

    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class Condition(ApiModel):
    """One statement about the object, in the form every Kubernetes tool reads."""

    type: Annotated[str, Field(max_length=316, min_length=1)]
    status: Annotated[str, Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})]
    observed_generation: Generation | None = None
    last_transition_time: Timestamp
    reason: Annotated[str, Field(max_length=1024, min_length=1)]
    message: Annotated[str, Field(max_length=32768)]


Conditions = Annotated[
    tuple[Condition, ...], Field(max_length=16, json_schema_extra=map_list("type"))
]
