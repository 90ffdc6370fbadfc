"""A checkpoint's quantisation: what config.json declares, and which modules it covers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shipfitter.core.facts import Quantization
from shipfitter.core.module_patterns import ModulePatterns
from shipfitter.core.text_config import TextConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How one linear module is stored.

    `layout` is one of plain, fp8_block, fp8, int8, packed_int (compressed-tensors), awq, gptq,
    nvfp4, mxfp4, nf4.
    """

    layout: str = "plain"
    bits: int = 16
    group_size: int = 0
    block: tuple[int, int] = (0, 0)
    symmetric: bool = True
    activation_order: bool = False
    scale_bytes: int = 2


PLAIN = Scheme()
_FP4_EXPERTS = Scheme(layout="mxfp4", bits=4, group_size=32)

# Lowest compute capability the engine starts on, as (major, minor).
# Source: vLLM 0.33 vllm/model_executor/layers/quantization/*.py get_min_capability and the schemes
# of compressed_tensors and modelopt; gptq declares 6.0 but its kernels need 7.5.
_MIN_CAPABILITY: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "fp8": (7, 5),
        "awq": (7, 5),
        "gptq": (7, 5),
        "compressed-tensors": (7, 5),
        "modelopt": (7, 5),
        "modelopt:FP8": (8, 0),
        "modelopt:MXFP8": (8, 0),
        "mxfp4": (8, 0),
        "experts_int8": (8, 0),
        "fbgemm_fp8": (8, 0),
        "fp_quant": (10, 0),
        "moe_wna16": (7, 0),
        "quark": (7, 0),
        "torchao": (7, 5),
        "humming": (7, 5),
        "bitsandbytes": (7, 0),
        "auto-round": (7, 5),
        "inc": (7, 5),
    }
)


def declared(config: TextConfig) -> Mapping[str, Any] | None:
    """The quantisation block of config.json, wherever it stands; None for plain checkpoints."""
    for holder in (config.whole, config.text):
        for key in ("quantization_config", "compression_config"):
            block = holder.get(key)
            if isinstance(block, Mapping):
                return block
        block = holder.get("hf_quant_config")
        if isinstance(block, Mapping):  # modelopt's own file, carried beside
            inner = block.get("quantization", {})
            return {"quant_method": "modelopt", **inner}
    return None


def quantization_facts(config: TextConfig) -> Quantization | None:
    """What sizing and messages need of the quantisation; None for plain checkpoints."""
    block = declared(config)
    if block is None or not _method(block):
        return None
    method = _method(block)
    schemes = [scheme for _, scheme in _rules(block)]
    if config.get("expert_dtype") == "fp4":
        schemes.append(_FP4_EXPERTS)
    lowest = min(schemes, key=lambda scheme: scheme.bits)
    ignored = _ignored(block)
    algorithm = str(block.get("quant_algo", "")).upper()
    capability = _MIN_CAPABILITY.get(f"{method}:{algorithm}", _MIN_CAPABILITY.get(method, (7, 5)))
    blocks = [scheme.block for scheme in schemes if scheme.layout == "fp8_block"]
    return Quantization(
        method=method,
        weight_bits=float(lowest.bits),
        weight_block=blocks[0] if blocks else None,
        group_size=lowest.group_size,
        kv_cache_scheme=_kv_cache_scheme(block),
        ignored=ignored,
        min_compute_capability=capability,
    )


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which scheme covers which module; built once per checkpoint."""

    ignored: ModulePatterns
    rules: tuple[tuple[ModulePatterns, Scheme], ...]

    @classmethod
    def read(cls, config: TextConfig) -> "Coverage":
        """What config.json declares; covers nothing for plain checkpoints."""
        block = declared(config)
        if block is None or not _method(block):
            return cls(ignored=ModulePatterns.read(()), rules=())
        rules = _rules(block)
        if config.get("expert_dtype") == "fp4":  # DeepSeek-V4: fp8 but for its routed experts
            rules.insert(0, (("experts",), _FP4_EXPERTS))
        return cls(
            ignored=ModulePatterns.read(_ignored(block)),
            rules=tuple((ModulePatterns.read(names), scheme) for names, scheme in rules),
        )

    def scheme_of(self, path: str) -> Scheme:
        """How the checkpoint stores one linear module."""
        covering = (scheme for targets, scheme in self.rules if targets.cover(path))
        scheme = next(covering, PLAIN)
        return PLAIN if scheme is not PLAIN and self.ignored.cover(path) else scheme


def _method(block: Mapping[str, Any]) -> str:
    method = (
        str(block.get("quant_method", ""))
        .lower()
        .replace("compressed_tensors", "compressed-tensors")
    )
    return "modelopt" if method.startswith("modelopt") else method.replace("_marlin", "")


def _ignored(block: Mapping[str, Any]) -> tuple[str, ...]:
    """Modules left alone; GPTQModel and AutoRound say so one by one, with rules of their own."""
    lists = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
    named = next((block[key] for key in lists if block.get(key)), ())
    dynamic = block.get("dynamic") or {}
    negative = (f"re:{rule[2:]}" for rule in dynamic if str(rule).startswith("-:"))
    extra = block.get("extra_config") or {}
    whole = (name for name, rule in extra.items() if int(rule.get("bits", 4)) >= 16)
    return (*map(str, named), *negative, *whole)


def _rules(block: Mapping[str, Any]) -> list[tuple[Sequence[str], Scheme]]:
    """(targets, scheme) in the order in which they apply."""
    method = _method(block)
    groups = block.get("config_groups")
    if isinstance(groups, Mapping) and groups:
        rules = [
            (tuple(group.get("targets", ("Linear",))), _group_scheme(group, block))
            for group in groups.values()
        ]
        return sorted(rules, key=lambda rule: "Linear" in rule[0])  # named modules first
    return [(("Linear",), _whole_scheme(method, block))]


def _group_scheme(group: Mapping[str, Any], block: Mapping[str, Any]) -> Scheme:
    """compressed-tensors and modelopt describe each group's weights alike."""
    weights = group.get("weights") or {}
    bits, kind = int(weights.get("num_bits", 8)), str(weights.get("type", "int"))
    size = int(weights.get("group_size") or 0)
    if kind == "float" and bits == 4:
        pack = str(group.get("format") or block.get("format") or "")
        return Scheme(layout="mxfp4", bits=4, group_size=32) if "mxfp4" in pack else _NVFP4
    if kind == "float":
        structure = weights.get("block_structure")
        if structure:
            return Scheme(layout="fp8_block", bits=8, block=(structure[0], structure[1]))
        return Scheme(layout="fp8", bits=8)
    if bits == 8 and not size:
        return Scheme(layout="int8", bits=8)
    symmetric = bool(weights.get("symmetric", True))
    return Scheme(layout="packed_int", bits=bits, group_size=size or 128, symmetric=symmetric)


_NVFP4 = Scheme(layout="nvfp4", bits=4, group_size=16)


def _whole_scheme(method: str, block: Mapping[str, Any]) -> Scheme:
    """One scheme for every linear module, for the methods that have no groups."""
    size = block.get("group_size") or block.get("q_group_size") or 128
    if method in ("awq", "gptq", "auto-round", "inc"):
        awq = method == "awq" or "awq" in str(block.get("packing_format", ""))
        return Scheme(
            layout="awq" if awq else "gptq",
            bits=int(block.get("bits") or block.get("w_bit") or 4),
            group_size=int(size),
            symmetric=bool(block.get("sym", not awq)),
            activation_order=bool(block.get("desc_act")),
        )
    if method == "mxfp4":
        return Scheme(layout="mxfp4", bits=4, group_size=32)
    if method == "bitsandbytes":
        eight = bool(block.get("load_in_8bit"))
        return Scheme(layout="int8", bits=8) if eight else Scheme(layout="nf4", bits=4)
    if nested := _NESTED.get(method):
        return _by_words(str(nested(block)).lower(), int(size))
    shape = block.get("weight_block_size")
    if shape:
        return Scheme(layout="fp8_block", bits=8, block=(int(shape[0]), int(shape[1])))
    return _named_scheme(block, int(size))


# Methods that describe their weights in a block of their own.
# Source: transformers utils/quantization_config.py TorchAoConfig, HqqConfig, QuarkConfig.
_NESTED: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType(
    {
        "torchao": lambda block: block.get("quant_type"),
        "hqq": lambda block: str(block.get("quant_config")).replace("'nbits': ", "int"),
        "quark": lambda block: (block.get("global_quant_config") or {}).get("weight"),
    }
)


def _by_words(described: str, group_size: int) -> Scheme:
    """The scheme a description in words or keys means; eight-bit floats where it says nothing."""
    if "int4" in described or "uint4" in described:
        return Scheme(layout="packed_int", bits=4, group_size=group_size)
    if "fp4" in described:
        return Scheme(layout="mxfp4", bits=4, group_size=32)
    if "int8" in described and "float8" not in described:
        return Scheme(layout="int8", bits=8)
    return Scheme(layout="fp8", bits=8)


def _named_scheme(block: Mapping[str, Any], group_size: int) -> Scheme:
    """The scheme a format or algorithm is named after."""
    keys = ("quant_algo", "format", "note")
    named = " ".join(str(block.get(key, "")) for key in keys).lower()
    if "nvfp4" in named:
        return _NVFP4
    if "pack-quantized" in named or "w4a16" in named:
        return Scheme(layout="packed_int", bits=4, group_size=group_size)
    if "int-quantized" in named:
        return Scheme(layout="int8", bits=8)
    if "128x128" in named:
        return Scheme(layout="fp8_block", bits=8, block=(128, 128))
    return Scheme(layout="fp8", bits=8)


def _kv_cache_scheme(block: Mapping[str, Any]) -> str | None:
    """fp8 or nvfp4 where the checkpoint asks for such a cache.

    Source: vLLM vllm/utils/torch_utils.py resolve_kv_cache_dtype_string.
    """
    stated = block.get("kv_cache_scheme")
    if isinstance(stated, Mapping):
        return "nvfp4" if int(stated.get("num_bits", 8)) == 4 else "fp8"
    algorithm = str(block.get("kv_cache_quant_algo") or stated or "").lower()
    return "nvfp4" if "nvfp4" in algorithm else "fp8" if "fp8" in algorithm else None
