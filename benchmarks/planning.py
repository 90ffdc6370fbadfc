"""The plan as people meet it, a whole process, and as the operator computes it, in memory."""

import compileall
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml
from figures import Figure, milliseconds
from processes import shipfitter

from builders_plan import facts, node, pool, wish
from shipfitter.core.gpus import products
from shipfitter.core.plan import solve
from shipfitter.decide import World, decide

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "llama-3.1-8b.yaml"
ALTERNATIVES = ("Qwen/Qwen3-32B", "Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-14B")
TYPES = 60
ROUNDS = 20


def measure() -> Iterator[Figure]:
    yield from _whole_process()
    yield from _in_memory()


def _whole_process() -> Iterator[Figure]:
    # As it is installed; without bytecode each start would compile two hundred files.
    compileall.compile_dir(ROOT / "operator", quiet=1)
    plan = shipfitter("plan", "-f", str(EXAMPLE), "--gpu", "NVIDIA-L40S:8")
    both = [(_process(plan), _process([sys.executable, "-c", "pass"])) for _ in range(ROUNDS)]
    (wall, cpu), (bare, _) = (
        [statistics.median(values) for values in zip(*column, strict=True)]
        for column in zip(*both, strict=True)
    )
    yield Figure("shipfitter plan, a whole process", milliseconds(wall), "below 700 ms")
    yield Figure("  of it processor time", milliseconds(cpu))
    yield Figure("  against python -c pass", f"{wall / bare:.0f} ×")


def _process(argv: Sequence[str]) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(argv)}: ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def _in_memory() -> Iterator[Figure]:
    types = [product.product for product in products()][:TYPES]
    pools = tuple(pool(product, 8) for product in types)
    intent = wish(*ALTERNATIVES)
    name = f"solve: {len(types)} GPU types × {len(ALTERNATIVES)} alternatives"
    yield Figure(name, milliseconds(_median(lambda: solve(intent, pools))), "below 50 ms")

    body = yaml.safe_load(EXAMPLE.read_text())
    body["metadata"] |= {"namespace": "default", "uid": "u1", "generation": 1}
    first, *others = ALTERNATIVES
    body["spec"]["model"] = {
        "uri": f"hf://{first}",
        "alternatives": [{"uri": f"hf://{other}"} for other in others],
    }
    world = World(
        now_seconds=0.0,
        nodes=tuple(node(f"n{n}", product, 8) for n, product in enumerate(types)),
        models={f"hf://{name}": facts(name) for name in ALTERNATIVES},
    )
    if not decide(body, world).applies:
        raise RuntimeError("nothing was planned")
    name = f"decide: the same, from {len(types)} nodes to manifests and status"
    yield Figure(name, milliseconds(_median(lambda: decide(body, world))))


def _median(work: Callable[[], object]) -> float:
    """Processor seconds, warm: an operator decides again and again."""
    work()
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return statistics.median(times)
