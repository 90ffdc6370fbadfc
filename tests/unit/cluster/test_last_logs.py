"""Logs of engines that ended: read only where last words lack the cause, and once for each end."""

import pytest

from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.last_logs import LastLogs
from shipfitter.cluster.trim import OwnPod
from unit.cluster.fake_api import eventually

FRONT = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)
CAUSE = "(EngineCore pid=7) ValueError: No available memory for the cache blocks.\n"


class Logs:
    """A client that has one log, or none."""

    def __init__(self, text="", *, status=0, ran_before=True):
        self.text_of_log, self.status, self.ran_before = text, status, ran_before
        self.asked = []

    def text(self, path, *, query):
        self.asked.append((path, query["container"], query["previous"]))
        if query["previous"] == "true" and not self.ran_before:
            raise ApiError(400, "previous terminated container not found")
        if self.status:
            raise ApiError(self.status, "no")
        return self.text_of_log


def ended(message=FRONT, **changes):
    values = {"phase": "Running", "ready": False, "exit_code": 1, "container": "engine", **changes}
    return OwnPod(
        namespace="team", name="p", owner="m", variant="v", termination_message=message, **values
    )


def heard(client, pod):
    """What is known of the pod at first, and once its log was read."""
    woken = []
    logs = LastLogs(client, on_news=woken.append)
    first = logs.told(pod)
    if client.asked or first is not pod:
        eventually(lambda: woken)
    return first, logs.told(pod), woken


@pytest.mark.parametrize("ran_before", [True, False], ids=["restarted", "not yet restarted"])
def test_the_cause_is_found_in_the_log(ran_before):
    client = Logs(CAUSE + FRONT, ran_before=ran_before)
    first, then, woken = heard(client, ended())
    assert first.exit_code is None, "nobody decides by too few words while it is read"
    assert "No available memory" in then.termination_message
    assert then.exit_code == 1
    assert client.asked[-1] == (
        "/api/v1/namespaces/team/pods/p/log", "engine", "true" if ran_before else "false",
    )  # fmt: skip
    assert woken == [("team", "m")]


@pytest.mark.parametrize(
    "client",
    [Logs(FRONT), Logs(status=403), Logs(status=0)],
    ids=["it is not there either", "it may not be read", "it is empty"],
)
def test_without_a_cause_the_last_words_stand(client):
    pod = ended()
    assert heard(client, pod)[1] == pod
    assert len(client.asked) == 1, "it is asked for once"


@pytest.mark.parametrize(
    "pod",
    [ended(CAUSE), ended(ready=True), ended(exit_code=None), ended("Segmentation fault")],
    ids=["the words have the cause", "it serves", "it never ended", "another death"],
)
def test_others_are_not_asked(pod):
    client = Logs(CAUSE)
    assert heard(client, pod)[0] is pod
    assert not client.asked
