"""An installed chart: one in a cluster, and an uninstalled one leaves the users' objects."""

import re
from pathlib import Path

import pytest

from world.controlplane import CommandError, Plane

pytestmark = pytest.mark.plane
CHART = Path(__file__).parents[2] / "charts" / "shipfitter"
KINDS = ["calibrations", "gpunodes", "modeldeployments"]


@pytest.fixture(scope="module")
def plane():
    with Plane() as started:
        yield started


@pytest.fixture
def installed(plane):
    said = install(plane, "shipfitter")
    yield said
    plane.helm("uninstall", "shipfitter", "-n", "shipfitter", "--ignore-not-found")


def install(plane, release, *words):
    return plane.helm(
        *("install", release, CHART, "-n", release, "--create-namespace"),
        *words,
    )


def kinds(plane):
    names = plane.kubectl("get", "crd", "-o", "name").split()
    return [name.partition("/")[2].removesuffix(".shipfitter.dev") for name in names]


def test_it_says_what_comes_next(installed):
    steps = [line[:2] for line in installed.splitlines() if re.match(r"\d\.", line)]
    assert steps == ["1.", "2.", "3."]
    assert "kubectl get gpunodes" in installed


def test_the_kinds_are_served(plane, installed):
    plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=20s")
    assert kinds(plane) == KINDS
    for kind in KINDS:
        plane.kubectl("get", kind, "-A")


def test_it_can_be_upgraded_in_place(plane, installed):
    plane.helm("upgrade", "shipfitter", CHART, "-n", "shipfitter", "--set", "crds.install=true")
    assert kinds(plane) == KINDS


def test_a_second_installation_is_refused_with_the_way_out(plane, installed):
    with pytest.raises(CommandError, match="helm upgrade shipfitter -n shipfitter"):
        install(plane, "another")


def test_the_kinds_outlive_the_release_and_can_be_handed_over(plane):
    install(plane, "shipfitter")
    plane.helm("uninstall", "shipfitter", "-n", "shipfitter")
    assert kinds(plane) == KINDS
    with pytest.raises(CommandError, match="Hand them over with") as refused:
        install(plane, "another")
    commands = re.search(r"`(kubectl annotate .*?)`", str(refused.value))[1]
    for command in commands.split(" && "):
        plane.kubectl(*command.split()[1:])
    plane.helm("install", "another", CHART, "-n", "another", "--create-namespace")
    plane.helm("uninstall", "another", "-n", "another")
    with pytest.raises(CommandError, match=r"crds\.install=false"):
        install(plane, "shipfitter")
    install(plane, "shipfitter", "--set", "crds.install=false")
    plane.helm("uninstall", "shipfitter", "-n", "shipfitter")
