"""The three CustomResourceDefinitions, generated from the models.

`python -m shipfitter.api.crd` writes them to crds/.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from shipfitter.api.base import GROUP, VERSION
from shipfitter.api.calibration import Calibration
from shipfitter.api.gpu_node import GPUNode
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.structural import structural_schema

HEADER = "# Generated from operator/shipfitter/api by: python -m shipfitter.api.crd\n"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of kubectl get; wide ones only under -o wide."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    wide: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The column as a CRD spells it."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        if self.wide:
            column["priority"] = 1
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a CRD says beside the schema."""

    model: type[BaseModel]
    plural: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...] = ()
    namespaced: bool = False
    status: bool = True
    scale: bool = False
    columns: tuple[Column, ...] = ()

    @property
    def name(self) -> str:
        """The kind's name."""
        return self.model.__name__


AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_FIRST = ".status.plan.variants[0]"

KINDS = (
    Kind(
        model=ModelDeployment,
        plural="modeldeployments",
        short_names=("mdl",),
        categories=("ai",),
        namespaced=True,
        scale=True,
        columns=(
            Column("MODEL", ".status.summary.model"),
            Column("GPU", ".status.summary.gpu"),
            Column("GPUS", ".status.summary.gpus", description="GPUs of one replica"),
            Column("TP", ".status.summary.tp", description="Tensor-parallel size"),
            Column("CONTEXT", ".status.summary.context", description="max_model_len"),
            Column("SEQS", ".status.summary.seqs", description="max_num_seqs"),
            Column("READY", ".status.summary.ready"),
            Column("REASON", '.status.conditions[?(@.type=="Ready")].reason'),
            AGE,
            Column("KV-TOKENS", f"{_FIRST}.kvCacheTokens", "integer", wide=True),
            Column("CONCURRENCY", f"{_FIRST}.maxConcurrency", "number", wide=True),
            Column("UTIL", f"{_FIRST}.gpuMemoryUtilization", "number", wide=True),
            Column("VERDICT", f"{_FIRST}.verdict", wide=True),
            Column("POOL", f"{_FIRST}.pool", wide=True),
        ),
    ),
    Kind(
        model=GPUNode,
        plural="gpunodes",
        short_names=("gpun",),
        columns=(
            Column("GPU", ".status.summary.gpu"),
            Column("COUNT", ".status.summary.count"),
            Column("MEMORY", ".status.summary.memory", description="Of one GPU"),
            Column(
                "FREE", ".status.summary.free", description="GPUs that no pod holds, where known"
            ),
            Column("CC", ".status.summary.computeCapability", description="Compute capability"),
            Column("DRIVER", ".status.driver.version"),
            Column("READY", ".status.summary.ready"),
            AGE,
        ),
    ),
    Kind(
        model=Calibration,
        plural="calibrations",
        short_names=("calib",),
        status=False,  # one writer, which writes key and estimate in one go
        columns=(
            Column("GPU", ".spec.gpuProduct"),
            Column("ENGINE", ".spec.engineMinor"),
            Column("ARCHITECTURE", ".spec.architecture"),
            Column("WEIGHTS", ".spec.weightFormat"),
            Column("TP", ".spec.tensorParallelSize", "integer"),
            Column("RESIDUAL", ".status.residual", "string", "Cache memory to add to a prediction"),
            Column("SAMPLES", ".status.observations", "integer", "Observations"),
            AGE,
        ),
    ),
)


def crd_document(kind: Kind) -> dict[str, Any]:
    """One CustomResourceDefinition."""
    subresources: dict[str, Any] = {}
    if kind.status:
        subresources["status"] = {}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    names: dict[str, Any] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "shortNames": list(kind.short_names),
    }
    if kind.categories:
        names["categories"] = list(kind.categories)
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.as_dict() for column in kind.columns],
        "schema": {"openAPIV3Schema": structural_schema(kind.model)},
    }
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def crd_documents() -> tuple[dict[str, Any], ...]:
    """The three CustomResourceDefinitions."""
    return tuple(crd_document(kind) for kind in KINDS)


def crd_yaml(kind: str) -> str:
    """The committed text of one kind's CRD. Raises KeyError for a kind that is not ours."""
    by_name = {known.name: known for known in KINDS}
    text: str = yaml.safe_dump(crd_document(by_name[kind]), sort_keys=False, width=100)
    return HEADER + text


def file_name(kind: Kind) -> str:
    """The file below crds/."""
    return f"{kind.plural}.yaml"


def write_crds(folder: Path) -> None:
    """Bring the folder up to date."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / file_name(kind)).write_text(crd_yaml(kind.name), encoding="utf-8")


if __name__ == "__main__":
    write_crds(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("crds"))
