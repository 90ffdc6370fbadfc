"""The six programs of a control plane: what is built, and from which module."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"

KUBE_VERSION = "v1.36.3"
ETCD_VERSION = "v3.6.16"
HELM_VERSION = "v4.3.1"

# Source: the k8s.io/kubernetes v1.36.3 module's own time; a constant keeps two builds identical.
KUBE_BUILD_DATE = "2026-07-22T18:07:38Z"

# Unless both packages are told, the server calls itself v0.0.0-master and version checks misbehave.
# Source: Kubernetes 1.36, staging/src/k8s.io/{component-base/version,client-go/pkg/version}/base.go
KUBE_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
HELM_VERSION_PACKAGE = "helm.sh/helm/v4/internal/version"  # Source: Helm 4.3, internal/version


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program; seconds are what its build takes on two idle cores, downloads included."""

    name: str
    module: str  # folder below modules/
    package: str
    version: str
    linker_values: tuple[str, ...] = ()
    version_args: tuple[str, ...] = ("--version",)
    oldest_usable: tuple[int, int]  # (major, minor) of one found on this machine
    fast_seconds: int
    optimised_seconds: int


def _kube_linker_values() -> tuple[str, ...]:
    _, minor, _ = KUBE_VERSION.split(".")
    values = {
        "gitVersion": KUBE_VERSION,
        "gitMajor": "1",
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": KUBE_BUILD_DATE,
    }
    return tuple(
        f"{package}.{name}={value}"
        for package in KUBE_VERSION_PACKAGES
        for name, value in values.items()
    )


def _kube(name: str, fast_seconds: int, optimised_seconds: int, **more: tuple[str, ...]) -> Tool:
    return Tool(
        name=name,
        module="kube",
        package=f"k8s.io/kubernetes/cmd/{name}",
        version=KUBE_VERSION,
        linker_values=_kube_linker_values(),
        oldest_usable=(1, 36),
        fast_seconds=fast_seconds,
        optimised_seconds=optimised_seconds,
        **more,
    )


# In the order they are built. Source of the seconds: measured on two cores, Go 1.26.8.
TOOLS = (
    Tool(
        name="etcd",
        module="etcd",
        package="go.etcd.io/etcd/server/v3",
        version=ETCD_VERSION,
        oldest_usable=(3, 6),
        fast_seconds=69,
        optimised_seconds=85,
    ),
    _kube("kube-apiserver", 236, 467),
    _kube("kube-controller-manager", 64, 112),
    _kube("kube-scheduler", 5, 10),
    _kube("kubectl", 24, 39, version_args=("version", "--client")),
    Tool(
        name="helm",
        module="helm",
        package="helm.sh/helm/v4/cmd/helm",
        version=HELM_VERSION,
        linker_values=(
            f"{HELM_VERSION_PACKAGE}.version={HELM_VERSION}",
            f"{HELM_VERSION_PACKAGE}.gitTreeState=clean",
        ),
        version_args=("version", "--short"),
        oldest_usable=(3, 18),
        fast_seconds=122,
        optimised_seconds=260,
    ),
)


def optimised() -> bool:
    """Whether the slower build of faster programs is wanted, as for measuring rates."""
    return os.environ.get("SHIPFITTER_OPTIMISED") == "1"


def compiler_flags() -> tuple[str, ...]:
    """Go's flags beyond the fixed ones: by default half the build time for slower programs."""
    return () if optimised() else ("-gcflags=all=-N -l -dwarf=false",)


def expected_seconds(tool: Tool) -> int:
    return tool.optimised_seconds if optimised() else tool.fast_seconds


def cache_folder() -> Path:
    """Where binaries and caches live, outside any checkout."""
    if chosen := os.environ.get("SHIPFITTER_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "shipfitter"


def built_folder() -> Path:
    """The folder of what we build; its name changes with everything that changes a binary."""
    digest = hashlib.sha256()
    for tool in TOOLS:
        digest.update(repr((tool.name, tool.package, tool.version, tool.linker_values)).encode())
        digest.update((MODULES / tool.module / "go.mod").read_bytes())
    digest.update(repr(compiler_flags()).encode())
    return cache_folder() / f"bin-{digest.hexdigest()[:12]}"


def parse_version(text: str) -> tuple[int, int] | None:
    """The first (major, minor) in what a program prints about itself.

    >>> parse_version("Client Version: v1.36.3")
    (1, 36)
    """
    found = re.search(r"(\d+)\.(\d+)\.\d+", text)
    return (int(found[1]), int(found[2])) if found else None
