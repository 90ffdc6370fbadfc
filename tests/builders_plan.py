"""Pools, wishes and worlds that name only what a test is about."""

from typing import Any

from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.gpus import resolve_product
from shipfitter.core.intent import Intent, ModelChoice
from shipfitter.core.inventory import CapacitySource, Device, NodeCapacity, Pool, PoolNode
from shipfitter.core.model import ModelFacts
from shipfitter.known_models import known_model_facts
from shipfitter.units import GIB, MIB

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"


def facts(repository: str) -> ModelFacts:
    found = known_model_facts(repository)
    assert found is not None
    return found


def choice(repository: str) -> ModelChoice:
    return ModelChoice(uri=f"hf://{repository}", facts=facts(repository))


def wish(*repositories: str, version: str = "0.33.0", **changes: Any) -> Intent:
    settings = EngineSettings(version=EngineVersion.parse(version))
    models = tuple(choice(repository) for repository in repositories or (LLAMA_8B,))
    return Intent(models=models, **{"engine": settings, **changes})


def pool(product: str, gpus: int = 1, *, nodes: int = 1, **changes: Any) -> Pool:
    row = resolve_product(product)
    assert row is not None, product
    values: dict[str, Any] = {
        "name": f"{row.product.lower()}-{gpus}",
        "product": row.product,
        "gpus_per_node": gpus,
        "total_bytes": row.cuda_total_bytes,
        "nominal_bytes": row.nvml_total_bytes,
        "compute_capability": row.compute_capability,
        "nodes": tuple(PoolNode(name=f"{product}-{n}", free_gpus=gpus) for n in range(nodes)),
        "nvlink": row.nvlink,
    }
    return Pool(**{**values, **changes})


def node(name: str, product: str, gpus: int = 1, **changes: Any) -> NodeCapacity:
    row = resolve_product(product)
    assert row is not None, product
    device = Device(
        product=row.product,
        total_bytes=row.cuda_total_bytes,
        nominal_bytes=row.nvml_total_bytes,
        compute_capability=row.compute_capability,
    )
    values: dict[str, Any] = {
        "name": name,
        "labels": {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": name,
            "nvidia.com/gpu.product": row.product,
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.memory": str(row.nvml_total_bytes // MIB),
        },
        "devices": (device,) * gpus,
        "allocatable_gpus": gpus,
        "source": CapacitySource.MEASURED,
        "host_memory_bytes": 512 * GIB,
        "nvlink": row.nvlink,
    }
    return NodeCapacity(**{**values, **changes})
