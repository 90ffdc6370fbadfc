"""The catalogue: spellings, bytes, and what it does not know."""

import pytest

from shipfitter.core.gpus import (
    assumed_reserved_bytes,
    bare_product,
    is_implausible,
    nearest_products,
    normalise_product,
    products,
    resolve_product,
)
from shipfitter.core.instance_types import instance_gpus
from shipfitter.units import GIB, MIB


@pytest.mark.parametrize(
    ("spelling", "want"),
    [
        pytest.param("NVIDIA L40S", "NVIDIA-L40S", id="NVML's name"),
        pytest.param("NVIDIA-L40S", "NVIDIA-L40S", id="the label"),
        pytest.param("NVIDIA-L40S-SHARED", "NVIDIA-L40S", id="the label of a time-sliced node"),
        pytest.param("l40s", "NVIDIA-L40S", id="Karpenter's gpu-name"),
        pytest.param("nvidia-l4", "NVIDIA-L4", id="GKE's accelerator"),
        pytest.param("nvidia-tesla-a100", "NVIDIA-A100-SXM4-40GB", id="GKE's older name"),
        pytest.param("nvidia-h100-mega-80gb", "NVIDIA-H100-80GB-HBM3", id="GKE's mega machine"),
        pytest.param("H100", "NVIDIA-H100-80GB-HBM3", id="a short name in capitals"),
        pytest.param("a100-80gb", "NVIDIA-A100-SXM4-80GB", id="a short name with its memory"),
        pytest.param("RTX 4090", "NVIDIA-GeForce-RTX-4090", id="a desktop card with a space"),
        pytest.param("4090", "NVIDIA-GeForce-RTX-4090", id="a desktop card by its number"),
        pytest.param(
            "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", "NVIDIA-A100-SXM4-40GB", id="a MIG slice's label"
        ),
        pytest.param("Orin (nvgpu)", "Orin-nvgpu", id="odd characters are dropped"),
        pytest.param("GB10 (DGX Spark)", "NVIDIA-GB10", id="a machine's name"),
    ],
)
def test_resolve_product(spelling, want):
    row = resolve_product(spelling)
    assert row is not None
    assert row.product == want


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param("a100", id="two memory sizes have this name"),
        pytest.param("v100", id="so it is for the older one"),
        pytest.param("", id="nothing"),
        pytest.param("nvidia", id="only a vendor"),
        pytest.param("h1000", id="a product nobody sells"),
    ],
)
def test_a_spelling_that_names_no_one_product(spelling):
    assert resolve_product(spelling) is None


@pytest.mark.parametrize("row", products(), ids=lambda row: row.product)
def test_every_row_is_complete_and_found_by_each_of_its_names(row):
    assert row.source
    assert row.product == normalise_product(row.aliases[0])
    assert 0 < row.cuda_total_bytes <= row.nvml_total_bytes
    assert not is_implausible(row, row.nvml_total_bytes)
    for spelling in (row.product, *row.aliases):
        assert resolve_product(spelling) is row


# CUDA's total in GiB as engines print it on real cards.
# Source: start-up logs of vLLM in public issues; PyTorch's device properties.
@pytest.mark.parametrize(
    ("spelling", "want_gib"),
    [
        ("rtx-5060-ti", 15.51),
        ("l4", 22.06),
        ("3090", 23.56),
        ("5090", 31.36),
        ("rtx-pro-4500", 31.38),
        ("a100-40gb", 39.49),
        ("l40s", 44.39),
        ("a100-80gb", 79.25),
        ("h100", 79.19),
        ("rtx-pro-6000", 94.97),
        ("h200", 139.81),
        ("b200", 178.35),
        ("b300", 267.69),
    ],
)
def test_cuda_total_is_what_engines_see(spelling, want_gib):
    row = resolve_product(spelling)
    assert row is not None
    assert row.cuda_total_bytes / GIB == pytest.approx(want_gib, abs=0.01)


# Where driver branches or modules differ: engines' and PyTorch's figures, within 1 % of the row.
@pytest.mark.parametrize(
    ("spelling", "seen_gib"),
    [
        ("t4", (14.56, 14.74)),
        ("a10", (22.06, 22.07)),
        ("l40s", (44.39, 44.42, 44.53)),
        ("a100-40gb", (39.38, 39.39, 39.49, 39.56)),
        ("a100-80gb", (79.15, 79.25, 79.32, 79.33)),
        ("a800", (79.33,)),
        ("h100", (79.1, 79.18, 79.19, 79.22, 79.33)),
        ("h100-pcie", (79.1,)),
        ("h100-nvl", (93.02,)),
        ("h200", (139.8, 139.81)),
        ("h20-3e", (139.72,)),
        ("gh200-144gb", (142.5,)),
        ("v100-32gb", (31.74,)),
        ("a6000", (47.43, 47.54)),
        ("3080-ti", (11.76,)),
        ("3090", (23.53, 23.56, 23.57, 23.58)),
        ("4090-d", (23.55,)),
        ("5080", (15.47,)),
        ("rtx-4070-laptop-gpu", (7.65,)),
        ("gb10", (121.63, 121.69)),
    ],
)
def test_cuda_total_is_within_a_percent_of_all_that_was_seen(spelling, seen_gib):
    row = resolve_product(spelling)
    assert row is not None
    for gib in seen_gib:
        assert row.cuda_total_bytes / GIB == pytest.approx(gib, rel=0.01)


@pytest.mark.parametrize(
    ("spelling", "want_on_mib", "want_off_mib"),
    [
        pytest.param("l40s", 46_068, 49_140, id="GDDR6 with ECC as it comes"),
        pytest.param("a10", 23_028, 24_564, id="a smaller one"),
        pytest.param("t4", 15_360, 16_384, id="the smallest"),
        pytest.param("rtx-a6000", 46_068, 49_140, id="a workstation's comes without"),
        pytest.param("h100", 81_559, 81_559, id="HBM loses nothing"),
        pytest.param("rtx-pro-6000", 97_887, 97_887, id="nor does GDDR7"),
        pytest.param("4090", 24_564, 24_564, id="a desktop's has none"),
    ],
)
def test_what_error_correction_takes(spelling, want_on_mib, want_off_mib):
    row = resolve_product(spelling)
    assert row is not None
    got = (row.total_bytes(ecc=True) // MIB, row.total_bytes(ecc=False) // MIB)
    assert got == (want_on_mib, want_off_mib)


@pytest.mark.parametrize(
    ("spelling", "want"),
    [
        ("a100-80gb", (False, False)),
        ("t4", (False, False)),
        ("l4", (True, False)),
        ("h100", (True, False)),
        ("b200", (True, True)),
        ("5090", (True, True)),
    ],
)
def test_number_formats(spelling, want):
    row = resolve_product(spelling)
    assert row is not None
    assert (row.fp8, row.fp4) == want


@pytest.mark.parametrize(
    ("spelling", "total_mib", "want_mib"),
    [
        pytest.param("4060-ti", 8_188, 400, id="a smaller card of that name, not an old driver"),
        pytest.param("a100-80gb", 81_920, 768, id="today's driver counts all of it"),
        pytest.param("a100-80gb", 81_251, 99, id="drivers before R510 left most of it out"),
        pytest.param("l40s", 49_140, 613, id="ECC off: more memory, the same reserve"),
        pytest.param("no-such-card", 100_000, 900, id="an unknown card: 0.9 percent"),
        pytest.param("no-such-card", 8_192, 400, id="an unknown small card: 400 MiB"),
    ],
)
def test_assumed_reserved_bytes(spelling, total_mib, want_mib):
    got = assumed_reserved_bytes(resolve_product(spelling), total_mib * MIB)
    assert got == want_mib * MIB


@pytest.mark.parametrize(
    ("spelling", "total_mib", "want"),
    [
        pytest.param("l40s", 49_140, False, id="ECC off"),
        pytest.param("h100", 81_559, False, id="as usual"),
        pytest.param("l40s", 69_102, True, id="half as much again"),
        pytest.param("rtx-2080-ti", 22_528, True, id="a modified card"),
    ],
)
def test_is_implausible(spelling, total_mib, want):
    row = resolve_product(spelling)
    assert row is not None
    assert is_implausible(row, total_mib * MIB) is want


def test_nearest_products_start_with_the_closest():
    assert nearest_products("a100") == (
        "NVIDIA-A100-SXM4-80GB",
        "NVIDIA-A100-80GB-PCIe",
        "NVIDIA-A100-SXM4-40GB",
    )
    assert nearest_products("NVIDIA L40 S", 1) == ("NVIDIA-L40S",)
    assert nearest_products("") == nearest_products("spaceship") == ()


def test_bare_product_leaves_a_plain_label_alone():
    assert bare_product("NVIDIA-L4") == ("NVIDIA-L4", "", False)


@pytest.mark.parametrize(
    ("instance_type", "want"),
    [
        ("g6.48xlarge", ("NVIDIA-L4", 8)),
        ("p5.48xlarge", ("NVIDIA-H100-80GB-HBM3", 8)),
        ("p4de.24xlarge", ("NVIDIA-A100-SXM4-80GB", 8)),
        ("g2-standard-24", ("NVIDIA-L4", 2)),
        ("a2-megagpu-16g", ("NVIDIA-A100-SXM4-40GB", 16)),
        ("Standard_NC96ads_A100_v4", ("NVIDIA-A100-80GB-PCIe", 4)),
        ("c7i.8xlarge", None),
        ("", None),
    ],
)
def test_instance_gpus(instance_type, want):
    assert instance_gpus(instance_type) == want
