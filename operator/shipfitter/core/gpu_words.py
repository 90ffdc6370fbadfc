"""What the words of a GPU's spelling say: family, memory, form; so that no list has to hold all.

"NVIDIA H200 141GB HBM3e", "H200 SXM 141 GB" and "h200-sxm5" are one family (h200) with a memory
(141) and a form (sxm) where they are told.
"""

import re
from dataclasses import dataclass

# How tools print a name: `nvidia-smi -L` with its identifier, `lspci` with the chip before it.
_PRINTED = (
    re.compile(r"GPU \d+: (?P<name>.+?) \(UUID: \S+\)"),
    re.compile(
        r"(?:NVIDIA Corporation )?[A-Z]{2}\d{2,3}[A-Z]* \[(?P<name>[^]]+)\](?: \(rev \w+\))?"
    ),
)


def printed_name(line: str) -> str:
    """The name in what a tool printed; all of it where it is a name.

    >>> printed_name("GPU 0: NVIDIA L4 (UUID: GPU-1)"), printed_name("AD102GL [L40S]")
    ('NVIDIA L4', 'L40S')
    """
    found = (form.fullmatch(line) for form in _PRINTED)
    return next((each["name"] for each in found if each), line)


# Say nothing about which card it is: makers, machines, memory kinds, what marketing adds.
_SAYS_NOTHING = frozenset(
    (
        *("nvidia", "tesla", "geforce", "gpu", "gpus", "graphics", "card", "accelerator"),
        *("superchip", "module", "with", "design"),
        *("generation", "edition", "passive", "hgx", "dgx", "vws", "ib", "roce", "infiniband"),
        *("grace", "hopper", "ampere", "turing", "volta", "lovelace", "nvl72", "nvl36", "nvl4"),
        *("hbm2", "hbm2e", "hbm3", "hbm3e", "gddr5", "gddr6", "gddr6x", "gddr7"),
    )
)
_FORMS = {"pcie": "pcie", "pci": "pcie", "nvl": "nvl", "nvlink": "sxm", "sxm": "sxm"}
_FORMS |= {f"sxm{number}": "sxm" for number in range(2, 7)}
_LAPTOP = {"laptop": "laptop", "mobile": "laptop", "notebook": "laptop"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A spelling's parts; 0 and "" for what it does not tell."""

    family: str
    gigabytes: int = 0
    form: str = ""  # sxm | pcie | nvl


def words_of(spelling: str) -> Words:
    """The parts of a spelling.

    >>> words_of("NVIDIA H100 NVL 94 GB")
    Words(family='h100', gigabytes=94, form='nvl')
    >>> words_of("RTX 4090 Mobile").family, words_of("GeForce RTX 4090 Laptop GPU").family
    ('rtx4090laptop', 'rtx4090laptop')
    """
    text = re.sub(r"[_\s]+", " ", spelling.lower())
    text = re.sub(r"tensor[- ]core|blackwell ultra", " ", text)
    text = re.sub(r"(\d)[ -](gi?b)\b", r"\1\2", text)
    family, gigabytes, form = [], 0, ""
    for word in re.split(r"[^a-z0-9]+", text):
        sized = re.fullmatch(r"(\d{1,3})(?:g|gb|gib)", word)
        if sized:
            gigabytes = int(sized[1])
        elif word in _FORMS:
            form = _FORMS[word]
        elif word not in _SAYS_NOTHING:
            family.append(_LAPTOP.get(word, word))
    # The laptop's word stands at the end or not; the family is the same.
    laptop = "laptop" if "laptop" in family else ""
    return Words(
        family="".join(word for word in family if word != "laptop") + laptop,
        gigabytes=gigabytes,
        form=form,
    )


def normalise_product(nvml_name: str) -> str:
    """NVML's name in gpu-feature-discovery's spelling: "NVIDIA L40S" -> "NVIDIA-L40S".

    Source: NVIDIA/k8s-device-plugin internal/lm/resource.go: whatever is no letter, digit, dash,
    underscore, dot or space is dropped, and the words are joined by dashes.

    >>> normalise_product("NVIDIA L40S"), normalise_product("Orin (nvgpu)")
    ('NVIDIA-L40S', 'Orin-nvgpu')
    """
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", nvml_name).split())


_SHORT = {"Blackwell": "", "Edition": "", "Generation": "", "Server": "", "Workstation": "WS"}


def short_product(product: str) -> str:
    """A product for narrow columns; still a spelling that is understood.

    >>> short_product("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"), short_product("NVIDIA-L40S")
    ('RTX-PRO-6000', 'L40S')
    """
    words = product.removeprefix("NVIDIA-").removeprefix("GeForce-").split("-")
    return "-".join(filter(None, (_SHORT.get(word, word) for word in words)))


_APPENDED = re.compile(
    r"(?P<product>.*?)(?:[-_ ]MIG[-_ ](?P<profile>\d\S*?))?(?P<shared>[-_ ]SHARED)?", re.IGNORECASE
)


def bare_product(label: str) -> tuple[str, str, bool]:
    """A product label without what the device plugin appended: product, MIG profile, shared.

    Source: NVIDIA/k8s-device-plugin internal/lm: "-MIG-<profile>" under the single strategy,
    "-SHARED" for replicated GPUs that kept their resource name. The driver names a MIG device
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb".

    >>> bare_product("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED")
    ('NVIDIA-A100-SXM4-40GB', '3g.20gb', True)
    >>> bare_product("NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    ('NVIDIA A100-SXM4-40GB', '1g.5gb', False)
    """
    found = _APPENDED.fullmatch(label)
    if found is None:
        return label, "", False
    return found["product"], (found["profile"] or "").lower(), found["shared"] is not None
