"""`python -m world.nodes --kubeconfig K --spec nodes.yaml`: emulated nodes until interrupted."""

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from world.nodes.emulator import Emulator
from world.nodes.spec_file import SpecFileError, parse, read_api


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGINT or SIGTERM; the nodes are removed at the end unless told otherwise."""
    parser = argparse.ArgumentParser(prog="python -m world.nodes", description=__doc__)
    parser.add_argument(
        "--kubeconfig", type=Path, required=True, help="the control plane's admin kubeconfig"
    )
    parser.add_argument("--spec", type=Path, required=True, help="YAML file with nodes and images")
    parser.add_argument(
        "--keep-nodes", action="store_true", help="leave the Node objects at the end"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        world = parse(options.spec.read_text())
        api = read_api(options.kubeconfig)
    except (SpecFileError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with Emulator(programs=world.programs, timing=world.timing, api=api) as emulator:
        for spec in world.nodes:
            emulator.add_node(spec)
            print(f"node {spec.name}: {spec.gpus} × {spec.gpu_resource}", flush=True)
        print(f"reach Services through HTTP_PROXY={emulator.proxy_url}", flush=True)
        done.wait()
        if not options.keep_nodes:
            for spec in world.nodes:
                emulator.remove_node(spec.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
