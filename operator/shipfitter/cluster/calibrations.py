"""Calibrations in the cluster: read now and then, written when an engine taught something."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import CALIBRATION
from shipfitter.core.calibrate import CalibrationKey, Learning, fold
from shipfitter.decide.world import CalibrationUpdate
from shipfitter.units import GIB

FRESH_SECONDS = 30.0
MOST_OBJECTS = 500  # the oldest go
MANAGER = "shipfitter"

log = logging.getLogger(__name__)


class Calibrations:
    """What was learnt, by key; losing all of it costs certainty and nothing else."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # one observation at a time
        self._read_at: float | None = None
        self._learnt: dict[CalibrationKey, Learning] = {}
        self._last: dict[str, tuple[str, str]] = {}  # name → when it last learnt, uid

    def learnt(self) -> Mapping[CalibrationKey, Learning]:
        """Everything learnt so far, at most half a minute old."""
        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= FRESH_SECONDS:
                try:
                    self._learnt, self._last = self._list()
                except ApiError as error:
                    log.warning("calibrations are not read: %s", error.message)
                self._read_at = now
            return dict(self._learnt)

    def write(self, update: CalibrationUpdate) -> None:
        """The object of the key says what was learnt; a refusal costs one observation.

        Folded here, one after the other: two decisions made at once know nothing of each other.
        """
        with self._writing:
            with self._lock:
                before = self._learnt.get(update.key, Learning())
            learning = fold(before, update.difference_bytes, update.total_bytes)
            try:
                answer = self._client.apply(_manifest(update, learning), manager=MANAGER)
            except ApiError as error:
                log.warning("calibration %s is not written: %s", update.key.name, error.message)
                return
            with self._lock:
                self._learnt[update.key] = learning
                self._last[update.key.name] = (_now(), str(answer["metadata"]["uid"]))
                oldest = sorted(self._last.items(), key=lambda each: each[1])
                surplus = oldest[: max(0, len(oldest) - MOST_OBJECTS)]
        log.info(
            "calibration %s: %+d MiB after %d observations",
            update.key.name,
            learning.residual_bytes // 1024**2,
            learning.observations,
        )
        for name, (_, uid) in surplus:
            self._client.delete(CALIBRATION, "", name, uid=uid)
            with self._lock:
                self._last.pop(name, None)

    def _list(self) -> tuple[dict[CalibrationKey, Learning], dict[str, tuple[str, str]]]:
        learnt: dict[CalibrationKey, Learning] = {}
        last: dict[str, tuple[str, str]] = {}
        for page in self._client.pages(CALIBRATION):
            for item in page.get("items") or ():
                learnt[_key(item.get("spec") or {})] = _learning(item.get("status") or {})
                metadata, status = item["metadata"], item.get("status") or {}
                last[metadata["name"]] = (status.get("lastObservedAt", ""), metadata["uid"])
        return learnt, last


def _key(spec: Mapping[str, Any]) -> CalibrationKey:
    return CalibrationKey(
        gpu_product=str(spec.get("gpuProduct", "")),
        engine_minor=str(spec.get("engineMinor", "")),
        architecture=str(spec.get("architecture", "")),
        weight_format=str(spec.get("weightFormat", "")),
        tensor_parallel_size=int(spec.get("tensorParallelSize", 1)),
        image=str(spec.get("image", "")),
        arguments_hash=str(spec.get("argumentsHash", "")),
    )


def _learning(status: Mapping[str, Any]) -> Learning:
    return Learning(
        residual_bytes=int(status.get("residualBytes", 0)),
        spread_bytes=int(status.get("spreadBytes", 0)),
        observations=int(status.get("observations", 0)),
    )


def _manifest(update: CalibrationUpdate, learning: Learning) -> dict[str, Any]:
    key = update.key
    spec: dict[str, Any] = {
        "gpuProduct": key.gpu_product,
        "engineMinor": key.engine_minor,
        "architecture": key.architecture,
        "weightFormat": key.weight_format,
        "tensorParallelSize": key.tensor_parallel_size,
    }
    if key.image:
        spec["image"] = key.image
    if key.arguments_hash:
        spec["argumentsHash"] = key.arguments_hash
    return {
        "apiVersion": CALIBRATION.api_version,
        "kind": CALIBRATION.kind,
        "metadata": {"name": key.name},
        "spec": spec,
        "status": {
            "residualBytes": learning.residual_bytes,
            "residual": f"{learning.residual_bytes / GIB:+.2f} GiB",
            "spreadBytes": learning.spread_bytes,
            "observations": learning.observations,
            "lastObservedAt": _now(),
            "lastVariant": update.variant,
        },
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
