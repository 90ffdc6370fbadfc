"""`make demo`: the main job for real on this machine, told as a story; KEEP=1 leaves it running.

No GPU and no cluster: the control plane, helm and Shipfitter are the real ones, nodes run their
pods as local processes, and driver and engine are stand-ins that know what the real ones would say.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from world.controlplane.build import bin_folder
from world.stage import NAMESPACE, ROOT, Stage

EXAMPLE = ROOT / "examples" / "llama-3.1-8b.yaml"
NAME = "llama-8b"
WIDTH = 100
STARTED = time.monotonic()
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def main() -> int:
    """The story, from the plan on paper to the re-size."""
    signal.signal(signal.SIGTERM, _stop)
    print("Shipfitter fits LLM serving onto the GPUs a cluster really has.")
    on_paper()
    chapter("The world", "a real control plane on this machine; no GPU, no root, no network needed")
    bin_folder()  # says what it builds, the first time
    with Stage(say=say) as stage:
        say("Shipfitter installed: helm install shipfitter charts/shipfitter")
        small_nodes(stage)
        five_lines(stage)
        explained(stage)
        answered(stage)
        bigger_node(stage)
        chapter("That was it", "five lines in; sized, explained and re-sized pods out")
        if os.environ.get("KEEP"):
            keep(stage)
    say("everything is stopped and gone")
    return 0


def on_paper() -> None:
    """The plan itself needs no cluster at all."""
    chapter("On paper", "three kinds of GPU nodes, no cluster needed")
    command = ["plan", "-f", str(EXAMPLE.relative_to(ROOT))]
    for gpu in ("NVIDIA-L4:2", "NVIDIA-L40S:8", "NVIDIA-H100-80GB-HBM3:8"):
        command += ["--gpu", gpu]
    show("cat " + command[2], EXAMPLE.read_text())
    result = subprocess.run(
        [sys.executable, "-m", "shipfitter", *command],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    show("shipfitter " + " ".join(command), result.stdout or result.stderr)


def small_nodes(stage: Stage) -> None:
    """What the agents report."""
    chapter("Two small GPU nodes", "an agent on each tells what its GPU really offers")
    for number in (1, 2):
        stage.add_gpu_node(f"small-{number}", "NVIDIA-L4", 1)
    stage.eventually(
        lambda: len(json.loads(stage.plane.kubectl("get", "gpunodes", "-o", "json"))["items"]) == 2,
        what="both agents have reported",
    )
    show("kubectl get gpunodes", stage.plane.kubectl("get", "gpunodes"))


def five_lines(stage: Stage) -> None:
    """kubectl apply, and a sized pod."""
    chapter("Five lines", f"kubectl apply -f {EXAMPLE.relative_to(ROOT)}")
    stage.apply(EXAMPLE)
    since = time.monotonic()
    stage.eventually(lambda: stage.ready(NAME), what="the pod serves")
    say(f"serving {time.monotonic() - since:.0f} s after apply")
    show("kubectl get mdl", stage.plane.kubectl("get", "mdl"))
    (pod,) = serving(stage)
    arguments = pod["spec"]["containers"][0]["args"]
    sizes = [a for a in pairs(arguments) if a.split()[0].split("=")[0] in SIZING]
    show("the pod's arguments", "\n".join(folded(sizes)))


SIZING = (
    "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--tensor-parallel-size",
    "--gpu-memory-utilization", "--kv-cache-dtype", "--max-cudagraph-capture-size",
)  # fmt: skip


def explained(stage: Stage) -> None:
    """Why these numbers, and what the engine found."""
    chapter("Why these numbers", "the status says it, the engine's own log confirms it")
    show(f"kubectl describe mdl {NAME}   (its conditions)", conditions(stage))
    (pod,) = serving(stage)
    log = stage.plane.kubectl("logs", pod["metadata"]["name"])
    said = [
        line[line.index(words) :]
        for line in log.splitlines()
        for words in ("Model loading took", "Available KV cache", "GPU KV cache size")
        if words in line
    ]
    planned = stage.status(NAME)["plan"]["variants"][0]
    show("kubectl logs   (what the engine says it got)", "\n".join(said))
    say(f"planned: {planned['kvCacheTokens']:,} tokens of cache")


def conditions(stage: Stage) -> str:
    """Type, status, reason and message of each, within the width."""
    lines = []
    for each in stage.status(NAME)["conditions"]:
        head = f"{each['type']:<14} {each['status']:<6} {each['reason']:<11} "
        lines += textwrap.wrap(head + each.get("message", ""), WIDTH, subsequent_indent=" " * 34)
    return "\n".join(lines)


def answered(stage: Stage) -> None:
    """A completion through the Service."""
    url = f"http://{NAME}.default.svc:8000/v1/completions"
    request = urllib.request.Request(
        url,
        data=json.dumps({"model": NAME, "prompt": "Hello", "max_tokens": 8}).encode(),
        headers={"Content-Type": "application/json"},
    )
    proxy = urllib.request.ProxyHandler({"http": stage.emulator.proxy_url})
    with urllib.request.build_opener(proxy).open(request, timeout=10) as reply:
        answer: dict[str, Any] = json.loads(reply.read())
    show(f"curl {url}", f"{answer['model']}: {answer['choices'][0]['text'].strip()}")


def bigger_node(stage: Stage) -> None:
    """A better GPU type joins, and the deployment follows by itself."""
    chapter("A bigger node type joins", "one L40S; the demo shortens the 300 s a gain has to last")
    patch = {"spec": {"resize": {"stabilizationSeconds": 3}}}
    stage.plane.kubectl("patch", "mdl", NAME, "--type=merge", "-p", json.dumps(patch))
    before = {pod["metadata"]["name"] for pod in serving(stage)}
    stage.add_gpu_node("big-1", "NVIDIA-L40S", 1)
    seen: list[str] = []

    def moved() -> bool:
        with contextlib.suppress(StopIteration, KeyError, IndexError):
            _follow(stage, seen)
            gpu = stage.status(NAME)["plan"]["variants"][0]["gpuProduct"]
            names = {pod["metadata"]["name"] for pod in stage.pods(NAME)}
            return gpu == "NVIDIA-L40S" and stage.ready(NAME) and not names & before
        return False

    stage.eventually(moved, what="the deployment has moved to the L40S")
    show("kubectl get mdl", stage.plane.kubectl("get", "mdl"))
    events = stage.plane.kubectl(
        "get", "events", "--field-selector", f"involvedObject.name={NAME}",
        "-o", r"jsonpath={range .items[?(@.reason=='Resized')]}{.message}{'\n'}{end}",
    )  # fmt: skip
    show("kubectl describe mdl   (event Resized)", events)


def _follow(stage: Stage, seen: list[str]) -> None:
    """Say each change of the pods once."""
    pods = sorted(
        f"{pod['spec'].get('nodeName', 'waiting')}: {_state(pod)}" for pod in stage.pods(NAME)
    )
    picture = ", ".join(pods)
    if not seen or seen[-1] != picture:
        seen.append(picture)
        say(f"pods: {picture}")


def _state(pod: dict[str, Any]) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "going"
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
    return "ready" if conditions.get("Ready") == "True" else "starting"


def serving(stage: Stage) -> list[dict[str, Any]]:
    """The pods that are here to stay."""
    return [pod for pod in stage.pods(NAME) if not pod["metadata"].get("deletionTimestamp")]


def keep(stage: Stage) -> None:
    """Leave it up until the person is done."""
    lines = (
        "",
        "It stays up (KEEP=1). In another terminal:",
        f"  export KUBECONFIG={stage.plane.kubeconfig}",
        f"  export PATH={stage.plane.bin}:$PATH",
        "  kubectl get mdl,gpunodes,pods -A",
        f"  kubectl logs -n {NAMESPACE} deploy/shipfitter-operator",
        "Ctrl-C ends it and removes everything.",
    )
    print("\n".join(lines), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)


# --- telling


def chapter(title: str, subtitle: str) -> None:
    """A new part of the story."""
    print(f"\n{bold('── ' + title)}  {dim(subtitle)}", flush=True)


def say(line: str) -> None:
    """One thing that happened, with the time since the start."""
    print(dim(f"   {time.monotonic() - STARTED:5.1f} s  ") + line, flush=True)


def show(command: str, text: str) -> None:
    """A command and what it printed."""
    print(f"\n{bold(command if '(' in command else '$ ' + command)}")
    print("\n".join(line.rstrip() for line in text.rstrip().splitlines()), flush=True)


def pairs(arguments: list[str]) -> list[str]:
    """Flags with their values."""
    grouped: list[str] = []
    for argument in arguments:
        if argument.startswith("-") or not grouped:
            grouped.append(argument)
        else:
            grouped[-1] += f" {argument}"
    return grouped


def folded(words: list[str]) -> list[str]:
    """Words on lines of the width."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > WIDTH - 6:
            lines.append("")
        lines[-1] += f"{word}  "
    return lines


def bold(text: str) -> str:
    """Bold on a terminal."""
    return f"\033[1m{text}\033[0m" if COLOUR else text


def dim(text: str) -> str:
    """Faint on a terminal."""
    return f"\033[2m{text}\033[0m" if COLOUR else text


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def run(story: Callable[[], int]) -> int:
    """The story; an interruption ends it quietly, with everything stopped."""
    try:
        return story()
    except KeyboardInterrupt:
        print("\ninterrupted; everything is stopped")
        return 130


if __name__ == "__main__":
    sys.exit(run(main))
