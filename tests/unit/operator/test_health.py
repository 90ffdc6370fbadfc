"""What probes read, and what logs look like."""

import json
import logging
import sys
import urllib.error
import urllib.request

import pytest

from shipfitter.operator.health import HealthServer
from shipfitter.operator.logs import JsonFormatter


@pytest.fixture
def state():
    return {"healthy": "", "ready": ""}


@pytest.fixture
def read(state):
    server = HealthServer(
        "127.0.0.1", 0, healthy=lambda: state["healthy"], ready=lambda: state["ready"]
    )
    server.start()

    def page(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    yield page
    server.stop()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz?verbose"])
def test_all_is_well(read, path):
    assert read(path) == (200, "ok\n")


def test_a_hung_watch_fails_liveness_alone(state, read):
    state["healthy"] = "watches hang: nodes"
    assert read("/healthz") == (503, "watches hang: nodes\n")
    assert read("/readyz")[0] == 200


def test_what_is_missing_is_said(state, read):
    state["ready"] = "the lease is not held"
    assert read("/readyz") == (503, "the lease is not held\n")
    assert read("/healthz")[0] == 200


def test_other_pages_are_named(read):
    assert read("/") == (404, "no such page; there are /healthz and /readyz\n")


def record(message, *args, error=None):
    info = (type(error), error, None) if error else None
    return logging.LogRecord("shipfitter.x", logging.WARNING, "f.py", 1, message, args, info)


def test_a_json_line_holds_what_collectors_look_for():
    line = json.loads(JsonFormatter().format(record("%s: changed", "team/llama")))
    assert line["message"] == "team/llama: changed"
    assert (line["level"], line["logger"]) == ("warning", "shipfitter.x")
    assert line["time"].startswith("20")


def test_a_traceback_stays_in_its_line():
    try:
        raise ValueError("oops")
    except ValueError:
        made = logging.LogRecord("x", logging.ERROR, "f.py", 1, "bad", (), sys.exc_info())
    text = JsonFormatter().format(made)
    assert "\n" not in text
    assert "ValueError: oops" in json.loads(text)["exception"]
