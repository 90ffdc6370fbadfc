"""`python -m world.controlplane bin | start DIR | stop [DIR] | status | pin`."""

import argparse
import shlex
import sys
from pathlib import Path

from . import registry
from .build import BuildError, bin_folder
from .credentials import MissingOpensslError
from .pins import PinError, pin
from .plane import Plane, PlaneError
from .toolchain import ToolchainError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m world.controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("bin", help="build what is missing; print the folder of the programs")
    start = commands.add_parser("start", help="start a plane that runs until it is stopped")
    start.add_argument("folder", type=Path, help="a folder that does not exist yet")
    stop = commands.add_parser(
        "stop", help="stop the plane in a folder; without one, abandoned ones"
    )
    stop.add_argument("folder", type=Path, nargs="?")
    commands.add_parser("status", help="list the planes")
    commands.add_parser("pin", help="write modules/ anew after a version in tools.py was changed")
    args = parser.parse_args(argv)
    try:
        match args.command:
            case "bin":
                print(bin_folder())
            case "start":
                return start_plane(args.folder)
            case "stop":
                return stop_planes(args.folder)
            case "status":
                show_planes()
            case "pin":
                pin()
    except (BuildError, MissingOpensslError, PinError, PlaneError, ToolchainError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what is built stays built", file=sys.stderr)
        return 130
    return 0


def start_plane(folder: Path) -> int:
    plane = Plane(folder=folder, bin_folder=bin_folder(), outlives_us=True)
    try:
        plane.start()
    except BaseException:
        plane.stop()
        raise
    print(f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}")
    print(f"export PATH={shlex.quote(str(plane.bin))}:$PATH")
    stop = f"python -m world.controlplane stop {shlex.quote(str(plane.folder))}"
    print(f"ready on {plane.url}; end it with: {stop}", file=sys.stderr)
    return 0


def stop_planes(folder: Path | None) -> int:
    gone = registry.remove_abandoned()
    for record in gone:
        print(f"removed {record.folder}, whose owner is gone")
    if folder is None:
        return 0
    wanted = folder.absolute()
    for path, record in registry.records().items():
        if record.folder == wanted:
            registry.remove(path, record)
            print(f"stopped {wanted}")
            return 0
    if any(record.folder == wanted for record in gone):
        return 0
    print(f"{wanted}: no plane runs there; `status` lists those that run", file=sys.stderr)
    return 1


def show_planes() -> None:
    for record in registry.records().values():
        alive = sorted(name for name, process in record.processes.items() if process.alive())
        owner = f"of process {record.owner.pid}" if record.owner else "until stopped"
        state = "abandoned" if record.abandoned() else owner
        print(f"{record.folder}  {record.url}  {state}  {', '.join(alive) or 'nothing runs'}")


if __name__ == "__main__":
    sys.exit(main())
