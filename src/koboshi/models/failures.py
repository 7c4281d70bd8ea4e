"""What went wrong at a provider, in plain words, and whether asking again can help."""

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from koboshi.domain.durations import wait_ms
from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.trouble import ModelTrouble
from koboshi.models.endpoint import Endpoint
from koboshi.models.wording import (
    ENDED_EARLY,
    MALFORMED,
    OVERFULL,
    OVERLOADED,
    SPENT,
    TOO_FAST,
    UNAVAILABLE,
    is_overfull,
    quoted,
    rejected,
    unauthorised,
    unknown_model,
    without_secrets,
)

PROVIDER_ERRORS = (
    ModelAPIError,
    UnexpectedModelBehavior,
    UserError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    OSError,
    # The libraries check little of what they are sent: a server that only imitates the interface
    # makes them stumble over it in these ways.
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What a request to a provider can end with."""

# Statuses of a moment, although they begin with a 4: time-out, conflict, too early.
_PASSING = frozenset({408, 409, 425})


def failure_of(error: Exception, endpoint: Endpoint) -> ModelBusy | ModelRefused:
    """What to raise instead of `error`. The words hold no secret of `endpoint`."""
    match error:
        case ModelConnectionError():
            return ModelBusy(_broken_connection(error), trouble=ModelTrouble.UNREACHABLE)
        case ModelAPIError(retry_after=seconds):
            wait = None if seconds is None else wait_ms(seconds)
            return _of_api(error, endpoint, wait)
        case UserError():
            said = without_secrets(error.message, endpoint)
            return ModelRefused(f"the request does not suit the model: {said}")
        case UnexpectedModelBehavior() if "ended without content" in error.message:
            return ModelBusy(ENDED_EARLY)
        case httpx2.TimeoutException():
            return ModelBusy(
                "the provider did not answer in time", trouble=ModelTrouble.UNREACHABLE
            )
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ModelRefused(
                "the address of the provider (base_url) is not valid", trouble=ModelTrouble.KEY
            )
        case httpx2.HTTPError() | httpx2.StreamError() | OSError():
            return ModelBusy(
                "the connection to the provider broke", trouble=ModelTrouble.UNREACHABLE
            )
        case _:
            return ModelBusy(f"{MALFORMED} ({type(error).__name__})")


def _of_api(
    error: ModelAPIError, endpoint: Endpoint, wait_ms: int | None
) -> ModelBusy | ModelRefused:
    failure = _judged(error, endpoint, wait_ms)
    failure.status = _status_of(error)
    return failure


def _judged(
    error: ModelAPIError, endpoint: Endpoint, wait_ms: int | None
) -> ModelBusy | ModelRefused:
    said = quoted(error.body, endpoint)
    match error:
        case ModelRateLimitError():
            return ModelBusy(f"{TOO_FAST}{said}", wait_ms, trouble=ModelTrouble.BUSY)
        case ModelQuotaExceededError():
            return ModelRefused(f"{SPENT}{said}", trouble=ModelTrouble.QUOTA)
        case ModelOverloadedError():
            return ModelBusy(f"{OVERLOADED}{said}", wait_ms, trouble=ModelTrouble.OVERLOADED)
        case ModelUnavailableError():
            return ModelBusy(f"{UNAVAILABLE}{said}", wait_ms)
        case ModelContextWindowExceededError():
            return ModelOverfull(OVERFULL)
        case ModelHTTPError(status_code=400 | 413 | 422) if is_overfull(error.body):
            return ModelOverfull(OVERFULL)
        case ModelRequestRejectedError():
            return ModelRefused(_rejected(error, endpoint))
        case ModelHTTPError(status_code=status):
            if status >= 500 or status in _PASSING:
                return ModelBusy(f"the provider failed with status {status}{said}", wait_ms)
            return ModelRefused(_rejected(error, endpoint))
        case _ if "finish_reason" in error.message:
            return ModelBusy(ENDED_EARLY)
        case _ if error.in_stream:
            return ModelBusy(f"the provider broke off with an error{said}", wait_ms)
        case _:
            return ModelBusy(MALFORMED, wait_ms)


def _status_of(error: ModelAPIError) -> int | None:
    return error.status_code if isinstance(error, ModelHTTPError) else None


def _rejected(error: ModelAPIError, endpoint: Endpoint) -> str:
    status, said = _status_of(error), quoted(error.body, endpoint)
    match error:
        case ModelAuthenticationError():
            return f"{unauthorised(status, endpoint)}{said}"
        case ModelNotFoundError():
            return f"{unknown_model(endpoint)}{said}"
        case _:
            return rejected(status, error.body, endpoint)


def _broken_connection(error: ModelConnectionError) -> str:
    if error.phase in ("connect", "pool"):
        return "the provider could not be reached"
    if isinstance(error, ModelTimeoutError):
        return "the provider did not answer in time"
    return ENDED_EARLY if error.phase == "read" else "the connection to the provider broke"
