"""What engines taught, as objects: no observation is lost, and the oldest make room."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from shipfitter.cluster import calibrations
from shipfitter.cluster.calibrations import Calibrations
from shipfitter.core.calibrate import CalibrationKey, Learning
from shipfitter.decide.world import CalibrationUpdate
from shipfitter.units import GIB

KEY = CalibrationKey(
    gpu_product="NVIDIA-L4",
    engine_minor="0.33",
    architecture="LlamaForCausalLM",
    weight_format="bfloat16",
    tensor_parallel_size=1,
)


def taught(key=KEY):
    """By a decision that knew of no earlier observation."""
    return CalibrationUpdate(
        key=key,
        learning=Learning(residual_bytes=-GIB, observations=1),
        variant="llama-1",
        difference_bytes=-GIB,
        total_bytes=22 * GIB,
    )


def test_decisions_made_at_once_lose_no_observation(api, client):
    known = Calibrations(client)
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(lambda _: known.write(taught()), range(4)))
    (stored,) = stored_in(api)
    assert stored["status"]["observations"] == 4
    assert stored["status"]["residualBytes"] == -GIB
    assert stored["status"]["residual"] == "-1.00 GiB"
    assert Calibrations(client).learnt() == known.learnt(), "another operator reads the same"


def test_the_oldest_make_room(api, client, monkeypatch):
    monkeypatch.setattr(calibrations, "MOST_OBJECTS", 2)
    known = Calibrations(client)
    for second, tensor in enumerate((1, 2, 4)):
        at = f"2026-01-01T00:00:0{second}Z"
        monkeypatch.setattr(calibrations, "_now", lambda at=at: at)
        known.write(taught(replace(KEY, tensor_parallel_size=tensor)))
    left = {each["spec"]["tensorParallelSize"] for each in stored_in(api)}
    assert left == {2, 4}


def stored_in(api):
    return api.list("calibrations", "", {})["items"]
