"""The operator's process: the only package that imports `kopf`."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop; the exit code is 0 then, and 1 after a loss nobody asked for."""
    from shipfitter.operator.process import run  # noqa: PLC0415  # kopf takes a second to import

    return run(argv)
