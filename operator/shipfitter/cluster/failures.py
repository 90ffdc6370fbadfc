"""What the API server refuses, classified once: may the same request succeed later, or not."""

from collections.abc import Mapping
from typing import Any

UNREACHABLE = 0  # no answer at all: refused, reset, timed out


class ApiError(Exception):
    """A request the API server did not carry out."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        causes: tuple[str, ...] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)

    @property
    def retryable(self) -> bool:
        """True where waiting may be enough; False where somebody must change something.

        401 counts as weather: credentials are read again before the next try.
        """
        if self.namespace_terminating:
            return False
        return self.status in (UNREACHABLE, 401, 408, 409, 410, 429) or self.status >= 500

    @property
    def namespace_terminating(self) -> bool:
        """True where the namespace is on its way out and takes nothing new."""
        return "NamespaceTerminating" in self.causes

    @property
    def not_found(self) -> bool:
        """True where the object (or its whole kind) does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """True where the object is not the one the request meant."""
        return self.status == 409

    @property
    def gone(self) -> bool:
        """True where the resource version is too old to continue from."""
        return self.status == 410


class ClusterUnreachableError(Exception):
    """Nothing says how to reach a cluster, or what says it cannot be read."""


def api_error(status: int, body: Any, headers: Mapping[str, str] | None = None) -> ApiError:
    """The refusal as the server's Status object (or its bare text) tells it."""
    retry_after = _seconds((headers or {}).get("Retry-After"))
    if not isinstance(body, Mapping):
        return ApiError(status, str(body)[:500], retry_after_seconds=retry_after)
    details = body.get("details") or {}
    if retry_after is None:
        retry_after = _seconds(details.get("retryAfterSeconds"))
    return ApiError(
        status,
        str(body.get("message") or body.get("reason") or status),
        reason=str(body.get("reason") or ""),
        causes=tuple(str(cause.get("reason") or "") for cause in details.get("causes") or ()),
        retry_after_seconds=retry_after,
    )


def unreachable(error: Exception) -> ApiError:
    """No answer, with the innermost cause: the outer ones only say "connection aborted"."""
    cause: Any = error
    while True:
        inner = getattr(cause, "reason", None)
        if not isinstance(inner, Exception):
            inner = next((each for each in cause.args if isinstance(each, Exception)), None)
        if inner is None:
            break
        cause = inner
    words = " ".join(str(cause).split()) or type(cause).__name__
    return ApiError(UNREACHABLE, f"the API server does not answer: {words}")


def _seconds(value: Any) -> float | None:
    try:
        return float(value) if value is not None else None
    except (TypeError, ValueError):  # an HTTP date: rare, and our own back-off will do
        return None
