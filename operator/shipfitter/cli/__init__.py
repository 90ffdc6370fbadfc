"""The command line of people, operator and agent; a command imports only what it needs."""

import gc
import sys


def main(argv: list[str] | None = None) -> None:
    """Run a command. Those that start in pods skip the command-line library."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["operator"]:
        from shipfitter.operator import main as operator_main

        sys.exit(operator_main(arguments[1:]))
    if arguments[:1] == ["agent"]:
        from shipfitter.agent import main as agent_main

        sys.exit(agent_main(arguments[1:]))
    if arguments[:1] == ["inspect"]:
        from shipfitter.cli.inspect_model import main as inspect_main

        sys.exit(inspect_main(arguments[1:]))
    gc.disable()  # a command has ended before a collection pays
    from shipfitter.cli.app import app

    app(arguments)
