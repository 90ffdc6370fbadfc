"""Delays that double: none, the first, twice it, … up to thirty times it.

A kubelet begins with 10 s and ends at 5 min. Source: Kubernetes 1.36, pkg/kubelet/kubelet.go.
"""

LONGEST = 30  # times the first delay
FORGIVEN_AFTER = 60  # times the first delay: a run of 10 min begins anew


class BackOff:
    """The delay before the next attempt.

    >>> back_off = BackOff(1.0)
    >>> [back_off.next(ran_seconds=0) for _ in range(8)]
    [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    >>> back_off.next(ran_seconds=61)
    0.0
    """

    def __init__(self, first_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._next_seconds = 0.0

    def next(self, ran_seconds: float) -> float:
        """How long to wait, given how long the last attempt held."""
        first_seconds = self._first_seconds
        seconds = 0.0 if ran_seconds > FORGIVEN_AFTER * first_seconds else self._next_seconds
        self._next_seconds = min(seconds * 2 or first_seconds, LONGEST * first_seconds)
        return seconds
