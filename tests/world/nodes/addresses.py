"""Pod addresses: a pod reports 198.18.x.y, and its process listens on 127.18.x.y.

An EndpointSlice refuses loopback addresses, so pods report one of the range for benchmarks
(RFC 2544) and nothing dials it directly. Several emulators share the machine: each takes whole
blocks of 253 addresses, and the proof of possession is a bound socket, freed with its process.
"""

import contextlib
import os
import socket
import threading

REPORTED, LOOPBACK = "198.18.", "127.18."
CLAIM_PORT = 10_250
BLOCKS = 256
LAST = 253  # .254 is the block's claim


def loopback(reported: str) -> str:
    """Where a reported address really listens; any other address is itself.

    >>> loopback("198.18.3.7"), loopback("10.0.0.1")
    ('127.18.3.7', '10.0.0.1')
    """
    return LOOPBACK + reported.removeprefix(REPORTED) if reported.startswith(REPORTED) else reported


class AddressPool:
    """Hands out reported addresses; a freed one comes back last."""

    def __init__(self) -> None:
        self._free: list[str] = []
        self._claims: list[socket.socket] = []
        self._lock = threading.Lock()

    def take(self) -> str:
        """An address no other pod on this machine has."""
        with self._lock:
            if not self._free:
                block = self._claim()
                self._free = [f"{REPORTED}{block}.{host}" for host in range(1, LAST + 1)]
            return self._free.pop(0)

    def give_back(self, address: str) -> None:
        """The pod is gone."""
        with self._lock:
            self._free.append(address)

    def close(self) -> None:
        """Leave all blocks to others."""
        with self._lock:
            for claim in self._claims:
                claim.close()
            self._claims, self._free = [], []

    def _claim(self) -> int:
        first = os.getpid() % BLOCKS  # others start elsewhere: fewer collisions to try
        for step in range(BLOCKS):
            block = (first + step) % BLOCKS
            claim = socket.socket()
            with contextlib.suppress(OSError):
                claim.bind((f"{LOOPBACK}{block}.254", CLAIM_PORT))
                claim.listen(1)
                self._claims.append(claim)
                return block
            claim.close()
        raise RuntimeError(f"{LOOPBACK}0.0/16: all {BLOCKS} blocks are taken by other emulators")
