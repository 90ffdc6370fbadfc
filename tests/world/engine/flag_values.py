"""What stands behind a flag: numbers with suffixes, JSON, dotted keys.

Source: vLLM 0.33 vllm/engine/arg_utils.py human_readable_int, vllm/utils/argparse_utils.py.
"""

import argparse
import json
import re
from typing import Any

_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")


def suffixed_int(text: str) -> int:
    """`1k` is 1000, `1K` is 1024, `25.6k` is 25600; fractions only with the decimal ones."""
    match = _SUFFIXED.fullmatch(text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(float(number) * _DECIMAL[suffix])
    if "." in number:
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with binary suffixes like {suffix}. Did you mean to use "
            f"{number}{suffix.lower()} instead?"
        )
    return int(number) * _BINARY[suffix]


def length_or_auto(text: str) -> int:
    """A length; `auto` and -1 both mean the longest that fits."""
    return -1 if text.lower() == "auto" else suffixed_int(text)


def json_value(text: str) -> Any:
    """A JSON value."""
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to json.") from None


def fraction(text: str) -> float:
    return float(text)


fraction.__name__ = "float"  # argparse names the type in its message
suffixed_int.__name__ = "human_readable_int"


def normalised(arguments: list[str]) -> list[str]:
    """The command line as the parser wants it: dashes, `-O3` spelled out, dotted keys as JSON."""
    plain: list[str] = []
    dotted: dict[str, dict[str, Any]] = {}
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if re.fullmatch(r"-O\d", argument):
            plain.append(f"--optimization-level={argument[2:]}")
            continue
        flag, equals, value = argument.partition("=")
        if not flag.startswith("--"):
            plain.append(argument)
            continue
        head, *keys = flag.split(".")
        head = head.replace("_", "-")
        if keys:
            _put(dotted.setdefault(head, {}), keys, value if equals else waiting.pop(0))
        else:
            plain.append(f"{head}{equals}{value}")
    return plain + [f"{flag}={json.dumps(value)}" for flag, value in dotted.items()]


def _put(target: dict[str, Any], keys: list[str], value: str) -> None:
    for key in keys[:-1]:
        target = target.setdefault(key, {})
    try:
        target[keys[-1]] = json.loads(value)
    except ValueError:
        target[keys[-1]] = value
