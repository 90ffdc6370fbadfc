"""The stub over two nodes: a leader that needs its follower, and how one takes the other along."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from world.hub import Hub, published_repo
from world.test_engine import SMALL, environment

PATIENCE_SECONDS = 40.0


@pytest.fixture(scope="module")
def hub():
    with Hub(published_repo(SMALL)) as serving:
        yield serving


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Node:
    """One process of the group; its output goes to a file."""

    def __init__(self, folder: Path, hub: Hub, rank: int, port: int, scenario=None):
        self.output = folder / f"rank-{rank}.log"
        joined = f"--nnodes 2 --node-rank {rank} --master-addr 127.0.0.1 --master-port {port}"
        role = "--headless" if rank else f"--host 127.0.0.1 --port {free_port()}"
        flags = f"serve {SMALL} -pp 2 {joined} {role}"
        env = environment(hub, {"gpus": 1, **(scenario or {})}, POD_LISTEN_ADDRESS="127.0.0.1")
        with self.output.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "world.engine", *flags.split()],
                env=env,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    @property
    def said(self):
        return self.output.read_text("utf-8")

    def wait_for(self, words):
        deadline = PATIENCE_SECONDS / 0.1
        while words not in self.said:
            assert self.process.poll() is None, self.said
            deadline -= 1
            assert deadline > 0, self.said
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue

    def end(self):
        return self.process.wait(PATIENCE_SECONDS)


SERVES = "Application startup complete"


def test_a_leader_serves_once_its_follower_is_there_and_goes_with_it(hub, tmp_path):
    port = free_port()
    with Node(tmp_path, hub, 0, port) as leader:
        leader.wait_for("Resolved architecture")
        assert SERVES not in leader.said
        with Node(tmp_path, hub, 1, port) as follower:
            leader.wait_for(SERVES)
            assert follower.process.poll() is None
            assert "Worker_PP1_TP0" in follower.said
            follower.process.send_signal(signal.SIGKILL)
            assert leader.end() == 1
            assert "NCCL error" in leader.said


def test_a_follower_stays_until_it_is_asked_to_stop(hub, tmp_path):
    port = free_port()
    with Node(tmp_path, hub, 0, port) as leader, Node(tmp_path, hub, 1, port) as follower:
        leader.wait_for(SERVES)
        leader.process.send_signal(signal.SIGKILL)
        leader.end()
        assert follower.process.poll() is None, "its group is ended from outside"
        follower.process.send_signal(signal.SIGTERM)
        assert follower.end() == 0


def test_a_leader_without_followers_gives_up(hub, tmp_path):
    with Node(tmp_path, hub, 0, free_port(), {"join_seconds": 1}) as leader:
        assert leader.end() == 1
        assert "1/2 clients joined" in leader.said


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        pytest.param({"oom_in": "load"}, "CUDA out of memory", id="while it loads"),
        pytest.param({"oom_in": "graphs"}, "capture_end", id="while it captures graphs"),
        pytest.param({"free_gib": 40.0}, "Free memory on device cuda:0 (40.0", id="at once"),
    ],
)
def test_a_follower_that_refuses_says_why_and_takes_its_leader_along(
    hub, tmp_path, scenario, words
):
    port = free_port()
    with Node(tmp_path, hub, 0, port) as leader, Node(tmp_path, hub, 1, port, scenario) as follower:
        assert follower.end() == 1
        assert words in follower.said
        assert leader.end() == 1
        assert words not in leader.said


def test_the_cache_is_as_large_as_the_node_with_least_allows(hub, tmp_path):
    tokens = []
    for number, scenario in enumerate(({}, {"activation_gib": 20.0})):
        port = free_port()
        folder = tmp_path / str(number)
        folder.mkdir()
        with Node(folder, hub, 0, port) as leader, Node(folder, hub, 1, port, scenario):
            leader.wait_for(SERVES)
            (line,) = (row for row in leader.said.splitlines() if "GPU KV cache size" in row)
            tokens.append(int(line.split("size: ")[1].split(" ")[0].replace(",", "")))
    assert tokens[1] < tokens[0] * 0.8
