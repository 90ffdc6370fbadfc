"""The Lease: one holder, a renewal, a loss, a way back."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from shipfitter.cluster.lease import LeaderLease
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError

NAME = "shipfitter-operator"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def leases(client, clock):
    made = []

    def make(identity, **settings):
        settings = {"period_seconds": 0.02, "clock": clock, **settings}
        made.append(LeaderLease(client, namespace="ops", identity=identity, **settings))
        return made[-1]

    yield make
    for lease in made:
        lease.stop()


def holder(api):
    return api.get("leases", NAME, "ops")["spec"]["holderIdentity"]


def test_a_free_lease_is_taken_and_a_held_one_is_not(api, leases):
    first, second = leases("one"), leases("two")
    assert first.acquire()
    assert first.held
    assert not second.try_acquire()
    assert not second.held
    assert holder(api) == "one"


def test_a_holder_comes_back_at_once_after_a_crash(leases):
    leases("pod-a").acquire()
    assert leases("pod-a").try_acquire()


def test_a_lease_that_is_given_back_is_free_at_once(api, leases):
    first, second = leases("one"), leases("two")
    first.acquire()
    first.release()
    assert holder(api) == ""
    assert not first.held
    assert second.try_acquire()
    assert api.get("leases", NAME, "ops")["spec"]["leaseTransitions"] == 1


def test_a_holder_that_stopped_renewing_is_followed_after_the_duration(clock, leases):
    leases("one").acquire()
    second = leases("two")
    assert not second.try_acquire()
    clock.now += 14.9
    assert not second.try_acquire()
    clock.now += 0.2
    assert second.try_acquire()


def test_a_holder_that_renews_is_not_followed(clock, leases):
    first, second = leases("one"), leases("two")
    first.acquire()
    for _ in range(5):
        assert not second.try_acquire()
        clock.now += 10
        assert first.try_acquire()


@pytest.mark.parametrize(
    ("age_seconds", "want"),
    [
        pytest.param(70, False, id="clocks may disagree by a minute"),
        pytest.param(90, True, id="abandoned long ago: free at first sight"),
    ],
)
def test_an_old_lease_is_judged_by_its_time(api, leases, age_seconds, want):
    leases("one").acquire()
    live = api.get("leases", NAME, "ops")
    renewed = (datetime.now(UTC) - timedelta(seconds=age_seconds)).isoformat()
    api.put("leases", {**live, "spec": {**live["spec"], "renewTime": renewed}})
    assert leases("two").try_acquire() is want


def test_of_two_who_see_it_free_one_gets_it(api, clock, leases):
    leases("dead").acquire()
    one, two = leases("one"), leases("two")
    assert not one.try_acquire()
    assert not two.try_acquire()
    clock.now += 20
    got = [one.try_acquire(), two.try_acquire()]
    assert sorted(got) == [False, True]


def test_a_conflict_is_no_gain(api, leases):
    lease = leases("one")
    lease.acquire()
    other = leases("two")
    api.put("leases", {**api.get("leases", NAME, "ops"), "spec": {"holderIdentity": ""}})
    api.refuse("PUT", "leases", RefusedError(409, "Conflict"))
    assert not other.try_acquire()


def test_while_it_cannot_be_renewed_nothing_may_be_written(api, clock, leases):
    lease, lost = leases("one"), threading.Event()
    lease.acquire()
    lease.keep(lost.set)
    api.refuse("GET", "leases", *[RefusedError(500, "InternalError")] * 1000)
    eventually(lambda: len(api.requests) > 5)
    clock.now += 10
    assert not lease.held
    api._faults.clear()
    eventually(lambda: lease.held)
    assert not lost.is_set()


def test_a_lease_taken_by_another_is_lost_for_good(api, clock, leases):
    lease, lost = leases("one"), threading.Event()
    lease.acquire()
    lease.keep(lost.set)
    live = api.get("leases", NAME, "ops")
    api.put("leases", {**live, "spec": {**live["spec"], "holderIdentity": "two"}})
    assert lost.wait(5)
    assert not lease.held
    lease.release()
    assert holder(api) == "two"


def test_waiting_ends_when_told_to(leases):
    leases("one").acquire()
    second = leases("two")
    result = []
    waiter = threading.Thread(target=lambda: result.append(second.acquire()))
    waiter.start()
    second.stop()
    waiter.join(timeout=5)
    assert result == [False]


def test_rights_that_are_missing_are_waited_for(api, leases):
    api.refuse("POST", "leases", *[RefusedError(403, "Forbidden", "no right")] * 3)
    assert leases("one").acquire()
