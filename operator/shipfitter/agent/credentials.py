"""Where the API server is and who we are: a kubeconfig, or the files of a pod."""

import base64
import binascii
import json
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class CredentialsError(Exception):
    """The kubeconfig or the pod's files do not say how to reach the API server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How to reach the API server; the token is a file so that a rotated one is seen."""

    server: str
    ssl_context: ssl.SSLContext | None = field(repr=False)
    fixed_token: str = field(default="", repr=False)
    token_file: Path | None = None
    server_name: str = ""

    def token(self) -> str:
        """The bearer token as it is now; empty for a client certificate."""
        if self.token_file is None:
            return self.fixed_token
        try:
            return self.token_file.read_text().strip()
        except OSError as error:
            raise CredentialsError(
                f"{self.token_file}: the token cannot be read ({error.strerror}); mount a service "
                "account token there"
            ) from None


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """The node a token is bound to, by its pod."""

    name: str = ""
    uid: str = ""


def node_claim(token: str) -> NodeClaim:
    """The node named in a token's payload; empty where the token is not bound to a pod.

    The API server has checked the signature; we only read what it will say of us anyway.
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        node = claims["kubernetes.io"]["node"]
        return NodeClaim(name=str(node["name"]), uid=str(node["uid"]))
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return NodeClaim()


def load(environment: Mapping[str, str] = os.environ) -> Credentials:
    """Credentials from KUBECONFIG, else of the pod this runs in. Raises CredentialsError."""
    if path := environment.get("KUBECONFIG"):
        return _from_kubeconfig(Path(path))
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    if not host:
        raise CredentialsError(
            "no API server: this is no pod and KUBECONFIG is not set; set it, or use --once to "
            "print what would be written"
        )
    bracketed = f"[{host}]" if ":" in host else host
    return Credentials(
        server=f"https://{bracketed}:{port or 443}",
        ssl_context=_ssl_context(authority_file=str(SERVICE_ACCOUNT / "ca.crt")),
        token_file=SERVICE_ACCOUNT / "token",
    )


def _from_kubeconfig(path: Path) -> Credentials:
    import yaml  # noqa: PLC0415  # in a pod it is never needed, and takes memory

    try:
        config = yaml.safe_load(path.read_text())
        context = _named(config, "contexts", config["current-context"])["context"]
        cluster = _named(config, "clusters", context["cluster"])["cluster"]
        user = _named(config, "users", context["user"])["user"] or {}
        server = cluster["server"]
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise CredentialsError(
            f"{path}: no usable kubeconfig ({error!r}); it needs current-context and its cluster "
            "and user"
        ) from None
    token_file = user.get("tokenFile")
    return Credentials(
        server=server.rstrip("/"),
        ssl_context=_kubeconfig_ssl(cluster, user, path) if server.startswith("https:") else None,
        fixed_token=user.get("token") or "",
        token_file=path.parent / token_file if token_file else None,
        server_name=cluster.get("tls-server-name") or "",
    )


def _kubeconfig_ssl(
    cluster: Mapping[str, Any], user: Mapping[str, Any], path: Path
) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority")
    context = _ssl_context(
        authority_file=str(path.parent / authority) if authority else None,
        authority_data=_decoded(cluster.get("certificate-authority-data")),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
    )
    certificate, key = (user.get(f"client-{part}") for part in ("certificate", "key"))
    if certificate and key:
        context.load_cert_chain(path.parent / certificate, path.parent / key)
    chain, key_data = (_decoded(user.get(f"client-{part}-data")) for part in ("certificate", "key"))
    if chain and key_data:  # the library reads client certificates from files only
        with tempfile.NamedTemporaryFile() as both:
            both.write(chain + b"\n" + key_data)
            both.flush()
            context.load_cert_chain(both.name)
    return context


def _ssl_context(
    *, authority_file: str | None = None, authority_data: bytes = b"", insecure: bool = False
) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=authority_file, cadata=authority_data.decode() or None
        )
    except OSError as error:
        raise CredentialsError(
            f"{authority_file}: the cluster's authority cannot be read ({error}); mount it there"
        ) from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _named(config: Mapping[str, Any], kind: str, name: str) -> Any:
    return next(entry for entry in config[kind] if entry["name"] == name)


def _decoded(data: str | None) -> bytes:
    return base64.b64decode(data) if data else b""
