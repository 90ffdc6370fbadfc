"""While a Job reads a model: it is said, nothing is decided too early, and nothing is stopped."""

from builders_decide import Settled, condition, mdl, world
from builders_plan import LLAMA_8B, facts, node
from shipfitter.decide import decide
from shipfitter.errors import InspectingError, TokenRequiredError

NODES = (node("a", "L40S", 8),)
READING = InspectingError("hf://org/model: Job llama-inspect-1 reads the model, up to 600 s")
FIRST, SMALLER = f"hf://{LLAMA_8B}", "hf://org/smaller"
BOTH = {"uri": FIRST, "alternatives": [{"uri": SMALLER}]}


def test_it_is_progress_and_no_mistake():
    outcome = decide(mdl(), world(*NODES, models={FIRST: READING}))
    assert condition(outcome, "ModelResolved")["reason"] == "Inspecting"
    ready = condition(outcome, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Inspecting")
    assert "Job llama-inspect-1" in ready["message"]
    assert condition(outcome, "Reconciling")["status"] == "True"
    assert condition(outcome, "Stalled")["status"] == "False"
    assert {notice.type for notice in outcome.notices} == {"Normal"}
    assert not outcome.applies


def test_an_alternative_that_is_still_read_is_waited_for():
    models = {FIRST: facts(LLAMA_8B), SMALLER: READING}
    outcome = decide(mdl(model=BOTH), world(*NODES, models=models))
    assert condition(outcome, "ModelResolved")["reason"] == "Inspecting"
    assert not outcome.applies


def test_an_alternative_that_cannot_be_read_is_left_out():
    models = {FIRST: facts(LLAMA_8B), SMALLER: TokenRequiredError("no access")}
    outcome = decide(mdl(model=BOTH), world(*NODES, models=models))
    told = condition(outcome, "ModelResolved")
    assert told["status"] == "True"
    assert f"{SMALLER} is left out (TokenRequired)" in told["message"]
    assert outcome.applies


def test_what_runs_goes_on_while_another_model_is_read():
    settled = Settled(*NODES)
    outcome = settled.decide(*NODES, models={FIRST: READING})
    assert condition(outcome, "ModelResolved")["reason"] == "Inspecting"
    assert condition(outcome, "Ready")["status"] == "True"
    assert not outcome.applies
    assert not outcome.deletes
