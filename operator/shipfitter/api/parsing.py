"""From a raw object to a resource: all problems at once, with the paths a user wrote."""

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from shipfitter.api.semantics import semantic_problems
from shipfitter.api.structural import structural_schema
from shipfitter.errors import InvalidSpecError

Resource = TypeVar("Resource", bound=BaseModel)

_METADATA = ("name", "namespace", "uid", "generation", "labels", "annotations")
_LONGEST_ECHO = 80  # characters of the offending value that are shown
_BRANCHES = ("int", "constrained-str")  # pydantic's names for the two forms of a quantity


def parse_resource(
    cls: type[Resource], body: Mapping[str, Any], *, unknown: Literal["ignore", "forbid"]
) -> Resource:
    """The resource. Raises InvalidSpecError with every problem, those of the schema first.

    Values are taken as the API server would take them: no number from a string, no string from a
    number. Metadata is Kubernetes' own and a status is not the user's, so neither is held against
    the user.
    """
    problems: list[str] = []
    resource: Resource | None = None
    try:
        resource = cls.model_validate_json(
            json.dumps(_own_part(body), default=str),
            strict=True,
            extra=unknown,
            by_alias=True,
            by_name=False,
        )
    except ValidationError as error:
        problems += list(schema_problems(error, cls))
    problems += [p for p in semantic_problems(body) if p not in problems]
    if problems or resource is None:
        raise InvalidSpecError(tuple(problems))
    return _with_status(cls, resource, body.get("status"))


def _own_part(body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = body.get("metadata")
    part = {key: value for key, value in body.items() if key not in ("status", "metadata")}
    if isinstance(metadata, Mapping):
        part["metadata"] = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    return part


def _with_status(cls: type[Resource], resource: Resource, status: Any) -> Resource:
    """The status as far as this version understands it; none where it does not."""
    kind = cls.model_fields["status"].annotation
    if not isinstance(status, Mapping):
        return resource
    assert isinstance(kind, type)
    assert issubclass(kind, BaseModel)
    try:
        parsed = kind.model_validate_json(
            json.dumps(status, default=str), extra="ignore", by_alias=True, by_name=False
        )
    except ValidationError:
        return resource
    return resource.model_copy(update={"status": parsed})


def schema_problems(error: ValidationError, cls: type[BaseModel]) -> Iterator[str]:
    """Each of pydantic's findings as 'path: what is wrong, what was found'."""
    seen = set()
    for finding in error.errors(include_url=False):
        what = _what(finding)
        if finding["type"] == "extra_forbidden":
            what = f"no such field: {_meant(finding['loc'], cls)}, got {_echo(finding['input'])}"
        problem = f"{_path(finding['loc'])}: {what}"
        if problem not in seen:
            seen.add(problem)
            yield problem


def _path(location: tuple[int | str, ...]) -> str:
    """
    The location as a user writes it.

    >>> _path(("spec", "model", "alternatives", 1, "uri"))
    'spec.model.alternatives[1].uri'
    """
    path = ""
    for part in location:
        if part in _BRANCHES:
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _what(finding: ErrorDetails) -> str:
    kind, found = finding["type"], finding["input"]
    if finding["loc"] and finding["loc"][-1] in _BRANCHES:
        return f'should be a quantity such as 4, "500m" or "16Gi", got {_echo(found)}'
    if kind == "missing":
        return "is missing: add it"
    message = finding["msg"].removeprefix("Input ").removesuffix(" (strict)")
    quotes = " (put it in quotes)" if kind == "string_type" and _is_scalar(found) else ""
    return f"{message[:1].lower()}{message[1:]}, got {_echo(found)}{quotes}"


def _meant(location: tuple[int | str, ...], cls: type[BaseModel]) -> str:
    """The field that was probably meant, or where to look all of them up."""
    *parents, written = location
    names = structural_schema(cls)
    for part in parents:
        names = names["items"] if isinstance(part, int) else names["properties"][part]
    spelled = to_camel(str(written).lower()) if "_" in str(written) else str(written)
    close = difflib.get_close_matches(spelled, names["properties"], n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]}?"
    field = ".".join((cls.__name__.lower(), *(part for part in parents if isinstance(part, str))))
    return f"see kubectl explain {field}"


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _echo(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_ECHO else f"{text[: _LONGEST_ECHO - 1]}…"
