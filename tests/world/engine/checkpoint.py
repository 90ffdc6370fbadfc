"""The model's config.json and tensors: from a hub, a folder, or a JSON file the environment names.

ENGINE_STUB_MODEL names a file {"config": {…}, "stored_bytes": …}; with it no hub is asked.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

READ_SECONDS = 20.0


class ModelError(OSError):
    """What transformers says when it cannot have the config."""


@dataclass(frozen=True)
class Checkpoint:
    """The config and (name, dtype, shape) of every tensor, or only the bytes of all together."""

    config: dict[str, Any]
    tensors: list[tuple[str, str, list[int]]]
    stored_bytes: int


Read = Callable[[str, int, int], bytes]  # file, first byte, length; length 0: the whole file


def read_checkpoint(model: str, revision: str | None, token: str | None) -> Checkpoint:
    """The checkpoint the engine is asked to serve."""
    if named := os.environ.get("ENGINE_STUB_MODEL"):
        facts = json.loads(Path(named).read_text("utf-8"))
        return Checkpoint(facts["config"], facts.get("tensors", []), facts.get("stored_bytes", 0))
    if Path(model).is_dir():
        return _read_all(_folder_reader(Path(model)))
    return _from_hub(model, revision or "main", token)


def _folder_reader(folder: Path) -> Read:
    def read(file: str, first: int, length: int) -> bytes:
        with (folder / file).open("rb") as opened:
            opened.seek(first)
            return opened.read(length or -1)

    return read


def _from_hub(model: str, revision: str, token: str | None) -> Checkpoint:
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    cached = _cache_file(model)
    headers = {"User-Agent": "world.engine"}
    if token := token or os.environ.get("HF_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"

    def read(file: str, first: int, length: int) -> bytes:
        url = f"{endpoint}/{model}/resolve/{revision}/{file}"
        request = urllib.request.Request(url, headers=dict(headers))
        if length:
            request.add_header("Range", f"bytes={first}-{first + length - 1}")
        with urllib.request.urlopen(request, timeout=READ_SECONDS) as answer:
            content: bytes = answer.read(length or -1)
        return content

    try:
        checkpoint = _read_all(read)
    except urllib.error.HTTPError as error:
        with error:
            if error.code < 500 and error.code != 429:
                raise ModelError(_refusal(model, revision, endpoint, error)) from None
        return _from_cache(cached, endpoint)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return _from_cache(cached, endpoint)
    if cached is not None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text(json.dumps(asdict(checkpoint)), "utf-8")
    return checkpoint


def _cache_file(model: str) -> Path | None:
    """Where the real client would keep the files: a claim mounted there survives a hub outage."""
    home = os.environ.get("HF_HOME")
    if not home:
        return None
    return Path(home) / "hub" / f"models--{model.replace('/', '--')}" / "engine-stub.json"


def _from_cache(cached: Path | None, endpoint: str) -> Checkpoint:
    if cached is None or not cached.is_file():
        raise ModelError(
            f"We couldn't connect to '{endpoint}' to load the files, and couldn't find them in the "
            "cached files.\nCheck your internet connection or see how to run the library in "
            "offline mode at 'https://huggingface.co/docs/transformers/installation#offline-mode'."
        )
    kept = json.loads(cached.read_text("utf-8"))
    return Checkpoint(kept["config"], kept["tensors"], kept["stored_bytes"])


def _refusal(model: str, revision: str, endpoint: str, error: urllib.error.HTTPError) -> str:
    code = error.headers.get("X-Error-Code")
    if code == "GatedRepo":
        return (
            "You are trying to access a gated repo.\nMake sure to have access to it at "
            f"https://huggingface.co/{model}.\n{error.code} Client Error.\n\nCannot access gated "
            f"repo for url {error.url}.\nAccess to model {model} is restricted. You must have "
            "access to it and be authenticated to access it. Please log in."
        )
    if code == "RevisionNotFound":
        return (
            f"{revision} is not a valid git identifier (branch name, tag name or commit id) that "
            f"exists for this model name. Check the model page at "
            f"'https://huggingface.co/{model}' for available revisions."
        )
    if code == "EntryNotFound":
        return (
            f"{model} does not appear to have a file named config.json. Checkout "
            f"'https://huggingface.co/{model}/tree/{revision}' for available files."
        )
    return (
        f"{model} is not a local folder and is not a valid model identifier listed on "
        f"'{endpoint}/models'\nIf this is a private repository, make sure to pass a token having "
        "permission to this repo either by logging in with `hf auth login` or by passing "
        "`token=<your_token>`"
    )


def _read_all(read: Read) -> Checkpoint:
    config = json.loads(read("config.json", 0, 0))
    tensors: list[tuple[str, str, list[int]]] = []
    stored_bytes = 0
    for file in _weight_files(read):
        try:
            length = int.from_bytes(read(file, 0, 8), "little")
        except (urllib.error.HTTPError, FileNotFoundError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code != 404:
                    raise
            break  # no weights there: loading says so
        for name, entry in json.loads(read(file, 8, length)).items():
            if name != "__metadata__":
                tensors.append((name, entry["dtype"], entry["shape"]))
                stored_bytes += entry["data_offsets"][1] - entry["data_offsets"][0]
    return Checkpoint(config, tensors, stored_bytes)


def _weight_files(read: Read) -> list[str]:
    try:
        index = json.loads(read("model.safetensors.index.json", 0, 0))
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 404:
                raise
        return ["model.safetensors"]
    except FileNotFoundError:
        return ["model.safetensors"]
    return sorted(set(index["weight_map"].values()))
