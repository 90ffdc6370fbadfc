"""Speed and size in one run: a table of figures and ratios, for reading; nothing passes or fails.

`make bench`, or `python benchmarks/run.py plan apply` for some of them.
"""

import importlib
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = {
    "plan": ("planning", "Planning"),
    "apply": ("applying", "Apply to Deployment"),
    "fleet": ("fleet", "The operator beside 1,000 GPU nodes"),
    "agent": ("idle_agent", "The agent, where nothing changes"),
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    from figures import print_figures

    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"On {cores} cores with a load of {load:.1f} before; a busy machine is slower.\n")
    for name in names or BENCHMARKS:
        module, title = BENCHMARKS[name]
        began = time.monotonic()
        figures = list(importlib.import_module(module).measure())
        print_figures(f"{title}  ({time.monotonic() - began:.0f} s)", figures)
    return 0


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "operator")]
    sys.exit(main(sys.argv[1:]))
