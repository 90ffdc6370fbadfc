"""How the programs are started: their flags, and the few a story may change."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSettings:
    """Extra flags of one plane; they come last, so they win over ours."""

    apiserver_args: tuple[str, ...] = ()
    controller_manager_args: tuple[str, ...] = ()
    scheduler_args: tuple[str, ...] = ()


# A lost node is noticed after 12 s instead of 50, and its pods go after 10 s instead of 300.
FAST_NODE_LOSS = PlaneSettings(
    apiserver_args=(
        "--default-not-ready-toleration-seconds=10",
        "--default-unreachable-toleration-seconds=10",
    ),
    controller_manager_args=("--node-monitor-grace-period=12s",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Loopback ports of one plane."""

    etcd: int
    etcd_peer: int
    apiserver: int
    scheduler: int
    controller_manager: int


def etcd_args(folder: Path, ports: Ports) -> list[str]:
    """No fsync: nothing here outlives the machine, and the disk is what makes starts slow."""
    client = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def apiserver_args(folder: Path, ports: Ports, extra: tuple[str, ...]) -> list[str]:
    """Signs its own certificate into `certs`; that certificate is the CA of every kubeconfig."""
    return [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.apiserver}",
        f"--cert-dir={folder / 'certs'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'sa.pub'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        *extra,
    ]


def _client_args(kubeconfig: Path, port: int, certs: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certs}",
    ]


def scheduler_args(folder: Path, ports: Ports, extra: tuple[str, ...]) -> list[str]:
    kubeconfig = folder / "scheduler.kubeconfig"
    return [*_client_args(kubeconfig, ports.scheduler, folder / "certs-scheduler"), *extra]


def controller_manager_args(folder: Path, ports: Ports, extra: tuple[str, ...]) -> list[str]:
    kubeconfig = folder / "controller-manager.kubeconfig"
    return [
        *_client_args(kubeconfig, ports.controller_manager, folder / "certs-controller-manager"),
        f"--service-account-private-key-file={folder / 'sa.key'}",
        f"--root-ca-file={folder / 'certs' / 'apiserver.crt'}",
        "--use-service-account-credentials",
        # With the default 20/30 the default ServiceAccount comes 4 s later: each controller asks
        # for an account and a token of its own. Measured on two cores.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *extra,
    ]
