"""Where the control plane's programs come from; Go itself is a small script here."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from world.controlplane.found import agree, find_tools
from world.controlplane.processes import Identity
from world.controlplane.progress import Progress
from world.controlplane.tools import TOOLS, built_folder

NAMES = [tool.name for tool in TOOLS]
TESTS = Path(__file__).parents[1]

GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.26.0 linux/amd64"; exit; fi
for word; do [ "$last" = -o ] && target=$word; last=$word; done
echo "$target" >> "$GO_CALLS"
case "$target" in *"$GO_HANGS_AT"*) echo $$ > "$GO_CALLS.pid"; exec sleep 600;; esac
case "$target" in *"$GO_BREAKS_AT"*) echo "undefined: something"; exit 1;; esac
echo "#!/bin/sh" > "$target"
"""


def program(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with a cache of its own, our Go and nothing else on PATH."""
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    monkeypatch.setenv("SHIPFITTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GO_BREAKS_AT", "nothing")
    monkeypatch.setenv("GO_HANGS_AT", "nothing")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def run_bin() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "world.controlplane", "bin"]
    return subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)


def calls(machine: Path) -> list[str]:
    lines = (machine / "calls").read_text().splitlines()
    return [Path(line).name.strip(".").removesuffix(".partial") for line in lines]


def test_bin_prints_the_folder_alone_and_says_what_is_built(machine):
    done = run_bin()
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.removesuffix("\n"))
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    assert f"building kubectl ({NAMES.index('kubectl') + 1} of 6), 0:0" in done.stderr
    assert not (machine / "cache" / "build").exists()


def test_a_second_run_builds_nothing(machine):
    first, second = run_bin(), run_bin()
    assert second.stdout == first.stdout
    assert len(calls(machine)) == 6


def test_a_broken_build_keeps_what_it_made_and_goes_on(machine, monkeypatch):
    monkeypatch.setenv("GO_BREAKS_AT", "kube-scheduler")
    broken = run_bin()
    assert broken.returncode == 1
    assert broken.stdout == ""
    assert "undefined: something" in broken.stderr
    assert "make bin" in broken.stderr
    monkeypatch.setenv("GO_BREAKS_AT", "nothing")
    assert run_bin().returncode == 0
    assert calls(machine) == [*NAMES[:4], *NAMES[3:]]


def test_an_interrupted_build_ends_its_compiler(machine, monkeypatch):
    monkeypatch.setenv("GO_HANGS_AT", "kube-apiserver")
    # What runs in a shell's background inherits an ignored SIGINT, and Python would keep it.
    listening = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "runpy.run_module('world.controlplane', run_name='__main__', alter_sys=True)"
    )
    command = [sys.executable, "-c", listening, "bin"]
    build = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while not (pid_file := machine / "calls.pid").exists() or not pid_file.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    compiler = Identity.of(int(pid_file.read_text()))
    build.send_signal(signal.SIGINT)
    out, err = build.communicate(timeout=20)
    assert (build.returncode, out) == (130, b"")
    assert b"what is built stays built" in err
    assert not compiler.alive()


def test_two_builds_at_once_build_each_program_once(machine):
    command = [sys.executable, "-m", "world.controlplane", "bin"]
    both = [
        subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    folders = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(folders) == 1
    assert sorted(calls(machine)) == sorted(NAMES)


def test_what_the_machine_has_is_linked_not_built(machine, monkeypatch):
    assets = machine / "assets"
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    program(assets / "etcd", "etcd Version: 3.6.2")
    program(assets / "kubectl", "Client Version: v1.36.0")
    done = run_bin()
    folder = Path(done.stdout.strip())
    assert (folder / "etcd").resolve() == assets / "etcd"
    assert (folder / "kube-apiserver").resolve().parent == built_folder()
    assert sorted(calls(machine)) == sorted(set(NAMES) - {"etcd", "kubectl"})


@pytest.mark.parametrize(
    ("name", "says", "want"),
    [
        pytest.param("kubectl", "Client Version: v1.36.0", True, id="the oldest usable kubectl"),
        pytest.param("kubectl", "Client Version: v1.20.2", False, id="an old kubectl"),
        pytest.param("helm", "v3.18.0+g9f8a1b2", True, id="a usable helm 3"),
        pytest.param("helm", "v3.9.4", False, id="an old helm"),
        pytest.param("etcd", "nothing to see", False, id="a program that does not say"),
    ],
)
def test_a_found_program_must_be_recent_enough(machine, monkeypatch, name, says, want):
    monkeypatch.setenv("PATH", f"{machine}/found:/bin")
    program(machine / "found" / name, says)
    assert (name in find_tools()) is want


@pytest.mark.parametrize(
    ("versions", "want"),
    [
        pytest.param({}, True, id="nothing found"),
        pytest.param({"kube-apiserver": (1, 36)}, True, id="a server like the ones we build"),
        pytest.param({"kube-apiserver": (1, 37)}, False, id="one newer server alone"),
        pytest.param(
            dict.fromkeys(NAMES[1:4], (1, 37)), True, id="all three servers of a newer version"
        ),
        pytest.param({"kubectl": (1, 40)}, True, id="kubectl is no server"),
    ],
)
def test_servers_are_of_one_minor_version(versions, want):
    assert agree(versions) is want


def test_the_folder_changes_with_the_settings(machine, monkeypatch):
    fast = built_folder()
    monkeypatch.setenv("SHIPFITTER_OPTIMISED", "1")
    assert built_folder() != fast
    assert built_folder().parent == Path(os.environ["SHIPFITTER_CACHE"])


def test_off_a_terminal_progress_is_a_line_now_and_then():
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(
        expected_seconds={"etcd": 60, "helm": 120}, stream=stream, clock=lambda: now[0]
    )
    progress.begin("etcd")
    for _ in range(50):
        now[0] += 1
        progress.tick()
    progress.begin("helm")
    assert stream.getvalue().splitlines() == [
        "building etcd (1 of 2), 0:00 of about 3:00",
        "building etcd (1 of 2), 0:20 of about 3:00",
        "building etcd (1 of 2), 0:40 of about 3:00",
        "building helm (2 of 2), 0:50 of about 3:00",
    ]
