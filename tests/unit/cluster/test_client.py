"""Requests: what is sent, what a refusal means, and that credentials are read again."""

import pytest

from shipfitter.cluster.connection import load_configuration
from shipfitter.cluster.failures import ApiError, ClusterUnreachableError, api_error
from shipfitter.cluster.kinds import CONFIG_MAP, DEPLOYMENT
from unit.cluster.fake_api import client_of
from unit.cluster.fake_objects import RefusedError

CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "namespace": "default"},
    "data": {"a": "1"},
}


def test_an_apply_says_who_applies_and_insists(api, client):
    client.apply(CONFIG, manager="shipfitter")
    method, path, query, sent = api.requests[-1]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/default/configmaps/one")
    assert query == {"fieldManager": "shipfitter", "force": "true"}
    assert sent == CONFIG


def test_what_does_not_exist_reads_as_none(client):
    assert client.read(DEPLOYMENT, "default", "gone") is None


def test_lists_come_page_by_page(api, client, monkeypatch):
    monkeypatch.setattr("shipfitter.cluster.client.PAGE_OBJECTS", 2)
    for number in range(5):
        api.put("configmaps", {"metadata": {"name": f"c{number}", "namespace": "default"}})
    sizes = [len(page["items"]) for page in client.pages(CONFIG_MAP)]
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize(
    ("uid_matches", "want"),
    [
        pytest.param(True, True, id="the incarnation that was meant is deleted"),
        pytest.param(False, False, id="another incarnation of the name is left alone"),
    ],
)
def test_delete_means_one_incarnation(api, client, uid_matches, want):
    uid = api.put("configmaps", CONFIG)["metadata"]["uid"]
    gone = client.delete(CONFIG_MAP, "default", "one", uid=uid if uid_matches else "other")
    assert gone is want
    assert (api.get("configmaps", "one", "default") is None) is want


def test_deleting_what_is_gone_is_no_failure(client):
    assert client.delete(CONFIG_MAP, "default", "gone", uid="u") is False


@pytest.mark.parametrize(
    ("status", "body", "want_retryable"),
    [
        pytest.param(0, "", True, id="no answer: try again"),
        pytest.param(409, {}, True, id="conflict: try again"),
        pytest.param(429, {}, True, id="too many requests: try again"),
        pytest.param(500, "oops", True, id="a server's fault: try again"),
        pytest.param(503, {}, True, id="unavailable: try again"),
        pytest.param(403, {}, False, id="forbidden: somebody must change rights"),
        pytest.param(422, {}, False, id="invalid: somebody must change the object"),
        pytest.param(404, {}, False, id="no such kind: somebody must install it"),
        pytest.param(
            409,
            {"details": {"causes": [{"reason": "NamespaceTerminating"}]}},
            False,
            id="a namespace on its way out takes nothing, whatever the code",
        ),
    ],
)
def test_what_is_worth_trying_again(status, body, want_retryable):
    assert api_error(status, body).retryable is want_retryable


def test_a_refusal_carries_the_servers_words_and_wishes(api, client):
    api.refuse(
        "GET", "configmaps/one", RefusedError(429, "TooManyRequests", "slow down", retry_after=7)
    )
    with pytest.raises(ApiError, match="slow down") as refused:
        client.request("GET", "/api/v1/namespaces/default/configmaps/one")
    assert refused.value.retry_after_seconds == 7.0
    assert refused.value.reason == "TooManyRequests"


def test_a_closed_connection_is_weather(api, client):
    api.break_off("GET", "configmaps/one")
    with pytest.raises(ApiError) as refused:
        client.request("GET", "/api/v1/namespaces/default/configmaps/one")
    assert refused.value.retryable


def test_credentials_are_read_again_after_a_401(api):
    api.tokens = {"old"}
    api.put("configmaps", CONFIG)
    current = ["old"]
    client = client_of(api, token=lambda: current[0])
    assert client.read(CONFIG_MAP, "default", "one")
    api.tokens, current[0] = {"new"}, "new"
    assert client.read(CONFIG_MAP, "default", "one")
    api.tokens = set()
    with pytest.raises(ApiError) as refused:
        client.read(CONFIG_MAP, "default", "one")
    assert refused.value.status == 401
    client.close()


def test_no_cluster_is_said_with_the_way_out(tmp_path):
    with pytest.raises(ClusterUnreachableError, match=r"no cluster to talk to: .*set KUBECONFIG"):
        load_configuration({"KUBECONFIG": str(tmp_path / "none")})


def test_a_token_file_is_read(tmp_path):
    (tmp_path / "token").write_text("secret")
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        """
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: it, user: {tokenFile: token}}]
"""
    )
    configuration = load_configuration({"KUBECONFIG": str(kubeconfig)})
    assert configuration.get_api_key_with_prefix("BearerToken") == "Bearer secret"
    assert configuration.host == "http://127.0.0.1:1"
