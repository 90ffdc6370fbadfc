"""GPU products: what a card offers when nobody measured it, and the spellings that name it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProduct:
    """One row of the catalogue; memory as NVML reports it with driver >= R510."""

    product: str  # gpu-feature-discovery's spelling
    nvml_total_bytes: int
    cuda_total_bytes: int
    compute_capability: tuple[int, int]
    nvlink: bool
    aliases: tuple[str, ...]  # provider labels, short names
    source: str


def resolve_product(spelling: str) -> GpuProduct | None:
    """The catalogue's row for any spelling of a product; None when it is not known."""
    raise NotImplementedError


def normalise_product(nvml_name: str) -> str:
    """NVML's name in gpu-feature-discovery's spelling: "NVIDIA L40S" -> "NVIDIA-L40S"."""
    raise NotImplementedError
