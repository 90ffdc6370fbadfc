"""The work queue on a clock of our own."""

import random
import threading

import pytest

from shipfitter.cluster.queue import Key, WorkQueue

LLAMA, QWEN = Key("default", "llama"), Key("default", "qwen")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    return WorkQueue(clock=clock, chance=random.Random(1), resync_seconds=600.0)


def take_all(queue):
    taken = []
    while (key := queue.take()) is not None:
        taken.append(key)
    return taken


def test_a_key_added_often_is_handed_out_once(queue):
    for _ in range(5):
        queue.add(LLAMA)
    queue.add(QWEN)
    assert take_all(queue) == [LLAMA, QWEN]


def test_a_key_in_work_is_handed_out_again_only_when_done(queue, clock):
    queue.add(LLAMA)
    assert queue.take() == LLAMA
    queue.add(LLAMA)
    assert queue.take() is None
    queue.done(LLAMA)
    assert queue.take() == LLAMA
    queue.done(LLAMA)
    assert queue.take() is None


def test_a_later_wish_does_not_move_an_earlier_one(queue, clock):
    queue.add(LLAMA, after_seconds=5)
    queue.add(LLAMA, after_seconds=60)
    assert queue.take() is None
    clock.pass_(5)
    assert take_all(queue) == [LLAMA]
    queue.done(LLAMA)
    clock.pass_(60)
    assert queue.take() is None


def test_an_earlier_wish_moves_a_later_one(queue):
    queue.add(LLAMA, after_seconds=60)
    queue.add(LLAMA)
    assert take_all(queue) == [LLAMA]


def test_a_delayed_wish_while_in_work_is_kept(queue, clock):
    queue.add(LLAMA)
    queue.take()
    queue.add(LLAMA, after_seconds=10)
    queue.done(LLAMA, again_after_seconds=300)
    clock.pass_(9)
    assert queue.take() is None
    clock.pass_(1)
    assert queue.take() == LLAMA


def test_every_key_comes_round_in_ten_minutes_give_or_take(queue, clock):
    for number in range(50):
        queue.add(Key("default", f"m{number}"))
    for key in take_all(queue):
        queue.done(key)
    clock.pass_(0.8 * 600 - 1)
    assert queue.take() is None
    clock.pass_(0.2 * 600)
    early = len(take_all(queue))
    assert 10 < early < 40, "the round is spread by chance"
    clock.pass_(0.2 * 600 + 2)
    assert early + len(take_all(queue)) == 50


def test_failures_wait_longer_and_longer_up_to_five_minutes(queue, clock):
    waits = []
    queue.add(LLAMA)
    for _ in range(14):
        assert queue.take() == LLAMA
        waits.append(queue.failed(LLAMA))
        clock.pass_(waits[-1])
    assert [0.75 * 2**n <= wait <= 2**n for n, wait in enumerate(waits[:8])] == [True] * 8
    assert all(0.75 * 300 <= wait <= 300 for wait in waits[9:])


def test_success_forgets_failures(queue, clock):
    for _ in range(6):
        queue.add(LLAMA)
        queue.take()
        queue.failed(LLAMA)
    queue.add(LLAMA)
    queue.take()
    queue.done(LLAMA)
    queue.add(LLAMA)
    queue.take()
    assert queue.failed(LLAMA) <= 1.0


def test_a_wait_is_never_shorter_than_the_server_asked(queue):
    queue.add(LLAMA)
    queue.take()
    assert queue.failed(LLAMA, retry_after_seconds=42.0) == 42.0


def test_what_somebody_must_mend_waits_a_minute_at_once(queue):
    queue.add(LLAMA)
    queue.take()
    assert 45.0 <= queue.failed(LLAMA, slowly=True) <= 60.0


def test_a_change_cuts_a_back_off_short(queue):
    queue.add(LLAMA)
    queue.take()
    queue.failed(LLAMA, slowly=True)
    queue.add(LLAMA)
    assert queue.take() == LLAMA


def test_a_forgotten_key_has_no_round_and_no_retry(queue, clock):
    queue.add(LLAMA)
    queue.take()
    queue.forget(LLAMA)
    clock.pass_(10_000)
    assert queue.take() is None


def test_what_was_asked_for_while_it_was_forgotten_counts(queue):
    queue.add(LLAMA)
    queue.take()
    queue.add(LLAMA)
    queue.forget(LLAMA)
    assert queue.take() == LLAMA


def test_stopping_frees_whoever_waits():
    queue = WorkQueue()
    got = []
    waiter = threading.Thread(target=lambda: got.append(queue.take(wait_seconds=60)))
    waiter.start()
    queue.stop()
    waiter.join(timeout=5)
    assert got == [None]
    queue.add(LLAMA)
    assert queue.take() is None


def test_an_added_key_wakes_a_waiting_worker():
    queue = WorkQueue()
    got = []
    waiter = threading.Thread(target=lambda: got.append(queue.take(wait_seconds=60)))
    waiter.start()
    queue.add(LLAMA)
    waiter.join(timeout=5)
    assert got == [LLAMA]


def test_four_workers_never_share_a_key():
    queue = WorkQueue()
    keys = [Key("default", f"m{number}") for number in range(7)]
    busy, overlaps, done = set(), [], []
    lock = threading.Lock()

    def work():
        while (key := queue.take(wait_seconds=0.2)) is not None:
            with lock:
                if key in busy:
                    overlaps.append(key)
                busy.add(key)
            for other in keys[:3]:
                if len(done) < 500:
                    queue.add(other)
            with lock:
                busy.discard(key)
                done.append(key)
            queue.done(key)

    for key in keys:
        queue.add(key)
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert overlaps == []
    assert set(done) == set(keys)
