"""How a worker of a group leaves: after its leader, whose requests need it to the end.

Both are asked to stop at the same time. The worker would end at once and break what its leader
still answers; a fixed wait would hold its GPUs after a leader that has crashed. So it waits for as
long as the leader's engine listens. An engine's worker does not notice by itself that its leader is
gone. Source: vLLM 0.32 run over two nodes; vllm/v1/executor/multiproc_executor.py.
"""

from typing import Any

MASTER_PORT = 29501  # where the ranks of an engine meet; open while the leader's engine lives
LEADER_ADDRESS = "LWS_LEADER_ADDRESS"  # in every container of a group

_WAIT = """\
import os, socket, time
end = time.monotonic() + {most_seconds}
while time.monotonic() < end:
    try:
        socket.create_connection((os.environ["{address}"], {port}), 2).close()
    except OSError:
        break
    time.sleep(1)
"""


def after_its_leader(most_seconds: int) -> dict[str, Any]:
    """The hook of a worker's container, by the Python that the engine itself runs on."""
    program = _WAIT.format(most_seconds=most_seconds, address=LEADER_ADDRESS, port=MASTER_PORT)
    return {"preStop": {"exec": {"command": ["python3", "-c", program]}}}
