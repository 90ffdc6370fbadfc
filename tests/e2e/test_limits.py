"""The smallest object and the largest: every one gets an answer, and none ends the operator."""

import pytest

from e2e.stories import model_deployment
from unit.api import full_sample
from world.nodes.api import ApiError

pytestmark = pytest.mark.plane

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modeldeployments.shipfitter.dev"

MOST_ITEMS = 32  # of a list: with all of them at once an object is larger than the store takes


def grown(schema, value):
    """A value of a schema with every list, string and number at its largest."""
    if isinstance(value, dict):
        fields = schema.get("properties") or {}
        return {
            name: grown(fields[name], each) if name in fields else each
            for name, each in value.items()
        }
    if isinstance(value, list) and value:
        items = [grown(schema.get("items") or {}, each) for each in value]
        return items + [items[-1]] * (min(schema.get("maxItems", 1), MOST_ITEMS) - len(items))
    free = not {"pattern", "enum", "format", "default"} & schema.keys()
    if isinstance(value, str) and free:
        return value.ljust(schema.get("maxLength", 0), "x")
    if isinstance(value, int) and not isinstance(value, bool):
        return schema.get("maximum", value)
    return value


def accepted(stage, name, spec):
    """Whether the API server takes it; refused by name, or for its size, is an answer too."""
    try:
        stage.apply(model_deployment(name) | {"spec": spec})
    except ApiError as error:
        if error.status in (413, 422):
            return False
        raise
    return True


def test_an_object_with_every_field_at_its_limit_and_one_with_none_get_an_answer(stage):
    """Without a GPU, so that nothing is made; one field at a time, since each may be wrong."""
    (version,) = stage.api.get(CRD)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    whole = full_sample.model_deployment()["spec"]
    least = {"model": {"uri": "hf://Qwen/Qwen3-0.6B"}}
    specs = {"least": least, "whole": whole}
    for field, value in whole.items():
        large = {field: grown(schema["properties"][field], value)}
        specs[f"large-{field.lower()}"] = {**least, **large}
    taken = [name for name, spec in specs.items() if accepted(stage, name, spec)]
    assert {"least", "whole", "large-engine", "large-gpus", "large-workload"} <= set(taken)
    stage.eventually(
        lambda: all(stage.condition(name, "Ready") for name in taken), what="all are answered"
    )
    assert "a mistake of ours" not in stage.operator_log(1000)
    assert stage.operator_ready()
