"""From pydantic's JSON Schema to the structural schema that the API server accepts.

A structural schema has a type at every node, no references, and leaves unknown fields to pruning.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from shipfitter.api.descriptions import describe

Schema = dict[str, Any]

_DROPPED = ("title", "$defs", "additionalProperties", "default", "anyOf", "const", "properties")
_ORDER = ("description", "type", "format", "enum", "default", "required", "properties", "items")


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of a kind; `metadata` is Kubernetes' own, and the status has no defaults."""
    document = model.model_json_schema(by_alias=True, mode="validation")
    describe(document, model)
    root = _node(document, document.get("$defs", {}))
    properties = root["properties"]
    properties["metadata"] = {"type": "object"}
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string", "maxLength": 128}
    if "status" in properties:
        properties["status"] = _without_defaults(properties["status"])
    required = [name for name in root.get("required", ()) if name != "metadata"]
    root.pop("required", None)
    if required:
        root["required"] = required
    return root


def _node(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """One node: references in place, absence instead of null, only keys that a CRD may have."""
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[-1]]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _node({**target, **beside}, definitions)
    if "anyOf" in node:
        return _one_of_several(node, definitions)
    result: Schema = {
        key: value for key, value in node.items() if key not in (*_DROPPED, "items")
    } | _scalar(node)
    if "properties" in node:
        result["properties"] = {
            name: _node(child, definitions) for name, child in node["properties"].items()
        }
    if "items" in node:
        result["items"] = _node(node["items"], definitions)
    values = node.get("additionalProperties")
    if isinstance(values, Mapping) and values:
        result["additionalProperties"] = _node(values, definitions)
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    first = {key: result[key] for key in _ORDER if key in result}
    return {**first, **result}


def _scalar(node: Mapping[str, Any]) -> Schema:
    """What a CRD says of a single value: its width, its one choice, its default if there is one."""
    result: Schema = {}
    if node.get("type") in ("integer", "number"):
        result["format"] = "int64" if node["type"] == "integer" else "double"
    if "const" in node:
        result["enum"] = [node["const"]]
    default = node.get("default")
    if isinstance(default, bool | int | float | str) and default != "":
        result["default"] = default
    return result


def _one_of_several(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    branches = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if len(branches) == 1:
        return _node({**branches[0], **beside}, definitions)
    if not node.get("x-kubernetes-int-or-string"):
        raise ValueError(f"a union is not structural: {node}")
    kept = {key: value for key, value in beside.items() if key not in _DROPPED}
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], **kept}


def _without_defaults(node: Schema) -> Schema:
    """A status says what was seen: what is not there was not seen."""
    result = {key: value for key, value in node.items() if key != "default"}
    if "properties" in result:
        result["properties"] = {
            name: _without_defaults(child) for name, child in result["properties"].items()
        }
    if "items" in result:
        result["items"] = _without_defaults(result["items"])
    return result
