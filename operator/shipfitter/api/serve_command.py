"""A `vllm serve` command line as people write it: which model, which flags, which environment."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from shipfitter.api.engine_args import Argument, parse_integer, read_arguments
from shipfitter.api.serve_flags import EVERY_FLAG, LISTS, OPTIONALS, SWITCHES
from shipfitter.errors import InvalidSpecError

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SERVER_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
_IMAGE = re.compile(r"(?:^|/)vllm[-/\w]*:(?P<tag>v?\d[\w.+-]*)$")
_LEADING_WORDS = frozenset({"env", "sudo", "exec", "nohup", "time", "uv", "run", "uvx"})
# A word outside quotes, JSON's own three left alone.
_BARE_WORD = re.compile(r'(?<![\w"./-])(?!(?:true|false|null)\b)([A-Za-z_][\w./-]*)(?![\w"./-])')
_NEVER, _ALWAYS = ("false", "0", "no"), ("true", "1", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeCommand:
    """One command, every flag in full; of several mentions of a flag the last one counts."""

    model: str | None
    arguments: tuple[Argument, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    image_tag: str | None = None  # of a container image in the command: its engine's release

    def text(self, flag: str) -> str | None:
        """The value of a flag."""
        found = [a for a in self.arguments if a.flag == flag and a.values]
        return " ".join(found[-1].values) if found else None

    def switch(self, flag: str) -> bool | None:
        """Whether a switch is on; None where it is not mentioned."""
        found = [a for a in self.arguments if a.flag == flag]
        return None if not found else _is_on(found[-1])

    def mapping(self, flag: str) -> dict[str, Any]:
        """A JSON flag's keys; dotted mentions (--flag.key value) go on top."""
        keys: dict[str, Any] = {}
        for argument in self.arguments:
            head, _, path = argument.flag.partition(".")
            if head != flag or not argument.values:
                continue
            if path:
                _put(keys, path.split("."), " ".join(argument.values))
            else:
                keys.update(read_object(" ".join(argument.values)) or {})
        return keys

    def count(self, flag: str) -> int | None:
        """The whole number after a flag; None where there is none."""
        text = self.text(flag)
        return None if text is None else parse_integer(text)

    def number(self, flag: str) -> float:
        """The number after a flag; 0 where there is none."""
        try:
            return float(self.text(flag) or 0)
        except ValueError:
            return 0.0

    def over(self, earlier: "ServeCommand") -> "ServeCommand":
        """This command with the flags of another one before its own."""
        return replace(
            self,
            model=self.model or earlier.model,
            arguments=(*earlier.arguments, *self.arguments),
        )


def parse_serve_command(tokens: Sequence[str]) -> ServeCommand:
    """The command behind the words, with or without `vllm serve`, variables and `docker run` first.

    Raises InvalidSpecError with every flag that no release knows, each with the nearest names.

    >>> parse_serve_command(["vllm", "serve", "Qwen/Qwen3-8B", "-tp", "2"]).text(
    ...     "--tensor-parallel-size")
    '2'
    """
    if len(tokens) == 1 and " " in tokens[0]:
        tokens = shlex.split(tokens[0])
    environment, image_tag, rest = _without_launcher(list(tokens))
    spelled = list(_optimisation_levels(rest))
    models: list[str] = []
    arguments: list[Argument] = []
    problems: list[str] = []
    for argument in read_arguments(spelled):
        kept, free = _without_positionals(argument)
        models += free
        if kept is not None:
            arguments.append(kept)
            if problem := _unknown(kept):
                problems.append(problem)
    command = ServeCommand(
        model=None, arguments=tuple(arguments), environment=environment, image_tag=image_tag
    )
    named = command.text("--model")
    if len(models) > 1:
        extra = ", ".join(models[1:])
        problems.append(f"the command names the model {models[0]} and then {extra}: remove it")
    if problems:
        raise InvalidSpecError(tuple(problems))
    return replace(command, model=named or (models[0] if models else None))


def config_arguments(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The flags of a --config file, which the engine puts before those of the command line.

    Source: vLLM vllm/utils/argparse_utils.py load_config_file.

    >>> config_arguments({"max-model-len": 8192, "enforce-eager": True, "compilation-config": {}})
    ('--max-model-len', '8192', '--enforce-eager', '--compilation-config', '{}')
    """
    words: list[str] = []
    for key, value in config.items():
        if isinstance(value, bool):
            words += [f"--{key}" if value else f"--no-{key}"]
        elif isinstance(value, Mapping):
            words += [f"--{key}", json.dumps(value)]
        elif isinstance(value, list):
            words += [f"--{key}", *map(str, value)] if value else []
        else:
            words += [f"--{key}", str(value)]
    return tuple(words)


def _without_launcher(words: list[str]) -> tuple[dict[str, str], str | None, list[str]]:
    """Variables, the image's tag, and what the engine itself would read."""
    environment: dict[str, str] = {}
    image_tag = None
    start = 0
    for position, word in enumerate(words):
        if found := _IMAGE.search(word):
            image_tag, start = found["tag"], position + 1
            environment |= _container_variables(words[:position])
            break
    words = words[start:]
    while words and (words[0] in _LEADING_WORDS or _ASSIGNMENT.match(words[0])):
        name, equals, value = words.pop(0).partition("=")
        if equals:
            environment[name] = value
    if words and re.fullmatch(r"(.*/)?python[\d.]*", words[0]) and words[1:2] == ["-m"]:
        words = words[3:] if words[2:3] and words[2] in _SERVER_MODULES else words[2:]
    if words and words[0].rsplit("/", 1)[-1] == "vllm":
        words = words[1:]
    if words[:1] == ["serve"]:
        words = words[1:]
    return environment, image_tag, words


def _container_variables(words: Sequence[str]) -> dict[str, str]:
    """The NAME=VALUE of `docker run -e NAME=VALUE`."""
    found = {}
    for flag, value in pairwise(words):
        if flag in ("-e", "--env") and _ASSIGNMENT.match(value):
            name, _, found[name] = value.partition("=")
    return found


def _optimisation_levels(words: Sequence[str]) -> Iterator[str]:
    """-O3, -O=3 and -O 3 in full; -O.key is the compilation config's."""
    for word in words:
        if word == "-O" or word.startswith("-O="):
            yield word.replace("-O", "--optimization-level", 1)
        elif word.startswith("-O."):
            yield word.replace("-O", "--compilation-config", 1)
        elif re.fullmatch(r"-O\d", word):
            yield from ("--optimization-level", word[2:])
        else:
            yield word


def _without_positionals(argument: Argument) -> tuple[Argument | None, tuple[str, ...]]:
    """The argument with only the values its flag takes, and the words that follow no flag."""
    if argument.flag == "":
        return None, argument.values
    if "=" in argument.tokens[0]:
        taken = 1
    elif argument.flag in SWITCHES:
        taken = int(argument.values[:1] != () and _word(argument.values[0]) is not None)
    elif argument.flag in LISTS or argument.flag.partition(".")[0] not in EVERY_FLAG:
        return argument, ()
    else:
        taken = 1
    kept, free = argument.values[:taken], argument.values[taken:]
    if argument.flag in OPTIONALS or not free:
        return argument, ()
    tokens = argument.tokens[: len(argument.tokens) - len(free)]
    return Argument(flag=argument.flag, values=kept, tokens=tokens, off=argument.off), free


def _unknown(argument: Argument) -> str | None:
    head = argument.flag.partition(".")[0]
    if head in EVERY_FLAG:
        return None
    matches = sorted(flag for flag in EVERY_FLAG if flag.startswith(head) and head != "--")
    if matches:
        return f"{argument.tokens[0]} could be {', '.join(matches[:4])}: write one in full"
    close = get_close_matches(head, sorted(EVERY_FLAG), n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(close)}?" if close else "remove it"
    return f"{argument.tokens[0]} is no flag of vllm serve; {hint}"


def _word(text: str) -> bool | None:
    return True if text.lower() in _ALWAYS else False if text.lower() in _NEVER else None


def _is_on(argument: Argument) -> bool:
    """Releases up to 0.8 take --enable-x False too."""
    stated = _word(argument.values[0]) if argument.values else None
    return (stated is not False) != argument.off


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def read_object(text: str) -> dict[str, Any] | None:
    """A JSON object; also one that lost its quotes on the way: {method: mtp, image: 1}.

    >>> read_object("{method: mtp, num_speculative_tokens: 3}")
    {'method': 'mtp', 'num_speculative_tokens': 3}
    """
    for candidate in (text, _BARE_WORD.sub(r'"\1"', text.replace("'", '"'))):
        value = _json(candidate)
        if isinstance(value, dict):
            return value
    return None


def is_json(text: str) -> bool:
    """Whether the engine itself would read it."""
    return _json(text) is not None


def _put(keys: dict[str, Any], path: Sequence[str], text: str) -> None:
    *parents, last = path
    for parent in parents:
        inner = keys.get(parent)
        keys[parent] = inner = inner if isinstance(inner, dict) else {}
        keys = inner
    if last.endswith("+"):
        keys[last[:-1]] = [_scalar(part) for part in text.split(",")]
    else:
        keys[last] = _scalar(text)


def _scalar(text: str) -> Any:
    value = _json(text)
    if value is not None:
        return value
    number = parse_integer(text)
    return text if number is None else number
