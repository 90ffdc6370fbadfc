"""The engine's environment: where it may write, who it is, and the user's own variables."""

from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.render.config_map import LOGGING_FILE, LOGGING_FOLDER
from shipfitter.render.volumes import CACHE_MOUNT, SCRATCH_MOUNT

# One place for all that is kept: a claim there keeps weights and compiled code between pods.
_PATHS = {
    "HF_HOME": f"{CACHE_MOUNT}/huggingface",
    "VLLM_CACHE_ROOT": f"{CACHE_MOUNT}/vllm",
    "TORCHINDUCTOR_CACHE_DIR": f"{CACHE_MOUNT}/torchinductor",
    "TRITON_CACHE_DIR": f"{CACHE_MOUNT}/triton",
    "FLASHINFER_WORKSPACE_BASE": f"{CACHE_MOUNT}/flashinfer",
    "CUDA_CACHE_PATH": f"{CACHE_MOUNT}/cuda",
    "XDG_CACHE_HOME": f"{CACHE_MOUNT}/xdg",
    "XDG_CONFIG_HOME": f"{SCRATCH_MOUNT}/config",
    "HOME": SCRATCH_MOUNT,
    "TMPDIR": SCRATCH_MOUNT,
}
# A user id without a passwd entry makes getpass fail. Source: vllm#9118, kserve#5666.
_WHO = {"USER": "engine", "LOGNAME": "engine"}


def environment(resource: ModelDeployment, *, hub_endpoint: str = "") -> list[dict[str, Any]]:
    """The variables in a fixed order; the user's replace ours of the same name."""
    variables: dict[str, dict[str, Any]] = {
        name: {"name": name, "value": value} for name, value in (_PATHS | _WHO).items()
    }
    if not _logs_for_itself(resource):
        variables["VLLM_LOGGING_CONFIG_PATH"] = {
            "name": "VLLM_LOGGING_CONFIG_PATH",
            "value": f"{LOGGING_FOLDER}/{LOGGING_FILE}",
        }
    if hub_endpoint:
        variables["HF_ENDPOINT"] = {"name": "HF_ENDPOINT", "value": hub_endpoint}
    token = resource.spec.model.token_secret_ref
    if token is not None:
        variables["HF_TOKEN"] = {
            "name": "HF_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": token.name, "key": token.key}},
        }
    for variable in resource.spec.engine.env:
        variables[variable.name] = variable.model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
    return list(variables.values())


def _logs_for_itself(resource: ModelDeployment) -> bool:
    """With its logging switched off, the engine refuses a logging file and does not start."""
    return any(
        variable.name == "VLLM_CONFIGURE_LOGGING" and variable.value == "0"
        for variable in resource.spec.engine.env
    )
