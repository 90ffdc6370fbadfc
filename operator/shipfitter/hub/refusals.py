"""What the hub refuses, in a user's words: what is wrong and the way out."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2  # huggingface_hub's own HTTP client: its errors pass through unwrapped
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from shipfitter.core.model_uri import ModelUri
from shipfitter.errors import (
    HubUnavailableError,
    ModelHiddenError,
    ModelNotFoundError,
    TokenRefusedError,
    TokenRequiredError,
    UserError,
)

_TOKEN_WAYS = (
    "name a Secret that holds a token with access in spec.model.tokenSecretRef, or write the "
    "model's facts into spec.model.facts"
)


@contextmanager
def refusals_explained(uri: ModelUri, endpoint: str) -> Iterator[None]:
    """Turn the client's errors into ours; anything else passes."""
    try:
        yield
    except UserError:
        raise
    except OfflineModeIsEnabled as error:
        raise HubUnavailableError(
            f"{uri}: HF_HUB_OFFLINE forbids asking {endpoint}; unset it, or write the model's "
            "facts into spec.model.facts"
        ) from error
    except HfHubHTTPError as error:
        raise _by_kind(error, uri, endpoint) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _unavailable(uri, endpoint, _what_happened(error)) from error
    except ValueError as error:  # an answer that is no JSON: a captive portal, a wrong endpoint
        raise _unavailable(uri, endpoint, "the answer is not a hub's; check HF_ENDPOINT") from error


def _by_kind(error: HfHubHTTPError, uri: ModelUri, endpoint: str) -> UserError:
    match error:
        case GatedRepoError():  # before its parent class RepositoryNotFoundError
            return _gated(uri, has_token=_sent_token(error))
        case DisabledRepoError():
            return ModelNotFoundError(f"{uri}: {endpoint} has disabled it; name another model")
        case RevisionNotFoundError():
            return ModelNotFoundError(
                f"{uri}: the repository has no revision {uri.revision or 'main'!r}; name a branch, "
                "a tag or a commit of it in spec.model.revision"
            )
        case RemoteEntryNotFoundError():
            file = str(error.response.url.path).rpartition("/")[2]
            return ModelNotFoundError(
                f"{uri}: the repository has no {file}; name one with config.json and safetensors "
                "files, or write the model's facts into spec.model.facts"
            )
    return _by_status(error, uri, endpoint)


def _by_status(error: HfHubHTTPError, uri: ModelUri, endpoint: str) -> UserError:
    status = error.response.status_code
    if isinstance(error, RepositoryNotFoundError) or status == 404:
        return ModelHiddenError(
            f"{uri}: {endpoint} knows no such repository, or it is private; check the spelling of "
            f"spec.model.uri; for a private one {_TOKEN_WAYS}"
        )
    if status in (401, 403):
        if _sent_token(error):
            return TokenRefusedError(
                f"{uri}: {endpoint} does not accept the token ({status}); {_TOKEN_WAYS}"
            )
        return TokenRequiredError(f"{uri}: {endpoint} wants a token ({status}); {_TOKEN_WAYS}")
    return _unavailable(uri, endpoint, f"it answers {status}")


def _sent_token(error: HfHubHTTPError) -> bool:
    return "authorization" in error.response.request.headers


def _gated(uri: ModelUri, *, has_token: bool) -> TokenRequiredError:
    if has_token:
        return TokenRefusedError(
            f"{uri}: the model is gated and the token has no access to it; ask for access on the "
            f"model's page, or {_TOKEN_WAYS}"
        )
    return TokenRequiredError(f"{uri}: the model is gated; {_TOKEN_WAYS}")


def _what_happened(error: Exception) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time"
    return f"it cannot be reached ({type(error).__name__})"


def _unavailable(uri: ModelUri, endpoint: str, what: str) -> HubUnavailableError:
    return HubUnavailableError(
        f"{uri}: {endpoint} is not available now: {what}; it is asked again by itself, or write "
        "the model's facts into spec.model.facts"
    )
