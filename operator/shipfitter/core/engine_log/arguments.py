"""The flags a log shows: the engine's own list of them, or the command somebody pasted with it."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping

Flag = str | int | float | bool | None

_DICT = re.compile(r"non-default\s*args:\s*\{")
_NAMESPACE = re.compile(r"\bargs:\s*Namespace\(")
# Source: vLLM config/vllm.py VllmConfig.__str__, logging_utils/dump_input.py.
_CONFIG = re.compile(
    r"(?:Initializing an?|Dumping input data for)\s*(?:V\d\s*)?LLM\s*engine\s*\(v?[^)\s]*\)\s*with"
    r"\s*config:\s*"
)
_COMMAND = re.compile(
    r"(?:\bvllm +serve +|vllm\.entrypoints\.(?:openai\.)?api_server\b|\bapi_server\.py\b|"
    r"vllm-openai[\w.-]*:\S+|(?=--model[= ]))(?P<rest>.*)",
    re.DOTALL,
)
_SHORT = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
_KEYWORD = re.compile(r"(?<![\w.])([a-z]\w*)=")
_OPENING, _CLOSING = "([{", ")]}"
_DEEPEST_LITERAL_BYTES = 4_096
# What the engine's configuration line calls otherwise than the flag.
_CONFIG_NAMES = {"max_seq_len": "max_model_len"}
_CONFIG_WORDS = frozenset(
    (
        "model",
        "max_seq_len",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "quantization",
        "enforce_eager",
        "kv_cache_dtype",
        "dtype",
        "enable_prefix_caching",
        "revision",
    )
)


def listed_flags(text: str) -> Mapping[str, Flag] | None:
    """The flags of a line that lists those which are not the default, by underscored name."""
    if found := _DICT.search(text):
        return dict(_dict_items(_balanced(text, found.end() - 1)))
    if found := _NAMESPACE.search(text):
        return dict(_keywords(_balanced(text, found.end() - 1)))
    return None


def configured_flags(text: str) -> Mapping[str, Flag] | None:
    """What the line that introduces the engine says its settings are."""
    found = _CONFIG.search(text)
    if found is None:
        return None
    kept: dict[str, Flag] = {}
    for name, value in _keywords("(" + text[found.end() :]):
        if name in _CONFIG_WORDS and value is not None:
            kept.setdefault(_CONFIG_NAMES.get(name, name), value)
    return kept


def commanded_flags(text: str) -> Mapping[str, Flag] | None:
    """The flags of a command line in the text; None where there is none."""
    found = _COMMAND.search(text)
    if found is None:
        return None
    words = _words(found["rest"].replace("\\\n", " ").replace("\\ ", " "))
    flags = dict(_options(words))
    if found[0].startswith("--model") and not _is_command(text[: found.start()], flags):
        return None
    named = next(iter(words), "")
    if "serve" in found[0][:20] and _names_model(named, flags):
        flags.setdefault("model", named)
    return flags


def _is_command(before: str, flags: Mapping[str, Flag]) -> bool:
    """Whether `--model` begins options: of a command or a list of them, not of a sentence."""
    return (
        "/" in str(flags.get("model"))
        or re.fullmatch(r"[\s\-\[\"']*(?:\w+:)?[\s\[\"'>|]*", before) is not None
    )


def _names_model(word: str, flags: Mapping[str, Flag]) -> bool:
    """Whether the word after `serve` is a model: not a usage's [model_tag], not the next of a
    sentence.
    """
    return bool(re.match(r"[\w./~$]", word)) and ("/" in word or bool(flags))


def _balanced(text: str, start: int) -> str:
    """From the bracket at `start` to its partner, or to the end where the log was cut."""
    depth, quote, escaped = 0, "", False
    for index in range(start, len(text)):
        character = text[index]
        if quote:
            escaped = character == "\\" and not escaped
            if character == quote and not escaped:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
            if depth == 0:
                return text[start : index + 1]
    return text[start:]


def _parts(inside: str) -> Iterator[str]:
    """The items between commas that lie in no further bracket and no quotes."""
    depth, quote, begun = 0, "", 0
    for index, character in enumerate(inside):
        if quote:
            quote = "" if character == quote and inside[index - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            yield inside[begun:index]
            begun = index + 1
    yield inside[begun:]


def _dict_items(text: str) -> Iterator[tuple[str, Flag]]:
    for part in _parts(text[1:].removesuffix("}")):
        name, colon, value = part.partition(":")
        if colon and re.fullmatch(r"\s*'[\w-]+'\s*", name):
            yield name.strip().strip("'"), _value(value)


def _keywords(text: str) -> Iterator[tuple[str, Flag]]:
    for part in _parts(text[1:].removesuffix(")")):
        found = _KEYWORD.match(part.strip())
        if found:
            yield found[1], _value(part.strip()[found.end() :])


def _value(text: str) -> Flag:
    """A scalar as Python wrote it; what is no scalar, as its text."""
    text = text.strip()
    if len(text) > _DEEPEST_LITERAL_BYTES or text[:1] in _OPENING:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value if isinstance(value, str | int | float | bool) or value is None else text


def _words(command: str) -> list[str]:
    line = command.split("\n", 1)[0]
    try:
        words = shlex.split(line)
    except ValueError:  # a quote that the excerpt does not close
        words = line.split()
    return [word for word in words if word != "-"]  # the dashes of a list in YAML


def _options(words: list[str]) -> Iterator[tuple[str, Flag]]:
    for index, word in enumerate(words):
        if not re.fullmatch(r"--?[a-zA-Z][\w.-]*(?:=.*)?", word, re.DOTALL):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = _SHORT.get(name, name.replace("-", "_"))
        following = words[index + 1] if index + 1 < len(words) else ""
        if equals:
            yield name, _value(value)
        elif following and re.match(r"(?!-)|-\d", following):
            yield name, _value(following)
        else:
            yield name, True
