"""Every spelling that drivers, labels and clouds use, and names that only look like one."""

from pathlib import Path

import pytest
import yaml

from shipfitter.core.gpus import products, resolve_product
from shipfitter.core.instance_types import instance_gpus, known_instance_types
from shipfitter.core.mig import mig_memory_bytes, mig_profiles
from shipfitter.core.spellings import resolve_spelling, unknown_spelling
from shipfitter.units import GIB, MIB

DATA = yaml.safe_load((Path(__file__).parents[2] / "data/spellings.yaml").read_text())
LOOK_ALIKES = DATA.pop("look-alikes")
SPELLINGS = {
    (scheme, spelling): named if isinstance(named, list) else [named, None]
    for scheme, spellings in DATA.items()
    for spelling, named in spellings.items()
}


@pytest.mark.parametrize(
    ("spelling", "want"),
    [
        pytest.param(spelling, want, id=f"{scheme}: {spelling}")
        for (scheme, spelling), want in SPELLINGS.items()
    ],
)
def test_what_a_spelling_names(spelling, want):
    found = resolve_spelling(spelling)
    assert found is not None
    assert [found.row.product, found.gpus_per_node] == want
    assert 0 < found.usable_bytes <= found.row.cuda_total_bytes
    assert found.source


@pytest.mark.parametrize("spelling", LOOK_ALIKES, ids=lambda each: each or "nothing")
def test_what_only_looks_like_a_spelling_names_nothing(spelling):
    assert resolve_spelling(spelling) is None
    assert unknown_spelling(spelling).startswith("not in the catalogue; ")


def test_there_are_enough_of_both():
    assert len(SPELLINGS) >= 150
    assert len(LOOK_ALIKES) >= 30


@pytest.mark.parametrize("name", known_instance_types())
def test_every_instance_type_carries_a_card_of_the_catalogue(name):
    product, gpus = instance_gpus(name)
    row = resolve_product(product)
    assert row is not None
    assert row.product == product
    assert 1 <= gpus <= 16


@pytest.mark.parametrize(
    ("spelling", "profile", "want_mib"),
    [
        pytest.param("a100-40gb", "1g.5gb", 4864, id="the smallest slice"),
        pytest.param("a100-40gb", "3g.20gb", 19968, id="half a card"),
        pytest.param("a100-80gb", "7g.80gb", 80384, id="all of a card in one slice"),
        pytest.param("a100-80gb", "3g.39gb", 40192, id="as older drivers write it"),
        pytest.param("a100-80gb", "1g.10gb+me", 9856, id="media engines take no memory"),
        pytest.param("a100-80gb", "1g.10gb.me", 9856, id="as the resource writes them"),
        pytest.param("a100-80gb", "1c.3g.40gb", 40192, id="compute instances share the memory"),
        pytest.param("h100-nvl", "1g.12gb", 11008, id="10.75 GiB of an H100 NVL"),
        pytest.param("h100-nvl", "3g.47gb", 47493, id="46.38 GiB of it"),
        pytest.param("a100-80gb", "3g.20gb", None, id="a profile of another card"),
        pytest.param("l40s", "1g.5gb", None, id="a card without MIG"),
        pytest.param("h100", "large", None, id="no profile at all"),
    ],
)
def test_bytes_of_a_mig_slice(spelling, profile, want_mib):
    row = resolve_product(spelling)
    assert row is not None
    got = mig_memory_bytes(row, profile)
    assert got == (want_mib and want_mib * MIB)


@pytest.mark.parametrize(
    "row", [row for row in products() if mig_profiles(row)], ids=lambda row: row.product
)
def test_a_slice_has_a_little_less_than_its_name_says(row):
    for profile, slice_bytes in mig_profiles(row).items():
        gigabytes = int(profile.partition("g.")[2].removesuffix("gb"))
        assert 0.85 * gigabytes * GIB < slice_bytes <= min(gigabytes * GIB, row.cuda_total_bytes)
        assert mig_memory_bytes(row, profile) == slice_bytes


def test_every_card_that_can_be_partitioned_has_profiles():
    # Source: NVIDIA's MIG user guide: data-centre Ampere, Hopper and Blackwell, RTX PRO 5000 up.
    able = {(8, 0), (9, 0), (10, 0), (10, 3)}
    without = {row.product for row in products() if row.compute_capability in able}
    without -= {row.product for row in products() if mig_profiles(row)}
    without -= {"NVIDIA-CMP-170HX"}  # mining cards have none
    assert without == set()


@pytest.mark.parametrize(
    ("spelling", "want"),
    [
        pytest.param("GRID A100-10C", "a vGPU profile", id="a virtual GPU"),
        pytest.param(
            "nvidia.com/mig-1g.5gb", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", id="a partition's resource"
        ),
        pytest.param("L40SX", "did you mean NVIDIA-L40S", id="a slip"),
        pytest.param("banana", "write it as in NVIDIA-L40S:8", id="nothing near"),
    ],
)
def test_what_is_said_of_a_spelling_that_names_no_card(spelling, want):
    assert want in unknown_spelling(spelling)
    assert resolve_spelling(spelling) is None
