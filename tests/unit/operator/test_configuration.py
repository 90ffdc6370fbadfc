"""Environment and flags of the operator."""

import pytest

from shipfitter.errors import InvalidSpecError
from shipfitter.operator.configuration import read_configuration


def read(*argv, **environ):
    return read_configuration(argv, environ)


def test_nothing_set_is_enough():
    got = read()
    assert (got.health_host, got.health_port, got.watch_namespaces) == ("0.0.0.0", 8080, ())
    assert (got.log_format, got.log_level) == ("plain", "INFO")
    assert got.settings.default_image.startswith("vllm/vllm-openai:")
    assert got.identity


@pytest.mark.parametrize(
    ("environ", "name", "want"),
    [
        pytest.param(
            {"SHIPFITTER_WATCH_NAMESPACES": " b, a,,b"}, "watch_namespaces", ("a", "b"), id="places"
        ),
        pytest.param({"POD_NAMESPACE": "ops"}, "namespace", "ops", id="its own namespace"),
        pytest.param({"POD_NAME": "operator-7"}, "identity", "operator-7", id="its own name"),
        pytest.param({"SHIPFITTER_HEALTH_PORT": "0"}, "health_port", 0, id="any port"),
        pytest.param({"SHIPFITTER_HEALTH_HOST": "::1"}, "health_host", "::1", id="one address"),
        pytest.param(
            {"SHIPFITTER_HEALTH_HOST": "::1", "POD_LISTEN_ADDRESS": "127.18.0.4"},
            "health_host",
            "127.18.0.4",
            id="the pod's own address goes first",
        ),
    ],
)
def test_what_the_environment_says(environ, name, want):
    assert getattr(read(**environ), name) == want


@pytest.mark.parametrize(
    ("environ", "name", "want"),
    [
        pytest.param({"SHIPFITTER_DEFAULT_IMAGE": "i:1"}, "default_image", "i:1", id="the image"),
        pytest.param({"SHIPFITTER_ENGINE_IMAGE": "i:2"}, "default_image", "i:2", id="as the chart"),
        pytest.param({"SHIPFITTER_SETTLE_SECONDS": "2.5"}, "settle_seconds", 2.5, id="the delay"),
        pytest.param({"HF_ENDPOINT": "http://hub"}, "hub_endpoint", "http://hub", id="the hub"),
        pytest.param({"SHIPFITTER_CLUSTER_DOMAIN": "k8s"}, "cluster_domain", "k8s", id="names"),
    ],
)
def test_what_the_environment_sets_for_all(environ, name, want):
    assert getattr(read(**environ).settings, name) == want


def test_every_mistake_is_told_at_once():
    with pytest.raises(InvalidSpecError) as error:
        read(SHIPFITTER_SETTLE_SECONDS="soon", SHIPFITTER_HEALTH_PORT="99999")
    assert error.value.problems == (
        "SHIPFITTER_SETTLE_SECONDS: must be a number, got 'soon'",
        "SHIPFITTER_HEALTH_PORT: must be a port, 0 for any, got 99999",
    )


def test_flags():
    got = read("--log-format", "json", "--log-level", "debug")
    assert (got.log_format, got.log_level) == ("json", "DEBUG")
