"""`python -m world.hub --port 8080`: the published models, for a person or another process."""

import argparse
import signal
import sys

from world.hub.published import published_names, published_repo
from world.hub.server import Hub


def main(arguments: list[str]) -> int:
    """Serve until interrupted; prints where, once it listens."""
    parser = argparse.ArgumentParser(prog="python -m world.hub", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--only", nargs="*", help="ORG/NAME; all published models otherwise")
    parser.add_argument("--gated", nargs="*", default=[], help="ORG/NAME that ask for the token")
    parser.add_argument("--token", default="hf_world", help="the token gated models accept")
    options = parser.parse_args(arguments)
    hub = Hub(host=options.host, port=options.port)
    for name in options.only or published_names():
        gated = name in options.gated
        hub.add(published_repo(name, gated=gated, accepted_tokens=(options.token,)))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"hub: HF_ENDPOINT={hub.endpoint} serves {', '.join(hub.repositories)}", flush=True)
    try:
        hub.serve()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
