"""`bench serve`: the engine's own load test, played with real requests and the same result file.

Source: vLLM 0.32 `vllm bench serve --save-result`, run against a served model.
"""

import argparse
import json
import statistics
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def bench(arguments: list[str]) -> int:
    """Send the prompts, print and save the figures; 0 even where requests failed, as there."""
    parser = argparse.ArgumentParser(prog="vllm bench serve")
    for name in ("backend", "base-url", "host", "endpoint", "model", "tokenizer", "dataset-name"):
        parser.add_argument(f"--{name}")
    for name in (
        "served-model-name",
        "tokenizer-mode",
        "result-dir",
        "result-filename",
        "request-rate",
    ):
        parser.add_argument(f"--{name}")
    for name in ("port", "random-input-len", "random-output-len", "num-prompts", "seed"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--max-concurrency", type=int)
    for name in ("save-result", "ignore-eos", "disable-tqdm", "trust-remote-code"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(arguments)
    base = options.base_url or f"http://{options.host or '127.0.0.1'}:{options.port or 8000}"
    url = base.rstrip("/") + (options.endpoint or "/v1/completions")
    model = options.served_model_name or options.model
    prompt = "x" * 4 * (options.random_input_len or 1024)
    number = options.num_prompts or 1000
    started = time.monotonic()
    with ThreadPoolExecutor(options.max_concurrency or 32) as pool:
        taken = list(pool.map(lambda _: _ask(url, model, prompt), range(number)))
    result = _figures(taken, time.monotonic() - started, options)
    print("============ Serving Benchmark Result ============")
    for key, value in result.items():
        print(f"{key:40} {value}")
    if options.save_result:
        folder = Path(options.result_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (options.result_filename or "result.json")).write_text(json.dumps(result))
    return 0


def _ask(url: str, model: str, prompt: str) -> tuple[float, int]:
    """Seconds and generated tokens; no tokens where it failed."""
    body = json.dumps({"model": model, "prompt": prompt, "max_tokens": 16}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    began = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            tokens = int(json.load(answer)["usage"]["completion_tokens"])
    except urllib.error.HTTPError as error:
        error.close()
        tokens = 0
    except OSError:
        tokens = 0
    return time.monotonic() - began, tokens


def _figures(
    taken: list[tuple[float, int]], seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    milliseconds = sorted(1000 * took for took, tokens in taken if tokens) or [0.0]
    generated = sum(tokens for _, tokens in taken)
    figures: dict[str, Any] = {
        "backend": options.backend or "openai",
        "model_id": options.model,
        "num_prompts": len(taken),
        "max_concurrency": options.max_concurrency,
        "duration": seconds,
        "completed": sum(1 for _, tokens in taken if tokens),
        "failed": sum(1 for _, tokens in taken if not tokens),
        "total_output_tokens": generated,
        "request_throughput": len(taken) / seconds,
        "output_throughput": generated / seconds,
        "max_concurrent_requests": options.max_concurrency or len(taken),
    }
    for name in ("ttft", "tpot", "itl"):
        share = 1.0 if name == "ttft" else 0.1
        figures[f"mean_{name}_ms"] = share * statistics.mean(milliseconds)
        figures[f"median_{name}_ms"] = share * statistics.median(milliseconds)
        figures[f"p99_{name}_ms"] = share * milliseconds[int(0.99 * (len(milliseconds) - 1))]
    return figures
