"""Short strings for the printer columns, which can neither join nor shorten."""

from collections.abc import Mapping, Sequence
from typing import Any


def summary(
    *, uri: str, plan: Mapping[str, Any] | None, ready_replicas: int, replicas: int
) -> dict[str, str]:
    """MODEL GPU GPUS TP CONTEXT SEQS READY of `kubectl get mdl`."""
    variants = (plan or {}).get("variants") or []
    texts = {"model": uri.rstrip("/").rsplit("/", 1)[-1], "ready": f"{ready_replicas}/{replicas}"}
    if not variants:
        return texts | dict.fromkeys(("gpu", "gpus", "tp", "context", "seqs"), "-")
    first = variants[0]
    return texts | {
        "model": str(first["modelUri"]).rstrip("/").rsplit("/", 1)[-1],
        "gpu": _first_of(variants, "gpuProduct"),
        "gpus": _all_of([{"gpus": _gpus(each)} for each in variants], "gpus"),
        "tp": _all_of(variants, "tensorParallelSize"),
        "context": str(first["maxModelLen"]),  # one for all
        "seqs": _all_of(variants, "maxNumSeqs"),
    }


def _gpus(variant: Mapping[str, Any]) -> str:
    """GPUs of a replica; over several nodes as nodes x GPUs of each: 2x8."""
    gpus, nodes = int(variant["gpusPerReplica"]), int(variant.get("nodesPerReplica", 1))
    return f"{nodes}x{gpus // nodes}" if nodes > 1 else str(gpus)


def _first_of(variants: Sequence[Mapping[str, Any]], key: str) -> str:
    """The first variant's, and how many others there are: a column has no room for all."""
    others = len({str(each[key]) for each in variants}) - 1
    return f"{variants[0][key]} +{others}" if others else str(variants[0][key])


def _all_of(variants: Sequence[Mapping[str, Any]], key: str) -> str:
    """Every variant's in their order, once where they agree: 96,192."""
    values = [str(each[key]) for each in variants]
    return values[0] if len(set(values)) == 1 else ",".join(values)
