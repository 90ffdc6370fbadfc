"""What the stories have in common: wishes, and questions about what runs."""

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from world.stage import ROOT, Stage, is_ready

L4, L40S, A100, H100 = "NVIDIA-L4", "NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"
LLAMA_8B = "hf://meta-llama/Llama-3.1-8B-Instruct"
EXAMPLE = ROOT / "examples" / "llama-3.1-8b.yaml"
AT_ONCE = {"stabilizationSeconds": 0}  # a gain need not last
STILL_SECONDS = 2.0  # nothing rests that long that means to change: nodes settle within 1 s here


def model_deployment(name: str, uri: str = LLAMA_8B, **spec: Any) -> dict[str, Any]:
    """A wish; keywords are fields of its spec."""
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name},
        "spec": {"model": {"uri": uri}, **spec},
    }


def serve(stage: Stage, name: str, uri: str = LLAMA_8B, **spec: Any) -> None:
    """Apply a wish and wait until all its replicas serve."""
    stage.apply(model_deployment(name, uri, **spec))
    stage.eventually(lambda: stage.ready(name), what=f"{name} serves")


def measured(stage: Stage, *nodes: str) -> None:
    """The agents of these nodes have told what their GPUs offer."""
    stage.eventually(
        lambda: set(nodes) <= {each["metadata"]["name"] for each in stage.objects("gpunodes")},
        what=f"the agents of {', '.join(nodes)} report",
    )


def variant(stage: Stage, name: str) -> dict[str, Any]:
    """The planned variant; empty before there is a plan."""
    found: list[dict[str, Any]] = (stage.status(name).get("plan") or {}).get("variants") or [{}]
    return found[0]


def serving(stage: Stage, name: str) -> list[dict[str, Any]]:
    """The pods that are ready and stay."""
    return [pod for pod in stage.pods(name) if is_ready(pod)]


def uids(objects: list[dict[str, Any]]) -> set[str]:
    """Who they are, whatever they are called."""
    return {each["metadata"]["uid"] for each in objects}


def args_of(pod: Mapping[str, Any]) -> list[str]:
    """The engine's arguments."""
    args: list[str] = pod["spec"]["containers"][0]["args"]
    return args


def flag(pod: Mapping[str, Any], name: str) -> str:
    """What a pod's argument says: `flag(pod, "max-model-len")`."""
    (value,) = (a.partition("=")[2] for a in args_of(pod) if a.startswith(f"--{name}="))
    return value


def gpus_of(pod: Mapping[str, Any]) -> int:
    """GPUs a pod takes."""
    return int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


def says(stage: Stage, name: str, kind: str, reason: str) -> dict[str, Any]:
    """The condition, once it has this reason."""
    condition: dict[str, Any] = stage.eventually(
        lambda: (c := stage.condition(name, kind)).get("reason") == reason and c,
        what=f"{name}: condition {kind} with reason {reason}",
    )
    return condition


def stays(look: Callable[[], Any], *, seconds: float = STILL_SECONDS) -> Any:
    """What was seen all the time; a change fails."""
    first, end = look(), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.5)
        now = look()
        assert now == first, f"it changed from {first!r} to {now!r}"
    return first


def at_rest(stage: Stage, name: str) -> dict[str, str]:
    """The resource versions of a deployment and its objects, once nothing is written any more."""

    def quiet() -> dict[str, str] | None:
        before = versions(stage, name)
        time.sleep(2.0)
        return before if versions(stage, name) == before else None

    found: dict[str, str] = stage.eventually(quiet, what=f"{name} is at rest")
    return found


def call(stage: Stage, url: str, body: Mapping[str, Any] | None = None) -> str:
    """What a client in the cluster gets from a Service."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    proxy = urllib.request.ProxyHandler({"http": stage.emulator.proxy_url})
    with urllib.request.build_opener(proxy).open(request, timeout=10) as reply:
        text: str = reply.read().decode()
    return text


def versions(stage: Stage, name: str) -> dict[str, str]:
    """Resource versions of a deployment and all that was made for it."""
    owner = f"shipfitter.dev/modeldeployment={name}"
    kinds = ("deployments", "services", "configmaps", "poddisruptionbudgets")
    objects = [each for kind in kinds for each in stage.objects(kind, selector=owner)]
    found = {f"{o['metadata']['name']} {o['metadata']['uid']}": o for o in objects}
    found[name] = stage.get("modeldeployment", name)
    return {key: each["metadata"]["resourceVersion"] for key, each in found.items()}
