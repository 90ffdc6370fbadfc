"""Keys, tokens and kubeconfigs of one plane; all of them die with its folder."""

import json
import secrets
import subprocess
from pathlib import Path

ADMIN = "admin"

# File name → user and groups. The two users have their roles from the API server's own defaults.
# Source: Kubernetes 1.36, plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go
USERS = {
    ADMIN: ("admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
}


class MissingOpensslError(Exception):
    """The one program of the system that a plane needs."""


def write_service_account_keys(folder: Path) -> None:
    """The pair that signs service account tokens and proves them."""
    key = folder / "sa.key"
    for step in (
        ["openssl", "genrsa", "-out", key, "2048"],
        ["openssl", "rsa", "-in", key, "-pubout", "-out", folder / "sa.pub"],
    ):
        try:
            subprocess.run(step, check=True, capture_output=True)
        except FileNotFoundError:
            raise MissingOpensslError(
                "openssl: not on PATH, and it makes the key that signs service account tokens; "
                "install it with the system's package manager"
            ) from None


def write_tokens(folder: Path) -> dict[str, str]:
    """A fresh token for each of `USERS`, in the API server's token file."""
    tokens = {name: secrets.token_hex(16) for name in USERS}
    rows = [f'{tokens[name]},{user},{name},"{groups}"\n' for name, (user, groups) in USERS.items()]
    path = folder / "tokens.csv"
    path.write_text("".join(rows))
    path.chmod(0o600)
    return tokens


def write_kubeconfig(path: Path, *, url: str, ca: Path, token: str) -> Path:
    """A kubeconfig for one bearer token; JSON is YAML."""
    path.touch(mode=0o600)
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "plane",
                "clusters": [
                    {"name": "plane", "cluster": {"server": url, "certificate-authority": str(ca)}}
                ],
                "users": [{"name": "user", "user": {"token": token}}],
                "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "user"}}],
            },
            indent=1,
        )
    )
    return path
