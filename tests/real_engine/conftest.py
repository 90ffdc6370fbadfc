"""The test world with the real engine in its pods, and a tiny model on its hub."""

import os
import subprocess
import sys
import tempfile

import pytest

from real_engine.environment import VERSION, engine_folder
from real_engine.program import FOLDER, SOCKETS
from world.hub.repository import repository
from world.hub.virtual_files import VirtualFile
from world.nodes.programs import Image, Program
from world.nodes.runtime import Timing
from world.stage import PYTHON_PATH, TESTS, Stage

MODEL = "acme/tiny"
collect_ignore = ["tiny_model.py"]  # of the engine's Python


def images(folder, sockets):
    """`vllm serve` is adapted to a CPU, `vllm bench serve` and Python are the engine's own."""
    engine = Program(
        argv=(sys.executable, "-m", "real_engine.program"),
        environment={
            **PYTHON_PATH,
            FOLDER: str(folder),
            SOCKETS: sockets,
            "POD_LISTEN_ADDRESS": "{address}",
            "ENGINE_STUB_VERSION": VERSION,
        },
    )
    python = Program(
        argv=(str(folder / "bin" / "python"),),
        environment={"PATH": f"{folder / 'bin'}{os.pathsep}{os.defpath}", "DO_NOT_TRACK": "1"},
    )
    image = Image(entrypoint=engine, commands={"vllm": engine, "python3": python})
    return {"vllm/vllm-openai": image}


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """One control plane for all stories; probes keep their time, for this engine needs it."""
    folder = engine_folder()
    model = tmp_path_factory.mktemp("tiny")
    maker = TESTS / "real_engine" / "tiny_model.py"
    subprocess.run([folder / "bin" / "python", maker, model], check=True)
    files = {path.name: VirtualFile(path.read_bytes()) for path in sorted(model.iterdir())}
    timing = Timing(grace_factor=0.05, probe_factor=1.0, heartbeat_seconds=2.0)
    with (
        tempfile.TemporaryDirectory(prefix="engine-") as sockets,
        Stage(images=images(folder, sockets), timing=timing) as started,
    ):
        started.hub.add(repository(MODEL, more_files=files))
        started.eventually(started.operator_ready, what="the operator is ready")
        yield started


@pytest.fixture
def stage(world):
    """The world with nothing left of other stories."""
    world.clear()
    return world
