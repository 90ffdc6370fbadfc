"""Repositories of a hub, through `huggingface_hub`: a commit, a config and headers by ranges.

Nothing is kept on disk, no answer is read further than asked for, and all of it ends in time.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from huggingface_hub import HfApi, constants, get_session, hf_hub_url, hf_raise_for_status
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # lazy module

from shipfitter.core.model import TensorHeader
from shipfitter.core.model_uri import ModelUri, parse_model_uri
from shipfitter.errors import HubUnavailableError, InvalidSpecError, ModelUnreadableError
from shipfitter.hub.checkpoint import (
    CONFIG_FILE,
    INDEX_FILE,
    LENGTH_PREFIX_BYTES,
    MAX_CONFIG_BYTES,
    MAX_INDEX_BYTES,
    Checkpoint,
    header_bytes,
    parse_header,
    parse_json_object,
    weight_files,
)
from shipfitter.hub.refusals import refusals_explained

# Source: huggingface_hub 2.4 hf_api.py parse_safetensors_file_metadata: 97 % of the headers on the
# hub are shorter, so one request each is enough.
FIRST_READ_BYTES = 100_000
SHARDS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """How one checkpoint is reached, and until when."""

    uri: ModelUri
    endpoint: str
    token: str | None
    deadline: float
    commit: str = ""

    def remaining_seconds(self) -> float:
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise HubUnavailableError(
                f"{self.uri}: {self.endpoint} answered too slowly; it is asked again by itself"
            )
        return remaining


def fetch(
    uri: str,
    *,
    revision: str | None,
    endpoint: str | None,
    token: str | None,
    timeout_seconds: float,
) -> Checkpoint:
    """See `shipfitter.hub.fetch_checkpoint`."""
    parsed = parse_model_uri(uri)
    if not parsed.is_hub:
        raise InvalidSpecError(
            (
                f"spec.model.uri: {parsed} lies on a claim, which only a pod can read; name a "
                "repository, or write the model's facts into spec.model.facts",
            )
        )
    parsed = ModelUri(repository=parsed.repository, revision=revision or parsed.revision)
    access = _Access(
        uri=parsed,
        endpoint=(endpoint or constants.ENDPOINT).rstrip("/"),
        token=token,
        deadline=time.monotonic() + timeout_seconds,
    )
    with refusals_explained(parsed, access.endpoint):
        return _fetch(access)


def _fetch(access: _Access) -> Checkpoint:
    info = HfApi(endpoint=access.endpoint).model_info(
        access.uri.repository,
        revision=access.uri.revision,
        timeout=access.remaining_seconds(),
        files_metadata=True,
        token=access.token,
    )
    if not info.sha:
        raise HubUnavailableError(
            f"{access.uri}: {access.endpoint} names no commit, so it is no hub; check HF_ENDPOINT"
        )
    access = _Access(
        uri=access.uri,
        endpoint=access.endpoint,
        token=access.token,
        deadline=access.deadline,
        commit=info.sha,
    )
    sizes = {entry.rfilename: entry.size or 0 for entry in info.siblings or ()}
    config = parse_json_object(
        _read(access, CONFIG_FILE, limit_bytes=MAX_CONFIG_BYTES),
        where=f"{access.uri}: {CONFIG_FILE}",
    )
    index = None
    if INDEX_FILE in sizes:
        index = parse_json_object(
            _read(access, INDEX_FILE, limit_bytes=MAX_INDEX_BYTES),
            where=f"{access.uri}: {INDEX_FILE}",
        )
    files = weight_files(sizes, index)
    missing = [file for file in files if file not in sizes]
    if missing:
        raise ModelUnreadableError(
            f"{access.uri}: the repository has no {missing[0]}, which its {INDEX_FILE} names; "
            "upload all its files, or write the model's facts into spec.model.facts"
        )
    with_headers = [file for file in files if file.endswith(".safetensors")]
    tensors: list[TensorHeader] = []
    stored_bytes = sum(sizes.get(file, 0) for file in files if file not in with_headers)
    with ThreadPoolExecutor(SHARDS_AT_ONCE, "hub") as pool:
        for found, found_bytes in pool.map(lambda file: _read_header(access, file), with_headers):
            tensors += found
            stored_bytes += found_bytes
    return Checkpoint(
        name=access.uri.repository,
        config=config,
        tensors=tuple(tensors),
        stored_bytes=stored_bytes or None,
        revision=access.commit,
        files=files,
    )


def _read_header(access: _Access, file: str) -> tuple[tuple[TensorHeader, ...], int]:
    where = f"{access.uri}: {file}"
    start = _read(access, file, first=0, length_bytes=FIRST_READ_BYTES)
    length = header_bytes(start, where=where)
    header = start[LENGTH_PREFIX_BYTES : LENGTH_PREFIX_BYTES + length]
    if len(header) < length:
        at = LENGTH_PREFIX_BYTES + len(header)
        header += _read(access, file, first=at, length_bytes=length - len(header))
    if len(header) < length:
        raise ModelUnreadableError(
            f"{where}: the file ends inside its header; upload it again, or write the model's "
            "facts into spec.model.facts"
        )
    return parse_header(header, where=where)


def _read(
    access: _Access,
    file: str,
    *,
    first: int | None = None,
    length_bytes: int = 0,
    limit_bytes: int = 0,
) -> bytes:
    """A range of a file, or the whole of it up to a limit; a longer answer is cut off, not kept."""
    url = hf_hub_url(access.uri.repository, file, revision=access.commit, endpoint=access.endpoint)
    headers = build_hf_headers(token=access.token)
    headers["Accept-Encoding"] = "identity"
    skip_bytes = 0
    if first is not None:
        headers["Range"] = f"bytes={first}-{first + length_bytes - 1}"
    content = bytearray()
    timeout = access.remaining_seconds()
    with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
        if response.is_error:
            response.read()
        hf_raise_for_status(response)
        if first is not None and response.status_code != 206:
            skip_bytes = first  # a mirror without ranges sends the file from its start
        wanted = skip_bytes + (length_bytes or limit_bytes + 1)
        for chunk in response.iter_raw():
            content += chunk
            access.remaining_seconds()
            if len(content) >= wanted:
                break
    if limit_bytes and len(content) > limit_bytes:
        raise ModelUnreadableError(
            f"{access.uri}: {file} is longer than {limit_bytes} bytes, which no model's is; write "
            "the model's facts into spec.model.facts"
        )
    return bytes(content[skip_bytes:wanted])
