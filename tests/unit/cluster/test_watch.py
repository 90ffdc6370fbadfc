"""The list-watch against every way a stream can end."""

import random

import pytest

from shipfitter.cluster.backoff import Backoff
from shipfitter.cluster.kinds import GPU_NODE, POD
from shipfitter.cluster.watch import Watch
from unit.cluster.fake_api import eventually
from unit.cluster.fake_objects import RefusedError


def size(raw):
    return raw["status"]["size"]


def gpu_node(name, size_=1, **metadata):
    return {"metadata": {"name": name, **metadata}, "status": {"size": size_}}


def lists(api):
    return sum("watch" not in query for *_, query, _ in api.requests)


def streams(api):
    return sum("watch" in query for *_, query, _ in api.requests)


@pytest.fixture
def watching(client):
    started = []

    def start(kind=GPU_NODE, trim=size, **settings):
        heard = []
        watch = Watch(
            client,
            kind,
            trim,
            on_change=heard.append,
            backoff=Backoff(first_seconds=0.05, most_seconds=0.2, chance=random.Random(1)),
            **{"read_seconds": 5.0, **settings},
        )
        watch.start()
        started.append(watch)
        return watch, heard

    yield start
    for watch in started:
        watch.stop()
        assert not watch.alive


def test_it_lists_then_follows(api, watching):
    api.put("gpunodes", gpu_node("a"))
    watch, heard = watching()
    assert watch.synced.wait(5)
    assert watch.store.items() == {"a": 1}
    api.put("gpunodes", gpu_node("b", 2))
    api.put("gpunodes", gpu_node("a", 3))
    eventually(lambda: watch.store.items() == {"a": 3, "b": 2})
    api.remove("gpunodes", "a")
    eventually(lambda: watch.store.items() == {"b": 2})
    assert [(each.key, each.old, each.new) for each in heard] == [
        ("a", None, 1),
        ("b", None, 2),
        ("a", 1, 3),
        ("a", 3, None),
    ]


def test_what_is_trimmed_away_wakes_nobody(api, watching):
    watch, heard = watching()
    api.put("gpunodes", gpu_node("a"))
    api.put("gpunodes", gpu_node("a", labels={"heartbeat": "1"}))
    api.put("gpunodes", gpu_node("b"))
    eventually(lambda: len(watch.store) == 2)
    assert [each.key for each in heard] == ["a", "b"]


def test_a_closed_stream_goes_on_where_it_was(api, watching):
    watch, _ = watching()
    eventually(lambda: streams(api) == 1)
    api.drop_watches()
    eventually(lambda: streams(api) == 2)
    api.put("gpunodes", gpu_node("a"))
    eventually(lambda: watch.store.items() == {"a": 1})
    assert lists(api) == 1


def test_a_lost_position_means_a_new_list_with_the_differences(api, watching):
    api.put("gpunodes", gpu_node("stays"))
    api.put("gpunodes", gpu_node("goes"))
    watch, heard = watching()
    eventually(lambda: len(heard) == 2)
    api.refuse("GET", "watch=true", *[RefusedError(503, "Unavailable")] * 2)
    api.drop_watches()
    api.remove("gpunodes", "goes")
    api.put("gpunodes", gpu_node("comes"))
    api.forget_history()
    eventually(lambda: set(watch.store.items()) == {"stays", "comes"})
    assert {each.key for each in heard[2:]} == {"goes", "comes"}


def test_an_expiry_inside_the_stream_means_a_new_list(api, watching):
    watch, _ = watching()
    assert watch.synced.wait(5)
    api.send_error("gpunodes", RefusedError(410, "Expired"))
    eventually(lambda: lists(api) == 2)
    api.put("gpunodes", gpu_node("a"))
    eventually(lambda: watch.store.items() == {"a": 1})


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(RefusedError(429, "TooManyRequests", retry_after=0), id="too many requests"),
        pytest.param(RefusedError(500, "InternalError"), id="a server error"),
        pytest.param(RefusedError(403, "Forbidden"), id="rights that are missing for now"),
    ],
)
def test_a_refused_list_is_tried_again(api, watching, refusal):
    api.put("gpunodes", gpu_node("a"))
    api.refuse("GET", "gpunodes", refusal, refusal, refusal)
    watch, _ = watching()
    assert watch.synced.wait(5)
    assert watch.store.items() == {"a": 1}


def test_it_waits_as_long_as_the_server_asks(api, client):
    watch = Watch(client, GPU_NODE, size)
    api.refuse("GET", "gpunodes", RefusedError(429, "TooManyRequests", retry_after=77))
    waits = []
    watch._stopping.wait = lambda seconds: waits.append(seconds) or watch._stopping.set()
    watch._run()
    assert waits == [77.0]


def test_a_silent_stream_is_left(api, watching):
    api.silent = True
    watch, _ = watching(read_seconds=0.3)
    assert watch.synced.wait(5)
    api.put("gpunodes", gpu_node("a"))
    before = watch.last_activity_seconds
    eventually(lambda: streams(api) > 1)
    api.silent = False
    eventually(lambda: watch.store.items() == {"a": 1})
    assert watch.last_activity_seconds > before


def test_bookmarks_move_the_position_and_prove_life(api, watching):
    watch, heard = watching()
    assert watch.synced.wait(5)
    for _ in range(3):
        api.bookmark("gpunodes")
    eventually(lambda: watch._position == str(api.version))
    api.drop_watches()
    api.put("gpunodes", gpu_node("a"))
    eventually(lambda: watch.store.items() == {"a": 1})
    assert lists(api) == 1
    assert len(heard) == 1


def test_a_broken_connection_during_the_list_is_survived(api, watching):
    api.put("gpunodes", gpu_node("a"))
    api.break_off("GET", "gpunodes")
    watch, _ = watching()
    assert watch.synced.wait(5)


def test_only_the_namespace_and_labels_asked_for_are_kept(api, watching):
    ours = {"labels": {"shipfitter.dev/modeldeployment": "llama"}, "namespace": "team"}
    for name, metadata in {
        "ours": ours,
        "foreign": {"namespace": "team"},
        "elsewhere": {**ours, "namespace": "other"},
    }.items():
        api.put("pods", gpu_node(name, **metadata))
    watch, _ = watching(kind=POD, namespace="team", selector="shipfitter.dev/modeldeployment")
    assert watch.synced.wait(5)
    assert set(watch.store.items()) == {"team/ours"}


def test_a_listener_that_fails_does_not_end_the_watch(api, client):
    def fail(change):
        raise RuntimeError("on purpose")

    watch = Watch(client, GPU_NODE, size, on_change=fail)
    watch.start()
    assert watch.synced.wait(5)
    api.put("gpunodes", gpu_node("a"))
    eventually(lambda: watch.store.items() == {"a": 1})
    watch.stop()


def test_an_object_that_cannot_be_read_hides_no_other(api, watching, caplog):
    broken = api.put("gpunodes", {"metadata": {"name": "broken"}})
    api.put("gpunodes", gpu_node("a"))
    watch, _ = watching()
    assert watch.synced.wait(5)
    assert watch.store.items() == {"a": 1}
    assert "broken cannot be read and is left out" in caplog.text
    api.put("gpunodes", {**broken, "status": {"size": 9}})
    eventually(lambda: watch.store.items() == {"a": 1, "broken": 9})


def test_what_a_write_returned_is_not_undone_by_an_older_event(api, client):
    watch = Watch(client, GPU_NODE, size)
    newer = gpu_node("a", 2, resourceVersion="20")
    watch.learn(newer)
    watch._take({"type": "MODIFIED", "object": gpu_node("a", 1, resourceVersion="10")})
    assert watch.store.items() == {"a": 2}
    watch._take({"type": "DELETED", "object": gpu_node("a", 1, resourceVersion="15")})
    assert watch.store.items() == {"a": 2}
    watch._take({"type": "DELETED", "object": gpu_node("a", 2, resourceVersion="30")})
    assert watch.store.items() == {}


def test_an_answer_that_comes_after_the_deletion_brings_nothing_back(client):
    watch = Watch(client, GPU_NODE, size)
    watch._take({"type": "DELETED", "object": gpu_node("a", 1, resourceVersion="15")})
    watch.learn(gpu_node("a", 1, resourceVersion="10"))
    assert watch.store.items() == {}
    watch.learn(gpu_node("a", 1, resourceVersion="20"))
    assert watch.store.items() == {"a": 1}


def test_an_answer_older_than_a_list_that_lacks_it_brings_nothing_back(client):
    watch = Watch(client, GPU_NODE, size)
    watch.store.begin_list()
    watch.store.end_list("30")
    watch.learn(gpu_node("a", 1, resourceVersion="10"))
    assert watch.store.items() == {}


def test_what_is_learnt_while_a_list_is_read_outlives_it(client):
    watch = Watch(client, GPU_NODE, size)
    watch.store.begin_list()
    watch.store.add_listed(gpu_node("a", 1, resourceVersion="10"))
    watch.learn(gpu_node("a", 2, resourceVersion="12"))
    watch.learn(gpu_node("b", 3, resourceVersion="13"))
    watch.store.end_list("11")
    assert watch.store.items() == {"a": 2, "b": 3}


def test_a_kind_that_not_every_cluster_has_is_not_waited_for(api, watching, caplog):
    api.refuse("GET", "gpunodes", RefusedError(404, "the server could not find it"))
    watch, heard = watching(optional=True)
    assert watch.synced.wait(5)
    assert (len(watch.store), heard, watch.alive) == (0, [], True)
    assert not caplog.records, "most clusters are so: no news"


def test_what_we_may_not_read_is_told_once_and_done_without(api, watching, caplog):
    api.refuse("GET", "gpunodes", RefusedError(403, "gpunodes is forbidden"))
    watch, _ = watching(optional=True)
    assert watch.synced.wait(5)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "forbidden" in caplog.text
