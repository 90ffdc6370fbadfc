"""From a container of a bound pod to the arguments, variables and files of its local process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from world.nodes.environment import declared, joined, of_this_machine, service_links
from world.nodes.expansion import PathRewriter, on_own_address
from world.nodes.node import Node
from world.nodes.programs import Image, Place, Program, command_line, program_for
from world.nodes.runtime import Runtime
from world.nodes.tokens import write_kubeconfig
from world.nodes.volumes import Volumes, remove

Object = Mapping[str, Any]
MESSAGE_PATH = "/dev/termination-log"  # Source: the API's default of terminationMessagePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the sandbox is asked to start, and where its traces will be."""

    argv: list[str]
    variables: dict[str, str]
    root: Path
    log: Path
    message_file: Path
    translate: Callable[[Sequence[str]], list[str]]  # a command inside the container, as run here


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """Prepares containers of one pod."""

    runtime: Runtime
    node: Node
    pod: Object
    folder: Path
    place: Place
    volumes: Volumes

    def log_path(self, container: str, attempt: int) -> Path:
        """The log of one run."""
        return self.folder / "containers" / container / f"{attempt}.log"

    def prepare(
        self, container: Object, image: Image, attempt: int, devices: Mapping[str, tuple[str, ...]]
    ) -> Launch:
        """Write the container's files; a fresh root folder and message file for every run."""
        own = self.folder / "containers" / container["name"]
        root = own / f"root-{attempt}"
        remove(own / f"root-{attempt - 1}")
        self.log_path(container["name"], attempt - 2).unlink(missing_ok=True)
        (root / "tmp").mkdir(parents=True, exist_ok=True)
        message_file = own / f"termination-{attempt}"
        message_file.write_bytes(b"")
        rewrite = self.rewriter(container, message_file)
        self.volumes.write(container, rewrite)
        program, rest = program_for(image, container.get("command") or ())
        inherited = self._inherited(root)
        own_variables = declared(
            container,
            self.pod,
            pod_ip=self.place.pod_ip,
            allocatable=self.node.allocatable(),
            read=self.volumes.read,
            inherited=inherited,
        )
        filled = {key: self.place.fill(value) for key, value in program.environment.items()}
        local = {
            k: on_own_address(rewrite(v), self.place.address) for k, v in own_variables.items()
        }
        imposed = {
            **self._network(),
            **self._identity(container, own),
            **visible_devices(devices),
        }
        variables = joined(joined(inherited, filled), {**local, **imposed})
        for more in (self.runtime.environment, self.node.spec.environment):
            variables = joined(variables, more)
        argv = command_line(
            program,
            [*rest, *(container.get("args") or ())],
            place=self.place,
            variables={**inherited, **own_variables},
            rewrite=rewrite,
        )
        return Launch(
            argv=argv,
            variables=variables,
            root=root,
            log=self.log_path(container["name"], attempt),
            message_file=message_file,
            translate=lambda command: self._inside(image, command, rewrite),
        )

    def _inside(self, image: Image, command: Sequence[str], rewrite: PathRewriter) -> list[str]:
        program, rest = program_for(image, command)
        bare = Program(argv=program.argv)
        return command_line(bare, rest, place=self.place, variables={}, rewrite=rewrite)

    def rewriter(self, container: Object, message_file: Path) -> PathRewriter:
        """How paths of this container become local ones."""
        message_path = container.get("terminationMessagePath") or MESSAGE_PATH
        return PathRewriter({**self.volumes.mounts(container), message_path: str(message_file)})

    def _inherited(self, root: Path) -> dict[str, str]:
        api = urlsplit(self._api_url())
        variables = of_this_machine(str(root), self.place.pod)
        variables["TMPDIR"] = str(root / "tmp")
        if self.pod["spec"].get("enableServiceLinks", True):
            variables.update(
                service_links(self.runtime.services.in_namespace(self.place.namespace))
            )
        variables["KUBERNETES_SERVICE_HOST"] = api.hostname or ""
        variables["KUBERNETES_SERVICE_PORT"] = str(api.port)
        variables["KUBERNETES_SERVICE_PORT_HTTPS"] = str(api.port)
        return variables

    def _api_url(self) -> str:
        return self.runtime.url_for_pods or self.runtime.api.url

    def _network(self) -> dict[str, str]:
        direct = ",".join(dict.fromkeys(("127.0.0.1", "localhost", self.runtime.api.host)))
        proxy = self.runtime.proxy_url
        return {
            "POD_LISTEN_ADDRESS": self.place.address,
            **{"HTTP_PROXY": proxy, "http_proxy": proxy},
            **{"NO_PROXY": direct, "no_proxy": direct},
        }

    def _identity(self, container: Object, own: Path) -> dict[str, str]:
        token_file = self.volumes.token_file(container)
        if token_file is None:
            return {}
        path = own / "kubeconfig"
        write_kubeconfig(
            path,
            url=self._api_url(),
            ca_file=self.runtime.api.ca_file,
            token_file=token_file,
            namespace=self.place.namespace,
        )
        return {"KUBECONFIG": str(path)}


def visible_devices(devices: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """What the device plugin tells a container; without a device it sees none."""
    uuids = [uuid for resource in sorted(devices) for uuid in devices[resource]]
    return {"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)} if uuids else {}
