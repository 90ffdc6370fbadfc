"""Ports that nobody else will be given between our choosing and our using them."""

import random
import socket
from pathlib import Path

from .settings import Ports

# Below this, the kernel gives no port to a connection or to a listener that asks for any.
# Source: Linux, Documentation/networking/ip-sysctl.rst (ip_local_port_range)
FIRST_EPHEMERAL = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
LOWEST = max(1024, FIRST_EPHEMERAL - 20_000)


def free_ports() -> Ports:
    """Five ports of a new plane, kept for its life so that a restart finds them again."""
    candidates = iter(random.SystemRandom().sample(range(LOWEST, FIRST_EPHEMERAL), k=1000))
    free = (port for port in candidates if _is_free(port))
    return Ports(
        etcd=next(free),
        etcd_peer=next(free),
        apiserver=next(free),
        scheduler=next(free),
        controller_manager=next(free),
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
