"""A checkpoint in a folder of this machine: read as far as its headers, never further."""

from pathlib import Path

from shipfitter.core.model import TensorHeader
from shipfitter.errors import ModelNotFoundError, ModelUnreadableError
from shipfitter.hub.checkpoint import (
    CONFIG_FILE,
    INDEX_FILE,
    LENGTH_PREFIX_BYTES,
    Checkpoint,
    header_bytes,
    parse_header,
    parse_json_object,
    weight_files,
)


def read_checkpoint(path: str | Path, *, name: str | None = None) -> Checkpoint:
    """The config and tensor headers of a model folder; `name` is the folder's unless given.

    Raises ModelNotFoundError.
    """
    folder = Path(path)
    config = parse_json_object(
        _content(folder, folder / CONFIG_FILE), where=str(folder / CONFIG_FILE)
    )
    index = None
    if (folder / INDEX_FILE).is_file():
        index = parse_json_object(
            _content(folder, folder / INDEX_FILE), where=str(folder / INDEX_FILE)
        )
    files = weight_files([entry.name for entry in folder.iterdir() if entry.is_file()], index)
    tensors: list[TensorHeader] = []
    stored_bytes = 0
    for file in files:
        if Path(file).name != file or not (folder / file).is_file():
            raise ModelUnreadableError(
                f"{folder}: {INDEX_FILE} names {file!r}, which is not in the folder; copy the "
                "checkpoint again, all its files"
            )
        if not file.endswith(".safetensors"):
            stored_bytes += (folder / file).stat().st_size
            continue
        found, found_bytes = _read_header(folder / file)
        tensors += found
        stored_bytes += found_bytes
    return Checkpoint(
        name=name or folder.resolve().name,
        config=config,
        tensors=tuple(tensors),
        stored_bytes=stored_bytes or None,
        files=files,
    )


def _content(folder: Path, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        way = "name the folder that holds config.json and the weights"
        if isinstance(error, PermissionError):
            way = "let everybody read the model's files"
        raise ModelNotFoundError(
            f"{folder}: {file.name} cannot be read ({error.strerror}); {way}"
        ) from error


def _read_header(file: Path) -> tuple[tuple[TensorHeader, ...], int]:
    try:
        with file.open("rb") as opened:
            length = header_bytes(opened.read(LENGTH_PREFIX_BYTES), where=str(file))
            return parse_header(opened.read(length), where=str(file))
    except OSError as error:
        raise ModelNotFoundError(
            f"{file}: the file cannot be read ({error.strerror}); let everybody read it"
        ) from error
