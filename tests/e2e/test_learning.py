"""Engines that differ from what was counted on teach the next plan of their kind, and only that."""

import pytest

from e2e.labs import Lab, open_all
from e2e.stories import A100, AT_ONCE, L4, stays, uids, variant

pytestmark = [pytest.mark.plane, pytest.mark.timeout(600)]

SMALL = "hf://Qwen/Qwen3-0.6B"
GIB = 2**30
MORE = {"overhead_gib": 3.4}  # than any plan counts on: 4 % of the GPU
MUCH_MORE = {"overhead_gib": 9.0}


def alike(name, product=A100, engine=MORE):
    """Without arguments of its own: it learns with all others of its GPU type."""
    return Lab(
        name=name, product=product, engine=engine, uri=SMALL, spec={"engine": {}, "resize": AT_ONCE}
    )


def learnt(stage, product):
    """The calibration of a GPU type, once so many engines were heard."""
    found = [c for c in stage.objects("calibrations") if c["spec"]["gpuProduct"] == product]
    return found[0]["status"] if found else {"observations": 0, "residualBytes": 0}


def observed(stage, *labs):
    """All of them serve and were heard."""
    names = [lab.name for lab in labs]
    stage.eventually(
        lambda: all(stage.ready(name) and stage.status(name).get("observed") for name in names),
        what=f"{', '.join(names)} serve and were asked what they have",
        seconds=180,
    )


def test_three_engines_teach_the_fourth_and_one_odd_run_or_another_type_does_not(stage):
    teachers = [alike(f"teacher-{number}") for number in range(3)]
    other = alike("other", L4, {})
    open_all(stage, (*teachers, other))
    observed(stage, *teachers, other)
    pods = [uids(stage.pods(lab.name)) for lab in teachers]
    stage.eventually(lambda: learnt(stage, A100)["observations"] == 3, what="three were heard")
    errors = [error_of(stage, lab.name) for lab in teachers]
    assert all(error < -3 for error in errors), errors

    pupil = alike("pupil")
    open_all(stage, [pupil])
    observed(stage, pupil)
    assert abs(error_of(stage, "pupil")) <= 2
    planned, before = variant(stage, "pupil"), variant(stage, "teacher-0")
    assert planned["budget"]["kvCacheBytes"] < before["budget"]["kvCacheBytes"] - 2 * GIB

    stage.eventually(lambda: learnt(stage, A100)["observations"] == 4, what="the fourth was heard")
    usual = learnt(stage, A100)["residualBytes"]
    odd = alike("odd", engine=MUCH_MORE)
    open_all(stage, [odd])
    observed(stage, odd)
    stage.eventually(lambda: learnt(stage, A100)["observations"] == 5, what="the odd one was heard")
    assert abs(learnt(stage, A100)["residualBytes"] - usual) < GIB / 2
    assert learnt(stage, L4)["observations"] == 1, "another type was not asked"
    assert abs(learnt(stage, L4)["residualBytes"]) < GIB / 2

    table = stage.plane.kubectl("get", "calibrations").splitlines()
    assert len(table) == 3, table
    assert any(A100 in line and "Qwen3ForCausalLM" in line and " 5 " in line for line in table)

    stage.plane.kubectl("delete", "calibrations", "--all")
    now = [*teachers, pupil, odd, other]
    before = [uids(stage.pods(lab.name)) for lab in now]
    assert stays(lambda: [uids(stage.pods(lab.name)) for lab in now]) == before
    assert [uids(stage.pods(lab.name)) for lab in teachers] == pods, (
        "what runs is not rolled for it"
    )


def error_of(stage, name):
    """In per cent of what was planned."""
    (entry,) = stage.status(name)["observed"]
    return entry["predictionErrorPercent"]
