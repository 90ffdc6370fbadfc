"""A Calibration object applied to an estimate: its correction, where its key is this engine's."""

from dataclasses import replace
from pathlib import Path

import yaml

from shipfitter.api.calibration import Calibration
from shipfitter.api.parsing import parse_resource
from shipfitter.core.engines import EngineSettings, Gpu, Learnt
from shipfitter.core.estimate import Estimate, sum_of
from shipfitter.core.model import ModelFacts
from shipfitter.errors import InvalidSpecError


def read_calibration(path: Path) -> Calibration:
    """The Calibration in a YAML file. Raises InvalidSpecError."""
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSpecError((f"--calibration {path}: {error.strerror}",)) from error
    except yaml.YAMLError as error:
        raise InvalidSpecError((f"--calibration {path}: not YAML: {error}",)) from error
    if not isinstance(body, dict) or body.get("kind") != "Calibration":
        raise InvalidSpecError(
            (
                f"--calibration {path}: holds no Calibration; write it with "
                "kubectl get calibration NAME -o yaml",
            )
        )
    return parse_resource(Calibration, body, unknown="ignore")


def calibrated(
    settings: EngineSettings, model: ModelFacts, gpu: Gpu, calibration: Calibration
) -> tuple[EngineSettings, str]:
    """The settings with what was learnt of engines like this one, and a sentence about it.

    One of another key changes nothing.
    """
    learnt, key = calibration.status, calibration.spec
    name = calibration.metadata.name
    theirs = (key.gpu_product, key.engine_minor, key.architecture, key.tensor_parallel_size)
    ours = (
        gpu.product,
        f"{settings.version.major}.{settings.version.minor}",
        model.architecture,
        settings.layout.tensor_parallel_size,
    )
    if theirs != ours or key.weight_format != weight_format(model):
        wanted = " ".join(map(str, (*theirs, key.weight_format)))
        return settings, f"calibration {name} is for {wanted}; left out"
    if learnt.observations == 0:
        return settings, f"calibration {name} has no observations yet; left out"
    corrected = replace(
        settings,
        extra_bytes=sum_of((settings.extra_bytes, Estimate.exactly(-learnt.residual_bytes))),
        calibrated=Learnt(learnt.spread_bytes, learnt.observations),
    )
    return corrected, f"corrected by calibration {name}, {learnt.observations} observations"


def weight_format(model: ModelFacts) -> str:
    """How the weights are stored, as a Calibration's key says it: bfloat16, fp8, awq."""
    return model.quantization.method if model.quantization else model.dtype
