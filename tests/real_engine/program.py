"""`vllm` of a pod's image, played by the real vLLM on this machine's CPU.

The operator's arguments reach the engine as they are, in their order. Added at the end is only what
a CPU under the node emulator cannot find for itself:

* --kv-cache-memory-bytes: a GPU engine measures what is left for its cache beside weights,
  activations and graphs. The same subtraction is made here for the GPU that the node plays, by the
  formulas of the engine stub (`world.engine`, which share nothing with the planner's). From these
  bytes on all is the real engine's: blocks, tokens, concurrency, and whether it refuses. Where the
  operator itself names them, nothing is added.
* --enforce-eager: a CPU has no CUDA graphs, and compiling takes minutes.
* --host: all pods of the emulator share one loopback device; each has an address of its own there.

Its processes meet at sockets in a folder of our own: a pod's /tmp has a path here that is longer
than a socket may have.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from world.engine.checkpoint import read_checkpoint
from world.engine.flags import parse
from world.engine.memory import memory
from world.engine.scenario import GIB, Scenario, read_device
from world.engine.settings import resolve
from world.engine.versions import played_version
from world.engine.weights import Ranks, weight_bytes

FOLDER = "REAL_ENGINE_FOLDER"
SOCKETS = "REAL_ENGINE_SOCKETS"
ADDRESS = "POD_LISTEN_ADDRESS"


def main(words: Sequence[str]) -> None:
    """Become the engine."""
    program = Path(os.environ[FOLDER]) / "bin" / "vllm"
    added = additions(words, os.environ) if words[:1] == ["serve"] else []
    print("real engine:", program.name, *words, *added, flush=True)
    os.execve(program, [str(program), *words, *added], variables(os.environ))


def additions(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Arguments after the operator's."""
    pinned = any(word.startswith("--kv-cache-memory-bytes") for word in words)
    return [
        *([] if pinned else [f"--kv-cache-memory-bytes={max(1, cache_bytes(words[1:]))}"]),
        "--enforce-eager",
        f"--host={environment[ADDRESS]}",
    ]


def cache_bytes(arguments: Sequence[str]) -> int:
    """What the GPU of this node would have left for the cache."""
    version, scenario = played_version(), Scenario.read()
    given = parse(list(arguments), version, program="vllm serve")
    device = read_device(scenario)
    if device is None:
        raise SystemExit("real engine: this pod was given no GPU")
    checkpoint = read_checkpoint(str(given["model"]), given.get("revision"), given.get("hf_token"))
    settings = resolve(given, checkpoint.config, device, version)
    figures = memory(settings, checkpoint.config, device, scenario)
    ranks = Ranks(
        tensor=settings.tensor,
        pipeline=settings.pipeline,
        data=settings.data,
        experts_whole=settings.expert_parallel,
    )
    weights = max(weight_bytes(checkpoint, ranks))
    if scenario.weights_gib is not None:
        weights = int(scenario.weights_gib * GIB)
    taken = weights + figures.overhead + figures.activation + figures.graph_charged
    return figures.requested - taken


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The pod's variables without those of our own Python, and nothing sent to anybody."""
    kept = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    programs = f"{environment[FOLDER]}/bin{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {
        **kept,
        "PATH": programs,
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_RPC_BASE_PATH": environment[SOCKETS],
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_XET": "1",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
