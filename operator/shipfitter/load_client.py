"""Runs the engine's own load test in a pod of the engine's image, and leaves the figures as its
last words: the Job of `spec.verify` carries this file's text, and nothing else of Shipfitter.

    python3 -c TEXT --message-file=FILE --seconds=N --engines=URL,URL -- vllm bench serve ...

Source: vLLM 0.11.1 to 0.32, vllm/benchmarks/serve.py (keys of the saved result; 0.32 measured) and
vllm/v1/metrics/loggers.py (preemptions).
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections import deque
from threading import Timer
from typing import Any

METRICS_SECONDS = 5
LAST_LINES = 6
LONGEST_ERROR = 1500  # of the 4,096 bytes that the kubelet keeps
PREEMPTIONS = "vllm:num_preemptions_total"
# What status calls it, and what the engine's client does.
FIGURES = {
    "seconds": "duration",
    "requestsPerSecond": "request_throughput",
    "outputTokensPerSecond": "output_throughput",
    "meanFirstTokenMilliseconds": "mean_ttft_ms",
    "p99FirstTokenMilliseconds": "p99_ttft_ms",
    "meanTokenMilliseconds": "mean_tpot_ms",
}


def main(arguments: list[str]) -> int:
    """Everything that can be said is in the message; the exit code is for kubectl."""
    parser = argparse.ArgumentParser(prog="load_client")
    parser.add_argument("--message-file", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--engines", default="")
    parser.add_argument("client", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    engines = [url for url in options.engines.split(",") if url]
    client = [word for word in options.client if word != "--"]
    before = {url: preemptions(url) for url in engines}
    report = load(client, options.seconds)
    counted = [
        after - earlier
        for url, earlier in before.items()
        if earlier is not None and (after := preemptions(url)) is not None and after >= earlier
    ]
    if counted:
        report["preemptions"] = sum(counted)
    say("shipfitter: " + json.dumps(report) + "\n")
    with open(options.message_file, "w", encoding="utf-8") as file:
        file.write(json.dumps(report))
    return 1 if "error" in report else 0


def load(client: list[str], seconds: float) -> dict[str, Any]:
    """The client's figures, or what kept it from having any."""
    with tempfile.TemporaryDirectory() as folder:
        name = "result.json"
        saved = ["--save-result", f"--result-dir={folder}", f"--result-filename={name}"]
        code, words = run([*client, *saved], seconds)
        if code is None:
            return {"error": f"out of time: the load did not end within {seconds:.0f} s"}
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return figures(json.load(file))
        except (OSError, ValueError, TypeError, KeyError) as error:
            last = words or f"{type(error).__name__}: {error}"
            return {"error": f"exit code {code}: {last}"[-LONGEST_ERROR:]}


def run(command: list[str], seconds: float) -> tuple[int | None, str]:
    """The exit code (None: it took too long) and the last lines; all lines go to our log."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    late: list[bool] = []

    def end() -> None:
        late.append(True)
        os.killpg(process.pid, signal.SIGKILL)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    lines: deque[str] = deque(maxlen=LAST_LINES)
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            say(line)
            if line.strip():
                lines.append(line.strip())
    code = process.wait()
    timer.cancel()
    return (None if late else code), " | ".join(lines)


def say(text: str) -> None:
    """Into the pod's log, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def figures(result: dict[str, Any]) -> dict[str, Any]:
    """What status keeps of the saved result; what is no number there is left out."""
    sent, completed = int(result["num_prompts"]), int(result["completed"])
    report: dict[str, Any] = {"requests": sent, "failed": max(0, sent - completed)}
    for ours, theirs in FIGURES.items():
        value = result.get(theirs)
        if isinstance(value, (int, float)) and math.isfinite(value):
            report[ours] = round(value, 2)
    return report


def preemptions(url: str) -> int | None:
    """How often this engine has put a running request back so far; None where it does not say."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=METRICS_SECONDS) as answer:
            lines = answer.read().decode("utf-8", "replace").splitlines()
        values = [float(line.split()[-1]) for line in lines if line.startswith(PREEMPTIONS)]
    except (OSError, ValueError, IndexError):
        return None
    return int(sum(values)) if values else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
