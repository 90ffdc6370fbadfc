"""What may be laid over the pod template, and what may not."""

import pytest

from shipfitter.api.template_overlay import template_problems


def engine(**fields):
    return {"spec": {"containers": [{"name": "engine", **fields}]}}


@pytest.mark.parametrize(
    ("template", "want_path"),
    [
        ({"spec": {"hostNetwork": True}}, "spec.hostNetwork"),
        ({"spec": {"hostPID": True}}, "spec.hostPID"),
        ({"spec": {"hostIPC": True}}, "spec.hostIPC"),
        ({"spec": {"volumes": [{"name": "a", "hostPath": {}}]}}, "spec.volumes[0].hostPath"),
        (engine(securityContext={"privileged": True}),
         "spec.containers[0].securityContext.privileged"),
        ({"spec": {"initContainers": [{"name": "a", "securityContext": {"privileged": True}}]}},
         "spec.initContainers[0].securityContext.privileged"),
        ({"spec": {"securityContext": {"windowsOptions": {"hostProcess": True}}}},
         "spec.securityContext.windowsOptions.hostProcess"),
        (engine(securityContext={"windowsOptions": {"hostProcess": True}}),
         "spec.containers[0].securityContext.windowsOptions.hostProcess"),
        ({"spec": {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}},
         "spec.containers[0].ports[0].hostPort"),
        (engine(args=["--port=80"]), "spec.containers[0].args"),
        (engine(image="x"), "spec.containers[0].image"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]"),
        ({"spec": {"containers": {"engine": {}}}}, "spec.containers"),
        ({"spec": {"volumes": ["a"]}}, "spec.volumes[0]"),
        ({"spec": {"nodeName": "gpu-1"}}, "spec.nodeName"),
        ({"spec": {"serviceAccountName": "a"}}, "spec.serviceAccountName"),
        ({"spec": []}, "spec"),
        ({"spec": {"securityContext": 5}}, "spec.securityContext"),
        ({"metadata": {"name": "a"}}, "metadata.name"),
        ({"metadata": {"labels": {"shipfitter.dev/serves": "false"}}},
         "metadata.labels[shipfitter.dev/serves]"),
        ({"metadata": {"labels": {"app.kubernetes.io/instance": "x"}}},
         "metadata.labels[app.kubernetes.io/instance]"),
        ({"metadata": {"annotations": {"a": True}}}, "metadata.annotations[a]"),
        ({"metadata": {"labels": []}}, "metadata.labels"),
        ({"metadata": []}, "metadata"),
        ({"containers": []}, "containers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_refused(template, want_path):
    ((path, problem),) = template_problems(template)
    assert path == want_path
    assert ":" in problem or "should" in problem


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"metadata": None, "spec": None},
        {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}},
        {"spec": {"runtimeClassName": "nvidia", "hostNetwork": False}},
        {"spec": {"containers": [{"name": "proxy", "image": "x", "args": ["a"]}]}},
        engine(lifecycle={}, securityContext={"runAsUser": 1000}),
        {"spec": {"volumes": [{"name": "a", "configMap": {"name": "b"}}]}},
    ],
    ids=str,
)
def test_what_may_be_laid_over(template):
    assert list(template_problems(template)) == []
