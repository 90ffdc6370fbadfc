"""Jobs that read models: started once, understood, asked again by themselves, and then gone."""

import pytest

from shipfitter.cluster.inspection import Inspections
from shipfitter.cluster.inspection_state import answer, own_job, waiting_for
from shipfitter.cluster.kept_facts import KeptFacts, key_of
from shipfitter.cluster.model_facts import ModelCache
from shipfitter.core.inspected import packed
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.errors import (
    HubUnavailableError,
    InspectingError,
    InspectionFailedError,
    InvalidSpecError,
    ModelHiddenError,
    ModelNotFoundError,
    ModelUnreadableError,
    TokenRefusedError,
    TokenRequiredError,
    UnknownArchitectureError,
)
from unit.cluster.builders import model_deployment
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError
from unit.cluster.test_model_facts import CONFIG, Clock

GATED, SHELVED = "hf://org/model", "pvc://shelf/llama"
TOKEN = {"uri": GATED, "tokenSecretRef": {"name": "hf", "key": "token"}}
MESSAGE = packed(CONFIG, name="org/model", stored_bytes=2_000_000, revision="c0ffee")
FACTS = model_facts(CONFIG, name="org/model", checkpoint_bytes=2_000_000, revision="c0ffee")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def inspections(api, client, clock):
    """As in the operator: Jobs are known as a watch shows them."""

    def live():
        return [own_job(each) for (plural, *_), each in api.objects.items() if plural == "jobs"]

    return Inspections(client=client, image="shipfitter:1", jobs=live, clock=clock)


def jobs(api):
    return [each for (plural, *_), each in api.objects.items() if plural == "jobs"]


def claim(api, phase="Bound"):
    metadata = {"name": "shelf", "namespace": "team"}
    api.put("persistentvolumeclaims", {"metadata": metadata, "status": {"phase": phase}})


def pod_of(job, **state):
    """The Job's pod with its container in this state."""
    status = {"containerStatuses": [{"name": "inspect", "image": "shipfitter:1", "state": state}]}
    labels = {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}
    metadata = {"name": f"{job['metadata']['name']}-x", "namespace": "team", "labels": labels}
    return {"metadata": metadata, "status": status}


def ends(api, code, message="", **more):
    """The only Job's pod has ended."""
    (job,) = jobs(api)
    ended = {"exitCode": code, "message": message, **more}
    api.put("pods", pod_of(job, terminated=ended))


def look(inspections, body=None, uri=GATED, revision=""):
    body = body or model_deployment(model=TOKEN)
    return inspections.look(key_of(body), body, uri, revision)


def test_a_job_is_started_once_and_said_to_read(api, inspections):
    seen = [look(inspections) for _ in range(3)]
    (job,) = jobs(api)
    assert {type(each.found) for each in seen} == {InspectingError}
    assert job["metadata"]["name"] in str(seen[0].found)
    assert job["metadata"]["ownerReferences"][0]["uid"] == "uid-llama"
    assert len(api.sent("PATCH", "jobs")) == 1


def test_its_last_words_are_the_facts(api, inspections):
    look(inspections)
    ends(api, 0, MESSAGE)
    assert look(inspections).found == FACTS


def test_a_new_operator_finds_the_job_by_its_name(api, client, inspections):
    look(inspections)
    ends(api, 0, MESSAGE)
    restarted = Inspections(client=client, image="shipfitter:1")
    assert look(restarted).found == FACTS
    assert len(api.sent("PATCH", "jobs")) == 1


@pytest.mark.parametrize(
    ("ended", "want", "words"),
    [
        pytest.param((10, "no Secret hf"), TokenRequiredError, "no Secret hf", id="no token"),
        pytest.param((11, "no access"), TokenRefusedError, "no access", id="no access"),
        pytest.param((20, "no folder"), ModelNotFoundError, "no folder", id="a wrong path"),
        pytest.param((21, "half"), ModelUnreadableError, "half", id="a corrupt index"),
        pytest.param((22, "Strange"), UnknownArchitectureError, "Strange", id="a new class"),
        pytest.param((30, "503"), HubUnavailableError, "503", id="weather"),
        pytest.param((124, "out of time"), InspectionFailedError, "out of time", id="too slow"),
        pytest.param((12, "no memory"), InspectionFailedError, "no memory", id="it saw it coming"),
        pytest.param((2, "usage"), InvalidSpecError, "usage", id="an argument that is none"),
        pytest.param((1, "Traceback"), InspectionFailedError, "Traceback", id="a mistake of ours"),
        pytest.param((137, ""), InspectionFailedError, "was killed", id="a node that went down"),
        pytest.param((5, ""), InspectionFailedError, "exit code 5", id="no words"),
        pytest.param((0, "hello"), InspectionFailedError, "no word", id="words that are none"),
        pytest.param((0, MESSAGE[:99]), InspectionFailedError, "makes no sense", id="cut off"),
    ],
)
def test_errors_are_told_apart_by_exit_code(api, inspections, ended, want, words):
    look(inspections)
    ends(api, *ended)
    found = look(inspections).found
    assert type(found) is want
    assert words in str(found)


def test_want_of_memory_is_named(api, inspections):
    look(inspections)
    ends(api, 137, reason="OOMKilled")
    assert "not enough memory" in str(look(inspections).found)


def job_that(condition="", reason="", seconds=600):
    conditions = [{"type": condition, "status": "True", "reason": reason}] if condition else []
    return {
        "metadata": {"name": "llama-inspect-1", "uid": "u"},
        "spec": {"activeDeadlineSeconds": seconds},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("job", "trouble", "want"),
    [
        pytest.param(job_that(), "", None, id="it may still speak"),
        pytest.param(job_that("Suspended"), "", None, id="it rests"),
        pytest.param(
            job_that("Failed", "DeadlineExceeded"), "no node takes its pod", "no node", id="no node"
        ),
        pytest.param(
            job_that("Failed", "DeadlineExceeded"), "", "within 600 s", id="no pod, or no end"
        ),
        pytest.param(job_that("Failed", "BackoffLimitExceeded"), "", "lost", id="its pod is lost"),
        pytest.param(job_that("Complete"), "", "lost", id="its pod was removed"),
    ],
)
def test_a_job_without_last_words(job, trouble, want):
    found = answer(GATED, job, [], trouble)
    assert found is None if want is None else want in str(found)


@pytest.mark.parametrize(
    ("state", "want"),
    [
        pytest.param({"running": {}}, "", id="it runs"),
        pytest.param({"waiting": {"reason": "ContainerCreating"}}, "", id="it begins"),
        pytest.param({"waiting": {"reason": "ErrImagePull"}}, "imagePullSecrets", id="no image"),
        pytest.param(
            {"waiting": {"reason": "CreateContainerConfigError", "message": "no such key"}},
            "no such key",
            id="it cannot be started",
        ),
    ],
)
def test_what_keeps_a_pod_waiting_is_told(api, inspections, state, want):
    look(inspections)
    (job,) = jobs(api)
    pod = pod_of(job, **state)
    api.put("pods", pod)
    assert want in waiting_for([pod])
    assert bool(waiting_for([pod])) is bool(want)
    assert want in str(look(inspections).found)


def test_a_pod_that_no_node_takes_is_told():
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    pod = {"metadata": {"name": "p"}, "status": {"conditions": conditions}}
    assert waiting_for([pod]) == "no node takes its pod (kubectl describe pod p)"


def test_a_failure_stands_until_it_is_asked_again_with_growing_waits(api, inspections, clock):
    look(inspections)
    ends(api, 11, "no access")
    waits = []
    for _ in range(8):
        failed = look(inspections)
        assert str(failed.found) == "no access"
        waits.append(failed.again_after_seconds)
        old = jobs(api)
        clock.now += failed.again_after_seconds - 0.1
        look(inspections)
        assert jobs(api) == old, "not before its time"
        clock.now += 0.2
        assert str(look(inspections).found) == "no access"
        assert jobs(api) == []
        assert str(look(inspections).found) == "no access", "also while the next Job reads"
        assert len(jobs(api)) == 1
        ends(api, 11, "no access")
    assert waits[0] <= 15.0
    assert 450.0 <= waits[-1] <= 600.0


def test_a_mended_secret_is_found_by_the_next_job(api, inspections, clock):
    look(inspections)
    ends(api, 11, "no access")
    clock.now += look(inspections).again_after_seconds + 1
    for _ in range(2):
        look(inspections)
    ends(api, 0, MESSAGE)
    assert look(inspections).found == FACTS


def test_a_failed_job_that_somebody_removed_is_not_made_again_before_its_time(
    api, inspections, clock
):
    look(inspections)
    ends(api, 20, "no folder")
    wait = look(inspections).again_after_seconds
    (job,) = jobs(api)
    api.remove("jobs", job["metadata"]["name"], "team")
    assert str(look(inspections).found) == "no folder"
    assert jobs(api) == []
    clock.now += wait + 1
    look(inspections)
    assert len(jobs(api)) == 1


def test_a_job_that_is_refused_is_told_and_tried_again(api, inspections, clock):
    api.refuse("PATCH", "jobs", RefusedError(403, "Forbidden", "policy says no"))
    refused = look(inspections)
    assert "policy says no" in str(refused.found)
    assert isinstance(refused.found, InspectionFailedError)
    clock.now += refused.again_after_seconds + 1
    look(inspections)
    assert len(jobs(api)) == 1


def test_a_job_of_an_earlier_deployment_of_the_name_is_not_listened_to(api, inspections):
    look(inspections)
    ends(api, 0, MESSAGE)
    (old,) = jobs(api)
    anew = model_deployment(model=TOKEN)
    anew["metadata"]["uid"] = "another"
    assert isinstance(look(inspections, anew).found, InspectingError)
    assert isinstance(look(inspections, anew).found, InspectingError)
    (job,) = jobs(api)
    assert job["metadata"]["uid"] != old["metadata"]["uid"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"uri": "hf://org/other"}, id="another model"),
        pytest.param({"revision": "v2"}, id="another revision"),
        pytest.param({"tokenSecretRef": {"name": "hf-2"}}, id="another Secret"),
    ],
)
def test_a_changed_spec_starts_another_job(api, inspections, change):
    look(inspections)
    model = {**TOKEN, **change}
    seen = look(inspections, model_deployment(model=model), model["uri"], model.get("revision", ""))
    assert isinstance(seen.found, InspectingError)
    assert len(jobs(api)) == 2


def test_a_spec_that_does_not_parse_starts_nothing(api, inspections):
    body = model_deployment(model=TOKEN, replicas="many")
    assert isinstance(look(inspections, body).found, InvalidSpecError)
    assert jobs(api) == []


@pytest.mark.parametrize(
    ("phase", "want"),
    [
        pytest.param(None, "has no claim 'shelf'", id="no such claim"),
        pytest.param("Pending", "not bound", id="a claim that a pod of ours would bind somewhere"),
    ],
)
def test_a_claim_without_a_model_starts_nothing(api, inspections, phase, want):
    if phase:
        claim(api, phase)
    seen = look(inspections, model_deployment(model={"uri": SHELVED}), SHELVED)
    assert want in str(seen.found)
    assert isinstance(seen.found, ModelNotFoundError)
    assert jobs(api) == []


class Door:
    """A hub that says the same to everybody."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __call__(self, uri, *, may_be_known, **_):
        self.asked.append((uri, may_be_known))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def passes(cache, body, until):
    """Passes of the operator over one deployment until this is so; what was found then."""
    found = []

    def done():
        resolved = cache.resolve(key_of(body), body)
        cache.keep(key_of(body), body, resolved)
        found.append(resolved)
        return not resolved.pending and until(resolved)

    eventually(done)
    return found[-1]


OPEN = {"uri": GATED}


@pytest.mark.parametrize(
    ("said", "model"),
    [
        pytest.param(TokenRequiredError("gated"), TOKEN, id="gated"),
        pytest.param(ModelHiddenError("hidden"), TOKEN, id="perhaps private"),
    ],
)
def test_what_the_hub_hides_from_us_is_read_by_a_job(api, client, inspections, said, model):
    cache = ModelCache(KeptFacts(client), Door(said), inspections=inspections)
    found = passes(cache, model_deployment(model=model), lambda resolved: True)
    assert isinstance(found.models[GATED], InspectingError)
    assert len(jobs(api)) == 1


@pytest.mark.parametrize(
    ("said", "model"),
    [
        pytest.param(TokenRequiredError("gated"), OPEN, id="gated, and no Secret is named"),
        pytest.param(ModelNotFoundError("no v2"), TOKEN, id="surely not there"),
        pytest.param(HubUnavailableError("down"), TOKEN, id="the hub is down"),
        pytest.param(FACTS, TOKEN, id="open to everybody, a Secret for nothing"),
    ],
)
def test_for_everything_else_no_pod_is_made(api, client, inspections, said, model):
    cache = ModelCache(KeptFacts(client), Door(said), inspections=inspections)
    found = passes(cache, model_deployment(model=model), lambda resolved: True)
    assert found.models == {GATED: said}
    assert jobs(api) == []


def test_with_a_secret_what_comes_with_us_does_not_do(client, inspections):
    door = Door(TokenRequiredError("gated"))
    cache = ModelCache(KeptFacts(client), door, inspections=inspections)
    passes(cache, model_deployment(model=TOKEN), lambda resolved: True)
    passes(cache, model_deployment("other"), lambda resolved: True)
    assert door.asked == [(GATED, False), (GATED, True)]


def test_a_new_operator_understands_the_job_while_the_hub_is_down(api, client, inspections):
    body = model_deployment(model=TOKEN)
    door = Door(TokenRequiredError("gated"))
    passes(
        ModelCache(KeptFacts(client), door, inspections=inspections), body, lambda resolved: True
    )
    ends(api, 0, MESSAGE)
    door.answer = HubUnavailableError("down")
    restarted = ModelCache(KeptFacts(client), door, inspections=inspections)
    assert passes(restarted, body, lambda resolved: True).models == {GATED: FACTS}
    assert jobs(api) == []


def test_containers_that_others_added_are_not_listened_to(api, inspections):
    look(inspections)
    (job,) = jobs(api)
    pod = pod_of(job, running={})
    ended = {"terminated": {"exitCode": 1, "message": "proxy"}}
    pod["status"]["containerStatuses"].insert(0, {"name": "istio-proxy", "state": ended})
    api.put("pods", pod)
    assert isinstance(look(inspections).found, InspectingError)


def test_facts_are_kept_and_then_the_job_goes(api, client, inspections):
    claim(api)
    cache = ModelCache(KeptFacts(client), Door(FACTS), inspections=inspections)
    body = model_deployment(model={"uri": SHELVED})
    passes(cache, body, lambda resolved: True)
    ends(api, 0, MESSAGE)
    api.refuse("PATCH", "configmaps", RefusedError(500, "InternalError"))
    assert passes(cache, body, lambda resolved: True).models == {SHELVED: FACTS}
    assert len(jobs(api)) == 1, "its words are the only copy yet"
    passes(cache, body, lambda resolved: True)
    assert jobs(api) == []
    restarted = ModelCache(KeptFacts(client), Door(FACTS), inspections=inspections)
    assert passes(restarted, body, lambda resolved: True).models == {SHELVED: FACTS}
    assert jobs(api) == [], "nothing is read again"


def test_a_job_for_what_the_spec_no_longer_names_goes(api, client, inspections):
    claim(api)
    cache = ModelCache(KeptFacts(client), Door(FACTS), inspections=inspections)
    passes(cache, model_deployment(model={"uri": SHELVED}), lambda resolved: True)
    assert len(jobs(api)) == 1
    passes(
        cache,
        model_deployment(),
        lambda resolved: isinstance(resolved.models[GATED], ModelFacts),
    )
    assert jobs(api) == []


def test_nothing_asks_for_a_secret(api, client, inspections):
    """The token is named to the Job; its value is never ours to see."""
    claim(api)
    model = {**TOKEN, "alternatives": [{"uri": SHELVED}]}
    cache = ModelCache(
        KeptFacts(client), Door(TokenRequiredError("gated")), inspections=inspections
    )
    passes(cache, model_deployment(model=model), lambda resolved: len(resolved.models) == 2)
    assert len(jobs(api)) == 2
    assert not [path for _, path, *_ in api.requests if "secrets" in path]
