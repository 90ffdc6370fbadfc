"""What a cache claim's access modes allow; the caller, who knows the cluster, brings them."""

from collections.abc import Sequence

from shipfitter.api.model_deployment import ModelDeployment, RolloutMode

MANY = "ReadWriteMany"
ONE_NODE = "ReadWriteOnce"
ONE_POD = "ReadWriteOncePod"
_PATH = "spec.storage.cacheClaim"


def claim_problems(resource: ModelDeployment, access_modes: Sequence[str]) -> tuple[str, ...]:
    """Why the claim cannot be the cache of this deployment, each with the way out."""
    claim, spec = resource.spec.storage.cache_claim, resource.spec
    if MANY in access_modes:
        return ()
    if ONE_NODE not in access_modes and ONE_POD not in access_modes:
        modes = ", ".join(access_modes) or "none"
        return (f"{_PATH}: {claim} cannot be written (its access modes: {modes}): name another",)
    problems = []
    mode = ONE_NODE if ONE_NODE in access_modes else ONE_POD
    if spec.rollout.mode is RolloutMode.SURGE:
        problems.append(
            f"spec.rollout.mode: a new pod cannot mount {claim} ({mode}) beside the old one: "
            f"set InPlace, or use a claim with {MANY}"
        )
    if mode == ONE_POD and spec.replicas > 1:
        problems.append(
            f"spec.replicas: {claim} is {ONE_POD}, which one pod can mount, got {spec.replicas}: "
            f"set 1, or use a claim with {MANY}"
        )
    return tuple(problems)


def binds_to_one_node(access_modes: Sequence[str]) -> bool:
    """True where all replicas must run on the node that holds the claim, and change in place."""
    return MANY not in access_modes and bool({ONE_NODE, ONE_POD} & set(access_modes))
