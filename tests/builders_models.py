"""Model facts for tests: real config.json files by name, and small changes to them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from shipfitter.core.model import ModelFacts, TensorHeader, model_facts

MODELS = Path(__file__).parent / "data" / "models"


@cache
def _file(name: str) -> dict[str, Any]:
    return json.loads((MODELS / f"{name}.json").read_text())


def config_of(name: str, **changes: Any) -> dict[str, Any]:
    """The config.json of a model under tests/data/models, with some keys changed."""
    return {**_file(name)["config"], **changes}


def stored_bytes_of(name: str) -> int | None:
    """Bytes of the model's checkpoint files; None where nobody says."""
    return _file(name)["weights"]["total_bytes"]


@cache
def facts_of(name: str) -> ModelFacts:
    """Facts from the config and the checkpoint's total bytes."""
    return model_facts(config_of(name), name=name, checkpoint_bytes=stored_bytes_of(name))


def facts_from(config: dict[str, Any], **arguments: Any) -> ModelFacts:
    """Facts of a config written out in a test."""
    return model_facts(config, name="a/model", **arguments)


def header(name: str, *shape: int, dtype: str = "BF16") -> TensorHeader:
    """One tensor of a checkpoint."""
    return TensorHeader(name, dtype, shape)
