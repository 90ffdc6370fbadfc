"""A user's engine arguments, read as the engine itself would read them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shipfitter.api.engine_flags import (
    OTHER_NAMES,
    RESERVED_FLAGS,
    SIZING_FLAGS,
    SizingFlag,
    Takes,
)
from shipfitter.api.serve_flags import EVERY_FLAG, SWITCHES

PinnedValue = int | float | str | bool | tuple[int, ...]

_SUFFIXES = {
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
}  # fmt: skip
_OPTION = re.compile(r"^--?[A-Za-z]")  # -1 and -0.5 are values
_KNOWN = EVERY_FLAG | set(SIZING_FLAGS) | set(RESERVED_FLAGS)


@dataclass(frozen=True, slots=True)
class Argument:
    """One option with its values, as written and as the engine understands it."""

    flag: str  # in full: --max-model-len; "" for values that follow no option
    values: tuple[str, ...]
    tokens: tuple[str, ...]
    off: bool = False  # --no-...


def read_arguments(args: Sequence[str]) -> tuple[Argument, ...]:
    """The options of a command line, in order.

    >>> read_arguments(["-tp=2", "--max_model_len", "8k"])[1].flag
    '--max-model-len'
    """
    return tuple(_argument(group) for group in _groups(args))


def _groups(args: Sequence[str]) -> Iterator[tuple[str, ...]]:
    group: list[str] = []
    for token in args:
        if _OPTION.match(token) and group:
            yield tuple(group)
            group = []
        group.append(token)
    if group:
        yield tuple(group)


def _argument(tokens: tuple[str, ...]) -> Argument:
    first, *rest = tokens
    if not _OPTION.match(first):
        return Argument(flag="", values=tokens, tokens=tokens)
    name, equals, value = first.partition("=")
    values = (value, *rest) if equals else tuple(rest)
    flag, off = _full_name(name)
    return Argument(flag=flag, values=values, tokens=tokens, off=off)


def _full_name(name: str) -> tuple[str, bool]:
    """The flag in full and whether it is switched off."""
    head, dot, tail = name.partition(".")  # --compilation-config.mode: only the head is a flag
    if not name.startswith("--"):
        return OTHER_NAMES.get(head, head) + dot + tail, False
    spelled = head.replace("_", "-") + dot + tail
    if spelled.startswith("--no-"):
        positive = _unabbreviated("--" + spelled.removeprefix("--no-"))
        if positive in SWITCHES:
            return positive, True
    if spelled.startswith("--disable-") and spelled not in _KNOWN:
        # Source: vLLM 0.33 vllm/utils/argparse_utils.py EnableDisableAction.
        enabled = _unabbreviated("--enable-" + spelled.removeprefix("--disable-"))
        if enabled in SWITCHES:
            return enabled, True
    return _unabbreviated(spelled), False


def _unabbreviated(spelled: str) -> str:
    """The one known flag that begins so: the engine's parser takes unambiguous beginnings."""
    if spelled in OTHER_NAMES:
        return OTHER_NAMES[spelled]
    if spelled in _KNOWN or len(spelled) < len("--xxx"):
        return spelled
    matches = [flag for flag in _KNOWN if flag.startswith(spelled)]
    return matches[0] if len(matches) == 1 else spelled


def parse_integer(text: str) -> int | None:
    """A whole number as the engine reads it; None when it is none.

    >>> [parse_integer(text) for text in ("8192", "1k", "1K", "25.6k", "1.5K", "many")]
    [8192, 1000, 1024, 25600, None, None]
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)([kKmMgGtT]?)\s*", text)
    if not match:
        return None
    number, suffix = match.groups()
    if "." in number and (not suffix or suffix.isupper()):
        return None
    return int(float(number) * _SUFFIXES[suffix]) if suffix else int(number)


def pinned_flags(args: Sequence[str]) -> dict[str, PinnedValue]:
    """What the arguments pin, by the name of the setting; the last mention of a flag wins.

    >>> pinned_flags(["--max-model-len=8k", "-tp", "2", "--no-enable-prefix-caching"])
    {'max_model_len': 8000, 'tensor_parallel_size': 2, 'enable_prefix_caching': False}
    """
    pinned: dict[str, PinnedValue] = {}
    for argument in read_arguments(args):
        flag = SIZING_FLAGS.get(argument.flag)
        value = sizing_value(flag, argument) if flag else None
        if flag is not None and value is not None:
            pinned[flag.setting] = value
        drafts = _speculative_tokens(argument)
        if drafts is not None:
            pinned["num_speculative_tokens"] = drafts
    return pinned


def _speculative_tokens(argument: Argument) -> int | None:
    """Tokens drafted for each step, in the flag's three spellings."""
    if argument.flag in ("--spec-tokens", "--speculative-config.num_speculative_tokens"):
        return parse_integer(" ".join(argument.values))
    if argument.flag != "--speculative-config":
        return None
    match = re.search(r"""["']num_speculative_tokens["']\s*:\s*(\d+)""", " ".join(argument.values))
    return int(match[1]) if match else None


def sizing_value(flag: SizingFlag, argument: Argument) -> PinnedValue | None:
    """The value of a sizing flag; None when it is malformed or left to the engine."""
    if flag.takes is Takes.NOTHING:
        return None if argument.values else not argument.off
    if flag.takes is Takes.SIZES:
        sizes = [parse_integer(text) for text in argument.values]
        return tuple(size for size in sizes if size) if sizes and all(sizes) else None
    if len(argument.values) != 1:
        return None
    (text,) = argument.values
    if flag.takes is Takes.INTEGER:
        return parse_integer(text) or None
    if flag.takes is Takes.FRACTION:
        return _fraction(text)
    return text


def _fraction(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number <= 1 else None


def left_open(flag: SizingFlag, argument: Argument) -> bool:
    """True for auto and -1: the engine would choose."""
    return flag.may_be_auto and tuple(v.lower() for v in argument.values) in (("auto",), ("-1",))


def passed_through(args: Sequence[str]) -> tuple[str, ...]:
    """The arguments without sizing flags: those are written once, by the plan."""
    return tuple(
        token
        for argument in read_arguments(args)
        if argument.flag not in SIZING_FLAGS
        for token in argument.tokens
    )


def argument_problems(args: Sequence[str]) -> tuple[str, ...]:
    """What is wrong with the arguments, each with the way out."""
    problems = []
    for argument in read_arguments(args):
        written = argument.tokens[0]
        if argument.flag == "":
            problems.append(
                f"{written!r} follows no flag; the model is set by spec.model.uri: remove it"
            )
        elif argument.flag in RESERVED_FLAGS:
            problems.append(f"{written} is written by Shipfitter; {RESERVED_FLAGS[argument.flag]}")
        elif problem := sizing_problem(argument):
            problems.append(problem)
        problems.extend(_hidden_sizes(argument))
    return tuple(problems)


def sizing_problem(argument: Argument) -> str | None:
    """What is wrong with the value of a sizing flag; None for any other flag."""
    flag = SIZING_FLAGS.get(argument.flag)
    if flag is None or sizing_value(flag, argument) is not None or left_open(flag, argument):
        return None
    got = " ".join(argument.values) or "nothing"
    return f"{argument.flag} takes {flag.takes}, got {got}"


def _hidden_sizes(argument: Argument) -> Iterator[str]:
    """Capture sizes inside --compilation-config: the engine refuses them beside the flags."""
    if not argument.flag.startswith("--compilation-config"):
        return
    text = " ".join((argument.flag, *argument.values))
    for key in ("cudagraph_capture_sizes", "max_cudagraph_capture_size"):
        if re.search(rf"\b{key}\b", text):
            flag = "--" + key.replace("_", "-")
            yield f"{key} inside --compilation-config hides it from the plan: write {flag}"
