"""Where the API server is and who we are."""

import pytest

from shipfitter.agent.credentials import CredentialsError, NodeClaim, load, node_claim
from unit.agent.gpunode_api import NODE_UID, bound_token, kubeconfig


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param(bound_token(), NodeClaim("n1", NODE_UID), id="bound to a pod"),
        pytest.param("e30.e30.c2ln", NodeClaim(), id="bound to nothing"),
        pytest.param("", NodeClaim(), id="none at all, as with a client certificate"),
        pytest.param("opaque", NodeClaim(), id="not of that form"),
        pytest.param("a.!!!.c", NodeClaim(), id="not readable"),
        pytest.param("e30.WzFd.c2ln", NodeClaim(), id="a list where claims should be"),
    ],
)
def test_node_claim(token, want):
    assert node_claim(token) == want


def test_a_kubeconfigs_token_file_lies_beside_it_and_is_read_each_time(tmp_path):
    path = kubeconfig(tmp_path, "http://127.0.0.1:1/prefix/", "first")
    credentials = load({"KUBECONFIG": str(path)})
    assert (credentials.server, credentials.token()) == ("http://127.0.0.1:1/prefix", "first")
    (tmp_path / "token").write_text("second\n")
    assert credentials.token() == "second"
    assert "second" not in repr(credentials)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("[", "no usable kubeconfig", id="not YAML"),
        pytest.param("current-context: a\ncontexts: []\n", "no usable", id="no such context"),
        pytest.param("", "no usable", id="empty"),
    ],
)
def test_an_unusable_kubeconfig_says_so(text, found, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(CredentialsError, match=found):
        load({"KUBECONFIG": str(path)})


def test_outside_a_pod_the_way_out_is_told():
    with pytest.raises(CredentialsError, match="KUBECONFIG is not set; set it, or use --once"):
        load({})


def test_a_missing_token_says_where_it_is_expected(tmp_path):
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", "first")
    (tmp_path / "token").unlink()
    with pytest.raises(CredentialsError, match="mount a service account token there"):
        load({"KUBECONFIG": str(path)}).token()


def test_in_a_pod_a_missing_authority_says_so():
    with pytest.raises(CredentialsError, match=r"ca\.crt: the cluster's authority cannot be read"):
        load({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"})
