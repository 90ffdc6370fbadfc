"""The image and the locks: what runs is what pyproject asks for, by hash, as an ordinary user."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
FIX = "run `make lock`"
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
RUNTIME = PYPROJECT["project"]["dependencies"]
DEVELOPMENT = [*RUNTIME, *PYPROJECT["dependency-groups"]["dev"]]


def pins(name):
    """Name → (version, number of hashes) of a lock file."""
    lines = (REPOSITORY / name).read_text().replace("\\\n", " ").splitlines()
    found = {}
    for line in lines:
        if match := re.match(r"([A-Za-z0-9._-]+)==([^ ;]+)", line):
            found[canonicalize_name(match[1])] = (match[2], line.count("--hash=sha256:"))
    return found


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        pytest.param("requirements.txt", RUNTIME, id="what runs"),
        pytest.param("requirements-dev.txt", DEVELOPMENT, id="what tests"),
    ],
)
def test_a_lock_satisfies_pyproject(lock, wanted):
    pinned = pins(lock)
    for each in map(Requirement, wanted):
        version, _ = pinned.get(canonicalize_name(each.name), (None, 0))
        assert version, f"{lock}: no {each.name}; {FIX}"
        assert each.specifier.contains(version), f"{lock}: {each.name} {version}, {each}; {FIX}"


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_every_pin_has_its_hashes_and_no_index_is_named(lock):
    without = [name for name, (_, hashes) in pins(lock).items() if not hashes]
    assert not without, f"{lock}: no hash for {without}; {FIX}"
    assert not re.search(
        r"(?m)^\s*(--index|--extra|--find|-i\b)|://", (REPOSITORY / lock).read_text()
    )


def test_what_is_tested_is_what_runs():
    tested = pins("requirements-dev.txt")
    different = {name for name, pin in pins("requirements.txt").items() if tested.get(name) != pin}
    assert not different, FIX


def instructions():
    text = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_image_copies_only_what_is_there():
    allowed = (REPOSITORY / ".dockerignore").read_text().splitlines()
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (REPOSITORY / source).exists()
                assert f"!{source}" in allowed


def test_the_image_runs_as_the_user_the_chart_asks_for():
    values = yaml.safe_load((REPOSITORY / "charts/shipfitter/values.yaml").read_text())
    said = dict(instructions())
    uid = values["agent"]["runAsUser"]
    assert said["USER"] == f"{uid}:{uid}"
    assert said["ENTRYPOINT"] == '["shipfitter"]'


def test_the_chart_moves_with_the_package():
    chart = yaml.safe_load((REPOSITORY / "charts/shipfitter/Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == PYPROJECT["project"]["version"]
