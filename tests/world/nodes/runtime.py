"""What all pods of one emulator share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from world.nodes.addresses import AddressPool
from world.nodes.api import Api
from world.nodes.endpoints import Services
from world.nodes.events import Events
from world.nodes.processes import Processes
from world.nodes.programs import ProgramMap
from world.nodes.tokens import Tokens


class Part(Protocol):
    """Runs from `start` to `stop`."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How much faster than a kubelet things go; factor 1 is the kubelet's own pace."""

    backoff_seconds: float = 1.0  # before the second restart in a row, then doubled; a kubelet: 10
    grace_factor: float = 1.0  # of grace periods and of preStop sleeps
    probe_factor: float = 1.0  # of probe periods and initial delays, never of time-outs
    patience_factor: float = 1.0  # of failures in a row that count: where all is slow nobody is ill
    heartbeat_seconds: float = 10.0
    refresh_seconds: float = 60.0  # of ConfigMaps, Secrets and tokens in volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Doors and settings."""

    api: Api
    processes: Processes
    programs: ProgramMap
    services: Services
    events: Events
    tokens: Tokens
    folder: Path
    proxy_url: str
    addresses: AddressPool = field(default_factory=AddressPool)
    timing: Timing = field(default_factory=Timing)
    environment: Mapping[str, str] = field(default_factory=dict)  # for every pod
    url_for_pods: str = ""  # where pods find the API server, if not where the nodes do
