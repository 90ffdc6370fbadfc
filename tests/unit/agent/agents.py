"""The agent as a process beside the shim, on a machine whose files we wrote."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from world import nvml

RUN = "import sys; from shipfitter.agent import main; sys.exit(main(sys.argv[1:]))"
BOOT_ID = "b0070000-0000-4000-8000-000000000001"
HOST_MEMORY_KIB = 263_922_432


def host_root(folder: Path) -> Path:
    """The files of a machine with 251.7 GiB."""
    boot = folder / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True, exist_ok=True)
    boot.write_text(BOOT_ID + "\n")
    (folder / "proc/meminfo").write_text(f"MemTotal:       {HOST_MEMORY_KIB} kB\nMemFree: 1 kB\n")
    return folder


def environment(scenario: Path | None, root: Path, **more: str) -> dict[str, str]:
    """What the agent's container would have in its environment."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("KUBE", "NVML_"))}
    return {
        **inherited,
        **nvml.environment(scenario),
        "NODE_NAME": "n1",
        "SHIPFITTER_AGENT_HOST_ROOT": str(root),
        **more,
    }


def once(scenario: Path | None, root: Path) -> dict[str, Any]:
    """What `--once -o json` prints."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--once", "-o", "json"],
        env=environment(scenario, root),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


def timeless(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The object without its times and the agent's version."""
    status = {
        k: v for k, v in manifest["status"].items() if k not in {"observedAt", "agentVersion"}
    }
    status["conditions"] = [
        {key: value for key, value in condition.items() if key != "lastTransitionTime"}
        for condition in status["conditions"]
    ]
    return {**manifest, "status": status}


class Agent:
    """A running agent; ends with the test whatever happens."""

    def __init__(
        self, scenario: Path, root: Path, kubeconfig: Path, listen: str = "", **more: str
    ) -> None:
        environ = environment(
            scenario, root, SHIPFITTER_AGENT_POLL_SECONDS="0.1", KUBECONFIG=str(kubeconfig), **more
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, "--listen", listen],
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
        if self.process.stderr:
            self.process.stderr.close()

    def stop(self) -> int:
        """End it as the kubelet does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def resident_bytes(self) -> int:
        """Resident memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024
