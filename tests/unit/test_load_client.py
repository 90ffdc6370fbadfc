"""The program in the load test's pod: the client's figures as last words, whatever happens."""

import http.server
import json
import sys
import threading

import pytest

from shipfitter.load_client import main

RESULT = {
    "num_prompts": 16,
    "completed": 15,
    "duration": 6.15,
    "request_throughput": 2.6,
    "output_throughput": 499.461,
    "mean_ttft_ms": 245.1366,
    "p99_ttft_ms": float("nan"),
    "mean_tpot_ms": 14.139,
}
SAVES = """
import json, sys
place = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
print("sending")
with open(place["--result-dir"] + "/" + place["--result-filename"], "w") as file:
    json.dump(json.loads(sys.argv[1]), file)
"""


def told(tmp_path, *command, seconds=20.0, engines=()):
    """(exit code, message) of the program around a client."""
    file = tmp_path / "message"
    options = [f"--message-file={file}", f"--seconds={seconds}", f"--engines={','.join(engines)}"]
    code = main([*options, "--", *command])
    return code, json.loads(file.read_text())


def client(text, *words):
    return (sys.executable, "-c", text, *words)


@pytest.fixture
def engine():
    """An engine that puts 3 more requests back each time it is asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        asked = 0

        def do_GET(self):
            Handler.asked += 3
            page = (
                "# TYPE vllm:num_preemptions_total counter\n"
                f'vllm:num_preemptions_total{{engine="0",model_name="a b"}} {Handler.asked}.0\n'
                'vllm:num_preemptions_created{engine="0"} 1.7e+09\n'
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_the_figures_are_those_of_the_saved_result(tmp_path):
    code, message = told(tmp_path, *client(SAVES, json.dumps(RESULT)))
    assert code == 0
    assert message == {
        "requests": 16,
        "failed": 1,
        "seconds": 6.15,
        "requestsPerSecond": 2.6,
        "outputTokensPerSecond": 499.46,
        "meanFirstTokenMilliseconds": 245.14,
        "meanTokenMilliseconds": 14.14,
    }


def test_preemptions_are_those_of_the_load(tmp_path, engine):
    gone = "http://127.0.0.1:9"
    _, message = told(tmp_path, *client(SAVES, json.dumps(RESULT)), engines=(engine, gone))
    assert message["preemptions"] == 3, "what cannot be asked is not counted"


@pytest.mark.parametrize(
    ("command", "seconds", "want"),
    [
        pytest.param(client("raise SystemExit('no such flag')"), 20, "no such flag", id="refused"),
        pytest.param(client("import time; time.sleep(60)"), 0.3, "out of time", id="too slow"),
        pytest.param(("no-such-program",), 20, "no-such-program: No such file", id="no client"),
        pytest.param(client(SAVES, '{"completed": 1}'), 20, "exit code 0", id="another format"),
    ],
)
def test_without_figures_it_says_why(tmp_path, command, seconds, want):
    code, message = told(tmp_path, *command, seconds=seconds)
    assert code == 1
    assert want in message["error"]
    assert set(message) == {"error"}


def test_the_last_words_fit_into_a_termination_message(tmp_path):
    _, message = told(tmp_path, *client("print('x' * 10_000); raise SystemExit(3)"))
    assert len(json.dumps(message)) < 4096
