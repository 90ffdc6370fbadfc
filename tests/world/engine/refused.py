"""The engine gives up."""


class Refused(Exception):  # noqa: N818  # the engine's decision, not a fault of the stub
    """In a phase of its start; `error` is the last line of its traceback."""

    def __init__(self, phase: str, error: str) -> None:
        self.phase = phase
        super().__init__(error)
