"""The agent's command line and process: flags, environment, signals, exit codes."""

import argparse
import json
import logging
import os
import platform
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shipfitter.agent.api import Api
from shipfitter.agent.credentials import CredentialsError, load, node_claim
from shipfitter.agent.devices import NvmlUnavailableError
from shipfitter.agent.foreign import ForeignMemory
from shipfitter.agent.host import Host
from shipfitter.agent.pod_resources import PodResources
from shipfitter.agent.readiness import Readiness
from shipfitter.agent.reading import Nvml
from shipfitter.agent.report import Status, gpu_node, unready_status, with_times
from shipfitter.agent.seeing import Holders, seen
from shipfitter.agent.watch import GaveUpError, Pace, Watch, timestamp

log = logging.getLogger("shipfitter.agent")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent, or print once what it sees; the exit code."""
    options = _options(argv)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    host = Host(Path(os.environ.get("SHIPFITTER_AGENT_HOST_ROOT", "/")))
    node_name = os.environ.get("NODE_NAME", "")
    if options.once:
        print_once(node_name or platform.node(), host, options.output)
        return 0
    return _serve(node_name, host, options.listen)


def print_once(node_name: str, host: Host, output: str) -> None:
    """What the agent sees, on standard output; no API server is needed."""
    status = with_times(look_once(host), timestamp(), {}, agent_version())
    manifest = gpu_node(node_name, status)
    if output == "json":
        sys.stdout.write(json.dumps(manifest, indent=2) + "\n")
        return
    import yaml  # noqa: PLC0415  # the running agent does without

    sys.stdout.write(yaml.safe_dump(manifest, sort_keys=False))


def look_once(host: Host) -> Status:
    """One session with the driver, from beginning to end."""
    nvml = Nvml()
    try:
        return seen(
            nvml.read(), host, ForeignMemory(), Holders.ask(PodResources(socket_path(host)))
        )
    except NvmlUnavailableError as error:
        return unready_status(error.reason, str(error), host, {})
    finally:
        nvml.close()


def socket_path(host: Host) -> Path | None:
    """Where the kubelet answers, if its folder is mounted; the chart names another place."""
    given = os.environ.get("SHIPFITTER_AGENT_POD_RESOURCES", "")
    path = Path(given) if given else host.root / "var/lib/kubelet/pod-resources/kubelet.sock"
    try:
        return path if given or path.parent.is_dir() else None
    except OSError:  # the folder above is root's
        return None


def agent_version() -> str:
    """The installed package's version."""
    try:
        return version("shipfitter")
    except PackageNotFoundError:
        return "unknown"


def _serve(node_name: str, host: Host, listen: str) -> int:
    try:
        api = Api(load())
        node_name = node_name or node_claim(api.token()).name
        pace = _pace(os.environ)
        if not node_name:
            raise CredentialsError("NODE_NAME is not set; set it from the pod's spec.nodeName")
    except (CredentialsError, ValueError) as error:
        sys.stderr.write(f"shipfitter agent: {error}\n")
        return 2
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    nvml, readiness = Nvml(), Readiness()
    _serve_probes(readiness, listen)
    watch = Watch(
        node_name=node_name,
        agent_version=agent_version(),
        nvml=nvml,
        host=host,
        pod_resources=PodResources(socket_path(host)),
        api=api,
        readiness=readiness,
        pace=pace,
        stop=stop,
    )
    try:
        watch.run()
    except GaveUpError as error:
        log.error("%s", error)
        return 1
    finally:
        nvml.close()  # an open session blocks a driver upgrade
        api.close()
    return 0


def _serve_probes(readiness: Readiness, listen: str) -> None:
    if not listen:
        return
    address, _, port = listen.rpartition(":")
    try:
        # A pod that shares its machine's loopback with others is told which address is its own.
        own = address.strip("[]") or os.environ.get("POD_LISTEN_ADDRESS", "")
        readiness.serve(own, int(port))
    except OSError as error:
        log.error("probes cannot be answered at %s: %s", listen, error.strerror)


def _pace(environment: Mapping[str, str]) -> Pace:
    name = "SHIPFITTER_AGENT_POLL_SECONDS"
    given = environment.get(name, "10")
    try:
        poll_seconds = float(given)
    except ValueError:
        poll_seconds = 0
    if not poll_seconds > 0:
        raise ValueError(f"{name}: a number of seconds above 0 is needed, got {given!r}")
    return Pace(poll_seconds=poll_seconds)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="shipfitter agent",
        description="Report what this node's GPUs offer, in its GPUNode object.",
    )
    parser.add_argument(
        "--once", action="store_true", help="print what would be reported, and stop"
    )
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="form of --once"
    )
    parser.add_argument(
        "--listen",
        default=":8080",
        metavar="ADDRESS:PORT",
        help="where /readyz and /healthz are answered; empty for nowhere (default: %(default)s)",
    )
    return parser.parse_args(argv)
