"""The catalogue's rows: one line of fact per GPU product, with where it was seen.

Columns: NVML's name · nominal GB as sold (the largest of that name) · MiB NVML reports as total
with driver R510 or newer · MiB CUDA reports as total, 0 where nobody published it · compute
capability · NVLink · other spellings · where the MiB were seen.

"rule" as a source means arithmetic from a neighbouring row: GDDR6 cards with ECC lose 1/16, HBM
cards lose nothing, GDDR7 cards show 0.44 % less than sold. "nominal" means the vendor's figure, not
checked on a card. A bridge that must be bought extra does not count as NVLink.
"""

from enum import StrEnum
from typing import NamedTuple


class Ecc(StrEnum):
    """What error correction takes of a card's memory."""

    NONE = "none"  # the card has none
    FREE = "free"  # stored beside the data: HBM, GDDR7
    INLINE_ON = "inline-on"  # 1/16 of the memory; the row's total is with it
    INLINE_OFF = "inline-off"  # 1/16 of the memory; the row's total is without it


class Row(NamedTuple):
    """One product as it is written down here."""

    nvml_name: str
    nominal_gib: int
    nvml_total_mib: int
    cuda_total_mib: int
    compute_capability: tuple[int, int]
    nvlink: bool
    spellings: str  # separated by spaces; the NVML name and its label form need no mention
    source: str
    unified: bool = False
    ecc: Ecc | None = None  # None: what is usual for the table the row stands in


MODAL = "modal-labs/modal-client#2797"
CONFIGURATOR = "ai-dynamo/aiconfigurator system files"
SMI = "nvidia-smi output in public repositories"
NOMINAL = "nominal"
LOGS = "CUDA from vLLM start-up logs"
RULE = "rule"
