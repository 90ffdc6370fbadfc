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
        ("t4", 14.56),
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


@pytest.mark.parametrize(
    ("spelling", "total_mib", "want_mib"),
    [
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
        "NVIDIA-A100-SXM4-40GB",
        "NVIDIA-A100-PCIE-40GB",
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
