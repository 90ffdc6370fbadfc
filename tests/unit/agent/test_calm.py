"""What keeps the agent calm: foreign memory, back-off, probes and health."""

from dataclasses import replace

import pytest

from shipfitter.agent.api import BackOff
from shipfitter.agent.devices import GpuReading, Memory
from shipfitter.agent.foreign import ForeignMemory
from shipfitter.agent.host import Host
from shipfitter.agent.readiness import Readiness
from shipfitter.units import MIB


def idle(used_mib, **changes):
    memory = Memory(kind="dedicated", total_bytes=46_068 * MIB, used_bytes=used_mib * MIB)
    return replace(GpuReading(uuid="GPU-1", memory=memory), **changes)


def busy(used_mib):
    return idle(used_mib, has_processes=True)


@pytest.mark.parametrize(
    ("looks", "want_mib"),
    [
        pytest.param([idle(1)], 0, id="the driver's own bookkeeping is nobody's"),
        pytest.param([idle(300)], 512, id="the first look is believed, rounded up"),
        pytest.param([idle(0), idle(300)], 0, id="a rise waits for a second look"),
        pytest.param([idle(0), idle(300), idle(310)], 512, id="a rise that stays counts"),
        pytest.param(
            [idle(0), idle(5_000), idle(15_000), idle(30_000)],
            0,
            id="an engine that loads is no stranger",
        ),
        pytest.param([idle(500), idle(200)], 512, id="a small fall is breathing"),
        pytest.param([idle(2_000), idle(200)], 256, id="a large fall counts at once"),
        pytest.param([idle(2_000), idle(1)], 0, id="gone altogether"),
        pytest.param([idle(300), busy(40_000)], 512, id="at work: as last seen while idle"),
        pytest.param([busy(40_000)], 0, id="at work from the start: nothing is known"),
        pytest.param([idle(40_000)], 0, id="most of a GPU is an engine, processes seen or not"),
        pytest.param([idle(300), idle(0, is_lost=True)], 512, id="lost: as last seen"),
    ],
)
def test_foreign_memory(looks, want_mib):
    foreign = ForeignMemory()
    for look in looks:
        got = foreign.settle(look)
    assert got == want_mib * MIB


def test_foreign_memory_goes_on_from_what_was_published():
    assert ForeignMemory({"GPU-1": 512 * MIB}).settle(busy(40_000)) == 512 * MIB


def test_back_off_grows_to_its_last_pause_and_starts_again():
    pauses = BackOff(5, 60)
    got = [pauses.pause_seconds() for _ in range(6)]
    for pause, nominal in zip(got, (5, 10, 20, 40, 60, 60), strict=True):
        assert 0.8 * nominal <= pause <= nominal
    assert pauses.pause_seconds(wish_seconds=120) == 120
    pauses.reset()
    assert pauses.pause_seconds() <= 5


class Clock:
    def __init__(self):
        self.now_seconds = 1000.0

    def __call__(self):
        return self.now_seconds


def test_ready_for_two_minutes_after_a_pass():
    clock = Clock()
    readiness = Readiness(clock)
    assert readiness.answer("/readyz") == (503, "no pass over the driver yet")
    readiness.passed()
    assert readiness.answer("/readyz") == (200, "ok")
    readiness.failed("the driver is gone")
    clock.now_seconds += 119
    assert readiness.answer("/readyz") == (200, "ok")
    clock.now_seconds += 1
    assert readiness.answer("/readyz") == (503, "the driver is gone")
    assert readiness.answer("/healthz") == (200, "ok")
    clock.now_seconds += 180
    assert readiness.answer("/healthz") == (503, "the loop hangs")
    readiness.round()
    assert readiness.answer("/healthz") == (200, "ok")


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({}, ("Healthy", ""), id="well"),
        pytest.param({"is_lost": True, "xid": 79}, ("Unhealthy", "GpuIsLost"), id="lost first"),
        pytest.param({"compute_mode": 2}, ("Unhealthy", "ComputeModeProhibited"), id="closed"),
        pytest.param(
            {"compute_mode": 3}, ("Healthy", "ComputeModeExclusiveProcess"), id="for one process"
        ),
        pytest.param({"row_remap_failed": True}, ("Unhealthy", "RowRemapFailure"), id="worn out"),
        pytest.param({"fabric_unfinished": True}, ("Unhealthy", "FabricNotReady"), id="no fabric"),
        pytest.param({"xid": 79}, ("Unhealthy", "Xid79"), id="an XID of the hardware"),
    ],
)
def test_health(change, want):
    assert idle(0, **change).health == want


def test_the_hosts_files(tmp_path):
    assert (Host(tmp_path).memory_bytes(), Host(tmp_path).boot_id()) == (None, "")
    node = tmp_path / "sys/bus/pci/devices/0000:17:00.0/numa_node"
    node.parent.mkdir(parents=True)
    node.write_text("1\n")
    assert Host(tmp_path).numa_node("00000000:17:00.0") == 1
    node.write_text("-1\n")
    assert Host(tmp_path).numa_node("00000000:17:00.0") is None
    assert Host(tmp_path).numa_node("") is None
