"""How to reach the API server: KUBECONFIG, the pod's own credentials, or ~/.kube/config."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from shipfitter.cluster.failures import ClusterUnreachableError

POOL_CONNECTIONS = 32  # watches hold one each; above, connections are opened and dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How to reach the API server, for a client that is not ours."""

    server: str
    ca_path: str | None
    insecure: bool
    scheme: str | None
    token: str | None
    certificate_path: str | None
    private_key_path: str | None


def load_configuration(
    environ: Mapping[str, str] = os.environ, *, context: str | None = None
) -> Configuration:
    """The connection that KUBECONFIG names, else the pod's own, else ~/.kube/config.

    Raises ClusterUnreachableError where none of them can be read.
    """
    configuration = Configuration()
    kubeconfig = environ.get("KUBECONFIG", "")
    try:
        if not kubeconfig and not context and environ.get("KUBERNETES_SERVICE_HOST"):
            load_incluster_config(client_configuration=configuration)
        else:
            load_kube_config(
                config_file=kubeconfig or os.path.expanduser("~/.kube/config"),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
    except (ConfigException, OSError) as error:
        raise ClusterUnreachableError(
            f"no cluster to talk to: {error}; set KUBECONFIG to a file that exists, "
            "or run inside a cluster"
        ) from error
    configuration.retries = False  # each failure is ours to judge
    configuration.connection_pool_maxsize = POOL_CONNECTIONS
    configuration.keep_alive = True
    return configuration


def credentials(configuration: Configuration) -> Credentials:
    """What another client needs to speak to the same server as the same identity."""
    header = configuration.get_api_key_with_prefix("BearerToken") or ""
    scheme, _, token = header.rpartition(" ")
    return Credentials(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
