"""What the chart (or a person) tells the operator: environment variables and two flags."""

import argparse
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shipfitter.core.declared import declared_capacity
from shipfitter.decide.world import Settings
from shipfitter.errors import InvalidSpecError

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
MOST_SETTLE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The whole configuration, checked."""

    settings: Settings
    watch_namespaces: tuple[str, ...] = ()  # empty: all
    namespace: str = "default"  # where the Lease lives
    identity: str = ""
    health_host: str = "0.0.0.0"
    health_port: int = 8080
    log_format: str = "plain"
    log_level: str = "INFO"


def read_configuration(argv: Sequence[str] | None, environ: Mapping[str, str]) -> Configuration:
    """The configuration from flags and environment.

    Raises InvalidSpecError with everything that is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="shipfitter operator", description="Keep every ModelDeployment fitted to its GPUs."
    )
    parser.add_argument("--log-format", choices=("plain", "json"), default="plain")
    parser.add_argument(
        "--log-level", choices=("DEBUG", "INFO", "WARNING"), default="INFO", type=str.upper
    )
    flags = parser.parse_args(argv)
    problems: list[str] = []
    defaults = Settings()
    settle = _number(environ, "SHIPFITTER_SETTLE_SECONDS", defaults.settle_seconds, problems)
    if not 0 <= settle <= MOST_SETTLE_SECONDS:
        problems.append(f"SHIPFITTER_SETTLE_SECONDS: must be 0 to 3600 seconds, got {settle:g}")
    port = _number(environ, "SHIPFITTER_HEALTH_PORT", 8080, problems)
    if not 0 <= port <= 65_535:
        problems.append(f"SHIPFITTER_HEALTH_PORT: must be a port, 0 for any, got {port:g}")
    declared = declared_capacity(environ.get("SHIPFITTER_DECLARED_CAPACITY", ""), problems)
    if problems:
        raise InvalidSpecError(tuple(problems))
    image = environ.get("SHIPFITTER_DEFAULT_IMAGE") or environ.get("SHIPFITTER_ENGINE_IMAGE")
    return Configuration(
        settings=Settings(
            default_image=image or defaults.default_image,
            cluster_domain=environ.get("SHIPFITTER_CLUSTER_DOMAIN") or defaults.cluster_domain,
            settle_seconds=settle,
            hub_endpoint=environ.get("HF_ENDPOINT", ""),
            declared=declared,
            read_pod_logs=environ.get("SHIPFITTER_READ_POD_LOGS") == "true",
            label_nodes=environ.get("SHIPFITTER_LABEL_NODES") == "true",
            inspection_image=environ.get("SHIPFITTER_IMAGE", ""),
        ),
        watch_namespaces=_names(environ.get("SHIPFITTER_WATCH_NAMESPACES", "")),
        namespace=environ.get("POD_NAMESPACE") or _own_namespace(),
        identity=environ.get("POD_NAME") or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}",
        # A pod that shares its machine's loopback with others is told which address is its own.
        health_host=environ.get("POD_LISTEN_ADDRESS")
        or environ.get("SHIPFITTER_HEALTH_HOST")
        or "0.0.0.0",
        health_port=int(port),
        log_format=flags.log_format,
        log_level=flags.log_level,
    )


def _number(environ: Mapping[str, str], name: str, default: float, problems: list[str]) -> float:
    text = environ.get(name) or str(default)
    try:
        return float(text)
    except ValueError:
        problems.append(f"{name}: must be a number, got {text!r}")
        return default


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))


def _own_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ
