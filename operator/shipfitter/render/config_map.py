"""The engine's last words: its own logging puts errors where the kubelet reads them.

Measured with vLLM 0.32: the last lines of the log never hold the cause of a refusal; an error
handler on the termination file holds the sentence with all its figures.
"""

import json
from typing import Any

from shipfitter.api.engine_version import engine_version
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.engines import EngineVersion
from shipfitter.errors import UnknownEngineError
from shipfitter.render.labels import owned_metadata

LOGGING_FOLDER = "/etc/shipfitter"
LOGGING_FILE = "logging.json"
TERMINATION_PATH = "/dev/termination-log"
DEFAULT_LEVEL = "INFO"

# In this release the process's name is part of the default format; 0.24 still puts it in front of
# every line itself. The standard attribute is used rather than the engine's own vllm_process_name:
# were that renamed, every line on the console would be lost.
# Source: vLLM 0.24 and 0.33, vllm/logger.py and vllm/utils/system_utils.py.
NAMES_PROCESS_FROM = EngineVersion(0, 33, 0)
_LINE = "%(levelname)s %(asctime)s [%(fileinfo)s:%(lineno)d] %(message)s"
_LINE_WITH_PROCESS = f"(%(processName)s pid=%(process)d) {_LINE}"


def logging_config_map_name(resource: ModelDeployment) -> str:
    """The name of the ConfigMap that all variants mount."""
    return f"{resource.metadata.name}-logging"


def logging_config_map(resource: ModelDeployment) -> dict[str, Any]:
    """The owned ConfigMap with the engine's logging configuration."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(resource, logging_config_map_name(resource)),
        "data": {LOGGING_FILE: json.dumps(logging_config(resource), indent=2) + "\n"},
    }


def logging_config(resource: ModelDeployment) -> dict[str, Any]:
    """Console output as users know it, and errors into the termination message as well."""
    level = _level(resource)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "vllm": {
                "class": "vllm.logging_utils.NewLineFormatter",
                "datefmt": "%m-%d %H:%M:%S",
                "format": _LINE_WITH_PROCESS if _names_process(resource) else _LINE,
            },
            # Short: under tensor parallelism several ranks write, and 4,096 bytes are kept.
            "last_words": {"format": "%(message)s"},
        },
        "handlers": {
            "vllm": {
                "class": "logging.StreamHandler",
                "formatter": "vllm",
                "level": level,
                "stream": "ext://sys.stdout",
            },
            "last_words": {
                "class": "logging.FileHandler",
                "filename": TERMINATION_PATH,
                "mode": "a",
                "delay": True,  # a healthy start writes nothing
                "formatter": "last_words",
                "level": "ERROR",
            },
        },
        "loggers": {
            "vllm": {"handlers": ["vllm", "last_words"], "level": level, "propagate": False}
        },
    }


def _level(resource: ModelDeployment) -> str:
    """VLLM_LOGGING_LEVEL keeps its meaning, which a configuration of its own would take away."""
    for variable in resource.spec.engine.env:
        if variable.name == "VLLM_LOGGING_LEVEL" and variable.value:
            return variable.value
    return DEFAULT_LEVEL


def _names_process(resource: ModelDeployment) -> bool:
    engine, pinned = resource.spec.engine, resource.status.engine
    version = engine.version or (engine.image and engine_version(engine.image))
    version = version or (pinned.version if pinned else None)
    try:
        return not version or EngineVersion.parse(version) >= NAMES_PROCESS_FROM
    except UnknownEngineError:
        return True
