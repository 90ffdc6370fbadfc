"""Laying a template over a template."""

import pytest

from shipfitter.render.overlay import overlaid


@pytest.mark.parametrize(
    ("base", "overlay", "want"),
    [
        pytest.param({"a": 1}, {}, {"a": 1}, id="nothing on top"),
        pytest.param({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}, id="values are replaced"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="maps merge"),
        pytest.param({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="a map over a value"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null removes"),
        pytest.param({"a": [1]}, {"a": [2]}, {"a": [2]}, id="plain lists are replaced"),
        pytest.param({"a": [1]}, {"a": (2,)}, {"a": [2]}, id="and stay lists"),
        pytest.param(
            {"containers": [{"name": "a", "x": 1}, {"name": "b"}]},
            {"containers": [{"name": "c"}, {"name": "a", "y": 2}]},
            {"containers": [{"name": "a", "x": 1, "y": 2}, {"name": "b"}, {"name": "c"}]},
            id="named items merge by name and keep their order",
        ),
        pytest.param(
            {"volumes": [{"name": "cache", "emptyDir": {}}]},
            {"volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}]},
            {"volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}]},
            id="a volume has one source",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
            id="a variable has one source",
        ),
        pytest.param(
            {"volumeMounts": [{"mountPath": "/tmp"}]},
            {"volumeMounts": [{"mountPath": "/x"}]},
            {"volumeMounts": [{"mountPath": "/tmp"}, {"mountPath": "/x"}]},
            id="mounts merge by path",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}, {"key": "a"}]},
            {"tolerations": [{"key": "a"}, {"key": "b"}]},
            id="tolerations add up",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 1}, "periodSeconds": 5}},
            {"livenessProbe": {"exec": {"command": ["true"]}}},
            {"livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5}},
            id="a probe has one way to ask",
        ),
    ],
)
def test_overlaid(base, overlay, want):
    assert overlaid(base, overlay) == want


def test_the_base_is_left_as_it_was():
    base = {"containers": [{"name": "a"}], "a": {"b": 1}}
    overlaid(base, {"containers": [{"name": "a", "x": 1}], "a": {"b": 2}})
    assert base == {"containers": [{"name": "a"}], "a": {"b": 1}}
