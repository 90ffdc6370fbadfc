"""How long a start may take, and how the pod says that it is ready, alive, or going."""

from typing import Any

from shipfitter.render.args import ENGINE_PORT
from shipfitter.units import ceil_div

HEALTH_PATH = "/health"

# Assumed: network storage feeds a pod at this rate; a node's own disk is five times as fast.
LOAD_BYTES_PER_SECOND = 200_000_000
# Compiling, profiling and capturing graphs. Source: 60 to 300 s in published vLLM logs.
WARM_UP_SECONDS = 180
SAFETY_FACTOR = 2
LEAST_STARTUP_SECONDS = 600
IMAGE_PULL_SECONDS = 900  # an engine image holds about 10 GB
LEAST_PROGRESS_DEADLINE_SECONDS = 1800

PRE_STOP_SECONDS = 10  # endpoints are withdrawn meanwhile, and no new request arrives
EXIT_SECONDS = 10

_STARTUP_PERIOD_SECONDS = 5


def startup_seconds(weights_bytes: int) -> int:
    """The longest a healthy engine may take from its start to its first answer.

    >>> startup_seconds(140_000_000_000)  # 70B weights: 12 minutes to load, twice, and warm-up
    1760
    """
    usual = ceil_div(weights_bytes, LOAD_BYTES_PER_SECOND) + WARM_UP_SECONDS
    return max(LEAST_STARTUP_SECONDS, SAFETY_FACTOR * usual)


def progress_deadline_seconds(weights_bytes: int) -> int:
    """When a rollout counts as stuck: later than the slowest healthy start."""
    return max(LEAST_PROGRESS_DEADLINE_SECONDS, startup_seconds(weights_bytes) + IMAGE_PULL_SECONDS)


def probes(weights_bytes: int) -> dict[str, Any]:
    """The engine's three probes; /health needs no key and answers once the engine runs."""
    check = {"path": HEALTH_PATH, "port": ENGINE_PORT}
    return {
        "startupProbe": {
            "httpGet": dict(check),
            "periodSeconds": _STARTUP_PERIOD_SECONDS,
            "timeoutSeconds": 5,
            "failureThreshold": ceil_div(startup_seconds(weights_bytes), _STARTUP_PERIOD_SECONDS),
        },
        "readinessProbe": {
            "httpGet": dict(check),
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        # Long: a busy engine answers late, and a restart costs minutes.
        "livenessProbe": {
            "httpGet": dict(check),
            "periodSeconds": 15,
            "timeoutSeconds": 5,
            "failureThreshold": 8,
        },
    }


def grace_seconds(drain_seconds: int) -> int:
    """Time from the wish to stop until the kernel ends the engine."""
    return PRE_STOP_SECONDS + drain_seconds + EXIT_SECONDS
