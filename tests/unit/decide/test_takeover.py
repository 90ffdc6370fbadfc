"""Who is scaled to what while variants take over from others, one look at a time."""

import pytest

from builders_decide import serving
from shipfitter.decide import LiveWorkload
from shipfitter.decide.takeover import takeover


def moves(wanted, live, ready, *, waiting=None, yields=None, most=None):
    """The targets: `live` replicas and `ready` pods by variant; `waiting` pods beside them."""
    workloads = tuple(
        LiveWorkload(name=name, body={"spec": {"replicas": count}}) for name, count in live.items()
    )
    pods = tuple(
        serving(name, "node", number=number, ready=is_ready)
        for counts, is_ready in ((ready, True), (waiting or {}, False))
        for name, count in counts.items()
        for number in range(count)
    )
    found = takeover(wanted, workloads, pods, yields=yields or {}, most=most or wanted)
    return dict(found.replicas), [w.name for w in found.finished]


CASES = {  # wanted; replicas that are asked for; pods that serve; more; what is asked for then
    "a first plan asks for all at once": ({"a": 2, "b": 1}, {}, {}, {}, {"a": 2, "b": 1}),
    "more replicas are asked for at once": (
        {"a": 2, "b": 3}, {"a": 2, "b": 1}, {"a": 2, "b": 1}, {}, {"a": 2, "b": 3},
    ),
    "fewer replicas go at once": (
        {"a": 2}, {"a": 2, "b": 1}, {"a": 2, "b": 1}, {}, {"a": 2, "b": 0},
    ),
    "fewer than start go at once too": (
        {"a": 1}, {"a": 3}, {}, {"waiting": {"a": 3}}, {"a": 1},
    ),
    "one that serves stays while those that are wanted start": (
        {"a": 2}, {"a": 2, "b": 1}, {"a": 1, "b": 1}, {"waiting": {"a": 1}}, {"a": 2, "b": 1},
    ),
    "two new variants begin with one pod more than replicas": (
        {"a": 2, "b": 1}, {"old": 3}, {"old": 3}, {}, {"a": 1, "b": 0, "old": 3},
    ),
    "an old one goes for each that serves": (
        {"a": 2, "b": 1}, {"a": 1, "old": 3}, {"a": 1, "old": 3}, {}, {"a": 1, "b": 0, "old": 2},
    ),
    "and the next begins": (
        {"a": 2, "b": 1}, {"a": 1, "old": 2}, {"a": 1, "old": 2}, {}, {"a": 2, "b": 0, "old": 2},
    ),
    "two old variants give way to two new ones, the one that serves less first": (
        {"a": 1, "b": 1}, {"a": 1, "x": 1, "y": 1}, {"a": 1, "x": 1}, {},
        {"a": 1, "b": 0, "x": 1, "y": 0},
    ),
    "one that runs moves between wanted ones: the new one first": (
        {"a": 3}, {"a": 2, "b": 1}, {"a": 2, "b": 1}, {}, {"a": 3, "b": 1},
    ),
    "and only then the other goes": (
        {"a": 3}, {"a": 3, "b": 1}, {"a": 3, "b": 1}, {}, {"a": 3, "b": 0},
    ),
    "one that waits moves at once": (
        {"a": 2, "b": 1}, {"a": 3}, {"a": 2}, {"waiting": {"a": 1}}, {"a": 2, "b": 1},
    ),
    "with no GPU to spare one old goes first, of those on the same nodes": (
        {"a": 2}, {"a": 0, "x": 1, "y": 1}, {"x": 1, "y": 1}, {"yields": {"a": {"x"}}},
        {"a": 1, "x": 0, "y": 1},
    ),
    "a quota bounds what is asked for": ({"a": 3}, {}, {}, {"most": {"a": 2}}, {"a": 2}),
    "but takes nothing away": ({"a": 3}, {"a": 3}, {"a": 3}, {"most": {"a": 1}}, {"a": 3}),
    "none at all": ({"a": 0}, {"a": 2, "b": 1}, {"a": 2, "b": 1}, {}, {"a": 0, "b": 0}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_who_is_scaled_to_what(case):
    wanted, live, ready, more, want = CASES[case]
    assert moves(wanted, live, ready, **more)[0] == want


def test_an_old_variant_is_finished_when_its_last_pod_is_gone():
    wanted = {"a": 1}
    assert moves(wanted, {"a": 1, "b": 0}, {"a": 1})[1] == ["b"]
    assert moves(wanted, {"a": 1, "b": 0}, {"a": 1, "b": 1})[1] == []
