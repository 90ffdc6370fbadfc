"""Short strings for the printer columns, which can neither join nor shorten."""

from collections.abc import Mapping
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
        "gpu": str(first["gpuProduct"]),
        "gpus": str(first["gpusPerReplica"]),
        "tp": str(first["tensorParallelSize"]),
        "context": str(first["maxModelLen"]),
        "seqs": str(first["maxNumSeqs"]),
    }
