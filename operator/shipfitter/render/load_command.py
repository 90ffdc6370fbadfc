"""The command of the load test: the engine's own client, what it needs, and around it our program.

Source: vLLM 0.11.1 to 0.32, vllm/benchmarks/serve.py: the flags are the same in all of them.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from shipfitter.api.engine_args import read_arguments
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import claim_and_path
from shipfitter.render.args import ENGINE_PORT, model_argument
from shipfitter.render.load_size import Load

# 256 requests of 8,192 tokens, twice over, take a small GPU 20 minutes.
LOAD_SECONDS = 1800
MOST_ENGINES_ASKED = 32  # for their preemptions

_PROGRAM = files("shipfitter").joinpath("load_client.py").read_text(encoding="utf-8")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY")
# What imports of the engine write, and who it takes itself for without a passwd entry.
_VARIABLES = {
    "HOME": "/tmp",
    "HF_HOME": "/tmp/huggingface",
    "VLLM_CACHE_ROOT": "/tmp/vllm",
    "XDG_CACHE_HOME": "/tmp/cache",
    "XDG_CONFIG_HOME": "/tmp/config",
    "TRITON_CACHE_DIR": "/tmp/triton",
    "USER": "engine",
    "LOGNAME": "engine",
    "VLLM_NO_USAGE_STATS": "1",
    # The image asks for all GPUs, which a node's runtime may give to a pod that requests none.
    "NVIDIA_VISIBLE_DEVICES": "void",
    "CUDA_VISIBLE_DEVICES": "",
}


def load_command(
    resource: ModelDeployment,
    load: Load,
    digest: str,
    *,
    host: str,
    addresses: Sequence[str],
    model_uri: str,
    message_file: str,
) -> list[str]:
    """The container's command; `host` is the Service, `addresses` are the engines'."""
    engines = [_url(each) for each in addresses[:MOST_ENGINES_ASKED]]
    return [
        "python3",
        "-c",
        _PROGRAM,
        f"--message-file={message_file}",
        f"--seconds={LOAD_SECONDS}",
        f"--engines={','.join(engines)}",
        "--",
        *_client(resource, load, digest, host=host, model_uri=model_uri),
    ]


def _url(address: str) -> str:
    return (
        f"http://[{address}]:{ENGINE_PORT}" if ":" in address else f"http://{address}:{ENGINE_PORT}"
    )


def _client(
    resource: ModelDeployment, load: Load, digest: str, *, host: str, model_uri: str
) -> list[str]:
    given = {argument.flag: argument for argument in read_arguments(resource.spec.engine.args)}
    tokenizer = given.get("--tokenizer")
    words = [
        "vllm",
        "bench",
        "serve",
        "--backend=openai",
        "--endpoint=/v1/completions",
        f"--base-url=http://{host}:{ENGINE_PORT}",
        f"--model={resource.metadata.name}",
        f"--tokenizer={tokenizer.values[0] if tokenizer else model_argument(model_uri)}",
        "--dataset-name=random",
        f"--random-input-len={load.input_tokens}",
        f"--random-output-len={load.output_tokens}",
        f"--num-prompts={load.requests}",
        f"--max-concurrency={load.at_once}",
        f"--seed={int(digest, 16) % 2**31}",  # no prompt that a prefix cache has seen
        "--ignore-eos",
        "--disable-tqdm",
    ]
    mode = given.get("--tokenizer-mode")
    if mode and mode.values:
        words.append(f"--tokenizer-mode={mode.values[0]}")
    if "--trust-remote-code" in given and not given["--trust-remote-code"].off:
        words.append("--trust-remote-code")
    return words


def load_variables(
    resource: ModelDeployment, model_uri: str, *, hub_endpoint: str, direct: Sequence[str]
) -> list[dict[str, Any]]:
    """What the client needs to find its tokenizer, and to be let in."""
    found: dict[str, dict[str, Any]] = {
        name: {"name": name, "value": value} for name, value in _VARIABLES.items()
    }
    own = {
        each.name: each.model_dump(mode="json", by_alias=True, exclude_none=True)
        for each in resource.spec.engine.env
    }
    if "VLLM_API_KEY" in own:
        found["OPENAI_API_KEY"] = {**own["VLLM_API_KEY"], "name": "OPENAI_API_KEY"}
    if claim_and_path(model_uri) is not None:
        found["HF_HUB_OFFLINE"] = {"name": "HF_HUB_OFFLINE", "value": "1"}
        return list(found.values())
    if hub_endpoint:
        found["HF_ENDPOINT"] = {"name": "HF_ENDPOINT", "value": hub_endpoint}
    token = resource.spec.model.token_secret_ref
    if token is not None:
        reference = {"name": token.name, "key": token.key, "optional": True}
        found["HF_TOKEN"] = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}
    for name in ("HF_ENDPOINT", "HF_TOKEN", *_PROXIES, *map(str.lower, _PROXIES)):
        if name in own:
            found[name] = own[name]
    if any(name.upper() in _PROXIES for name in found):  # the hub's way is not the engines' way
        kept = [own[name].get("value", "") for name in ("NO_PROXY", "no_proxy") if name in own]
        around = ",".join([*filter(None, kept), *direct])
        found |= {name: {"name": name, "value": around} for name in ("NO_PROXY", "no_proxy")}
    return list(found.values())
