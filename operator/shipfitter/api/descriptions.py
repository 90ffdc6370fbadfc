"""What the schema tells of each field: the string below it, read from the source when asked for.

pydantic can read them itself, but does so for every class at import, by taking the source apart:
a seventh of the time of a whole `shipfitter plan`, for texts that only the CRDs show.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from shipfitter.api.base import ApiModel


def describe(schema: Mapping[str, Any], model: type[BaseModel]) -> None:
    """Give the fields of a model, and of the models it refers to, their descriptions."""
    models = {each.__name__: each for each in _all_below(ApiModel)}
    _describe_fields(schema, model)
    for name, definition in schema.get("$defs", {}).items():
        if name in models:
            _describe_fields(definition, models[name])


def _describe_fields(schema: Mapping[str, Any], model: type[BaseModel]) -> None:
    for each in reversed(model.__mro__):  # fields may be a base's
        if issubclass(each, ApiModel):
            for name, text in _texts(sys.modules[each.__module__]).get(each.__name__, {}).items():
                field = schema["properties"][model.model_fields[name].alias or name]
                field["description"] = text


@cache
def _texts(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """The strings below fields, by class and field."""
    tree = ast.parse(inspect.getsource(module))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return {each.name: dict(_texts_of(each)) for each in classes}


def _texts_of(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)


def _all_below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in base.__subclasses__():
        yield each
        yield from _all_below(each)
