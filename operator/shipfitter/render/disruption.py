"""One disruption budget over all variants."""

from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.render.labels import MODEL_DEPLOYMENT_LABEL, owned_metadata


def disruption_budget(
    resource: ModelDeployment, *, group_size: int = 1, pods: int | None = None, waiting: int = 0
) -> dict[str, Any] | None:
    """One replica may be away at a time; None below two, where a budget would only block drains.

    minAvailable rather than maxUnavailable: with the latter a variant that waits for a GPU counts
    as away and blocks every drain. `group_size`: pods of one replica, of the largest where they
    differ; then `pods` are those of all. `waiting`: pods that find no GPU: what is not there cannot
    be kept, and would block every drain; the last replica that serves is kept all the same.
    """
    replicas = resource.spec.replicas
    if replicas < 2:
        return None
    wanted = replicas * group_size if pods is None else pods
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": owned_metadata(resource, resource.metadata.name),
        "spec": {
            "minAvailable": max(group_size, wanted - waiting - group_size),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {MODEL_DEPLOYMENT_LABEL: resource.metadata.name}},
        },
    }
