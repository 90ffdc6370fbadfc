"""A tiny program that plays any container in this emulator's tests; it does what its arguments say.

It serves HTTP where the pod listens: /healthz (200 until `--ill-after`), /ready (503 until the file
of `--ready-file` exists), /env (its variables), /read?PATH (a file), /stop?CODE (exit).
"""

import argparse
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers from the options of the program."""

    options: argparse.Namespace
    began = time.monotonic()

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        answer = getattr(self, "on_" + url.path.strip("/"), None)
        status, text = answer(url.query) if answer else (404, "no such path")
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def on_healthz(self, _: str) -> tuple[int, str]:
        after = self.options.ill_after
        ill = after is not None and time.monotonic() - self.began > after
        return (500, "ill") if ill else (200, "well")

    def on_ready(self, _: str) -> tuple[int, str]:
        path = self.options.ready_file
        return (200, "ready") if path is None or Path(path).exists() else (503, "not yet")

    def on_env(self, _: str) -> tuple[int, str]:
        return 200, json.dumps(dict(os.environ) | {"ARGV": json.dumps(sys.argv[1:])})

    def on_read(self, query: str) -> tuple[int, str]:
        return 200, Path(query).read_text()

    def on_stop(self, query: str) -> tuple[int, str]:
        threading.Timer(0.05, os._exit, (int(query),)).start()
        return 200, "stopping"

    def log_message(self, *_: object) -> None:
        """Quiet."""


def main() -> None:
    """Say, write, crash or serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--say", action="append", default=[], help="lines for the log")
    parser.add_argument("--message", help="last words")
    parser.add_argument("--message-file", default="/dev/termination-log")
    parser.add_argument("--exit", type=int, help="end at once with this code")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--host", default=os.environ.get("POD_LISTEN_ADDRESS", "127.0.0.1"))
    parser.add_argument("--ready-file")
    parser.add_argument("--ill-after", type=float)
    parser.add_argument("--deaf", action="store_true", help="ignore SIGTERM")
    parser.add_argument(
        "--child", action="store_true", help="start a child in a session of its own"
    )
    options = parser.parse_args()
    for line in options.say:
        print(line, flush=True)
    if options.message is not None:
        Path(options.message_file).write_text(options.message)
    if options.child:
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        print(f"child {child.pid}", flush=True)
    if options.exit is not None:
        sys.exit(options.exit)
    ending = signal.SIG_IGN if options.deaf else lambda *_: (print("bye", flush=True), os._exit(0))
    signal.signal(signal.SIGTERM, ending)
    Handler.options = options
    with http.server.ThreadingHTTPServer((options.host, options.port), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
