"""A Kubernetes control plane of plain local processes, loopback only, ready in seconds."""

from .build import NotBuiltError
from .client import ApiError, Client, CommandError
from .plane import Plane, PlaneError
from .settings import FAST_NODE_LOSS, PlaneSettings

__all__ = [
    "FAST_NODE_LOSS",
    "ApiError",
    "Client",
    "CommandError",
    "NotBuiltError",
    "Plane",
    "PlaneError",
    "PlaneSettings",
]
