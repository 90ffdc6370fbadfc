"""Calibration: how far predicted cache memory was from what engines then really had."""

from typing import Annotated, Literal

from pydantic import Field

from shipfitter.api.base import (
    MAX_INTEGER,
    ApiModel,
    Count,
    Line,
    Metadata,
    SignedBytes,
    Timestamp,
    Word,
)


class CalibrationSpec(ApiModel):
    """The key: a correction is learnt and used only among equals."""

    gpu_product: Word
    """As gpu-feature-discovery spells it: NVIDIA-L40S."""
    engine_minor: Annotated[str, Field(max_length=16)]
    """Major and minor version of the engine: 0.33."""
    architecture: Word
    """The model's class: LlamaForCausalLM."""
    weight_format: Word
    """How the weights are stored: bfloat16, fp8, awq."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=1024)]
    image: Line | None = None
    """Only for an engine image the operator does not know: such images learn for themselves."""
    arguments_hash: Annotated[str, Field(max_length=64)] | None = None
    """Only where extra arguments change the engine's memory."""


class CalibrationStatus(ApiModel):
    """The running estimate."""

    residual_bytes: SignedBytes = 0
    """Observed less predicted cache memory on one GPU; added to the next prediction."""
    residual: Word | None = None
    """The same for a person."""
    spread_bytes: Annotated[int, Field(ge=0, le=MAX_INTEGER)] = 0
    """How far the observations lie apart; narrows the interval of the next prediction."""
    observations: Count = 0
    last_observed_at: Timestamp | None = None
    last_variant: Line | None = None
    """The variant whose engine was observed last: each counts once for each plan."""


class Calibration(ApiModel):
    """The learnt difference between predicted and observed memory for one key.

    Deleting one is always safe: the next prediction is only less certain.
    """

    api_version: Literal["shipfitter.dev/v1alpha1"] = "shipfitter.dev/v1alpha1"
    kind: Literal["Calibration"] = "Calibration"
    metadata: Metadata
    spec: CalibrationSpec
    status: CalibrationStatus = CalibrationStatus()
