"""The committed CRDs are what the models say, and have the form the API server accepts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shipfitter.api.crd import KINDS, crd_documents, crd_yaml, file_name
from unit.api.full_sample import SAMPLES

ROOT = Path(__file__).parents[2]
FIX = "run: python -m shipfitter.api.crd, and commit crds/"

# Keys that a structural schema may not have, or that would let anything through.
FORBIDDEN = {
    "$ref", "$defs", "definitions", "title", "const", "nullable", "exclusiveMinimum",
    "exclusiveMaximum", "oneOf", "allOf", "not", "dependencies", "deprecated", "id",
    "patternProperties", "prefixItems", "x-kubernetes-embedded-resource",
}  # fmt: skip
FREE_FORM = {
    ("spec", "template"),
    ("spec", "model", "facts"),
    ("spec", "model", "alternatives", "[]", "facts"),
}
CLIENT_SIDE_APPLY_LIMIT_BYTES = 262_144  # kubectl apply keeps the whole object in an annotation

Node = dict[str, Any]


def nodes(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, (*path, name))
    if "items" in node:
        yield from nodes(node["items"], (*path, "[]"))
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], (*path, "{}"))


def schema(document: Node) -> Node:
    (version,) = document["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


BY_KIND = {document["spec"]["names"]["kind"]: document for document in crd_documents()}
EVERY_NODE = [
    pytest.param(path, node, id=f"{kind}.{'.'.join(path)}")
    for kind, document in BY_KIND.items()
    for path, node in nodes(schema(document))
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_committed_crd_is_current(kind):
    path = ROOT / "crds" / file_name(kind)
    assert path.exists(), FIX
    assert path.read_text() == crd_yaml(kind.name), FIX


def test_crds_holds_nothing_else():
    assert sorted(p.name for p in (ROOT / "crds").iterdir()) == sorted(map(file_name, KINDS))


@pytest.mark.parametrize(("path", "node"), EVERY_NODE)
def test_every_node_is_typed_and_bounded(path, node):
    assert not FORBIDDEN & node.keys()
    if node.get("x-kubernetes-int-or-string"):
        assert "type" not in node
        assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}]
        return
    assert "anyOf" not in node
    bounds = {
        "string": lambda: "maxLength" in node or "enum" in node,
        "array": lambda: "maxItems" in node,
        "integer": lambda: {"minimum", "maximum"} <= node.keys() and node["format"] == "int64",
        "number": lambda: {"minimum", "maximum"} <= node.keys(),
        "boolean": lambda: True,
        "object": lambda: "additionalProperties" not in node or "maxProperties" in node,
    }
    assert bounds[node["type"]](), f"{path}: not bounded: {node}"


@pytest.mark.parametrize(("path", "node"), EVERY_NODE)
def test_only_template_and_facts_are_free_form(path, node):
    free = node.get("x-kubernetes-preserve-unknown-fields", False)
    assert free == (path in FREE_FORM)
    if node.get("type") == "object" and not free and path and path != ("metadata",):
        assert "properties" in node or "additionalProperties" in node


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_full_sample_sets_every_field(kind):
    def unset(node: Node, value: Any, path: str) -> Iterator[str]:
        if "properties" in node:
            for name, child in node["properties"].items():
                if name not in value:
                    yield f"{path}.{name}"
                else:
                    yield from unset(child, value[name], f"{path}.{name}")
        elif "items" in node and "properties" in node["items"]:
            for name, child in node["items"]["properties"].items():
                present = [item[name] for item in value if name in item]
                if not present:
                    yield f"{path}[].{name}"
                for item in present:
                    yield from unset(child, item, f"{path}[].{name}")

    def left(kind: str) -> list[str]:
        gaps = list(unset(schema(BY_KIND[kind]), SAMPLES[kind](), ""))
        # a list item that leaves out an optional field is fine where another item has it
        return [gap for gap in gaps if ".env[]" not in gap]

    assert left(kind) == []


def test_conditions_are_merged_by_type():
    for kind in ("ModelDeployment", "GPUNode"):
        conditions = schema(BY_KIND[kind])["properties"]["status"]["properties"]["conditions"]
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]
        assert "type" in conditions["items"]["required"]


def test_a_status_has_no_defaults():
    for document in BY_KIND.values():
        status = schema(document)["properties"].get("status", {})
        assert [path for path, node in nodes(status) if "default" in node] == []


def test_defaults_are_single_values_and_replicas_is_one():
    spec = schema(BY_KIND["ModelDeployment"])["properties"]["spec"]
    defaults = {".".join(path): node["default"] for path, node in nodes(spec) if "default" in node}
    assert defaults["replicas"] == 1
    assert spec["properties"]["replicas"]["minimum"] == 0
    assert all(isinstance(value, bool | int | float | str) for value in defaults.values())


@pytest.mark.parametrize(
    ("kind", "want", "want_wide"),
    [
        pytest.param(
            "ModelDeployment",
            ["MODEL", "GPU", "GPUS", "TP", "CONTEXT", "SEQS", "READY", "REASON", "AGE"],
            ["KV-TOKENS", "CONCURRENCY", "UTIL", "VERDICT", "POOL"],
            id="a deployment shows what was fitted",
        ),
        pytest.param(
            "GPUNode",
            ["GPU", "COUNT", "MEMORY", "FREE", "CC", "DRIVER", "READY", "AGE"],
            [],
            id="a node shows what it has and what is free",
        ),
    ],
)
def test_printer_columns(kind, want, want_wide):
    columns = BY_KIND[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [c["name"] for c in columns if not c.get("priority")] == want
    assert [c["name"] for c in columns if c.get("priority") == 1] == want_wide
    known = {".".join(path) for path, _ in nodes(schema(BY_KIND[kind]))}
    for column in columns:
        path = column["jsonPath"].lstrip(".").replace("[0]", ".[]")
        path = path.replace('[?(@.type=="Ready")]', ".[]")
        assert path in known or path == "metadata.creationTimestamp"


def test_names_and_subresources():
    names = BY_KIND["ModelDeployment"]["spec"]["names"]
    assert (names["shortNames"], names["categories"]) == (["mdl"], ["ai"])
    (version,) = BY_KIND["ModelDeployment"]["spec"]["versions"]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert BY_KIND["GPUNode"]["spec"]["scope"] == "Cluster"


def test_every_rule_ends_with_a_way_out():
    for _, node in nodes(schema(BY_KIND["ModelDeployment"])):
        for rule in node.get("x-kubernetes-validations", ()):
            assert ":" in rule["message"]


def test_a_crd_fits_the_annotation_of_client_side_apply():
    for document in BY_KIND.values():
        assert len(yaml.safe_dump(document)) < CLIENT_SIDE_APPLY_LIMIT_BYTES / 2
