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

from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.phrases import excerpt
from koboshi.models.endpoint import Endpoint
from koboshi.models.replies import ENDED_EARLY, MALFORMED

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


OVERFULL = "the conversation has grown too long for the model"

_OVERFULL_WORDS = (
    "prompt is too long",  # anthropic, and what imitates it
    "prompt too long",  # ollama: "prompt too long; exceeded max context length by 3 tokens"
    "exceeds the maximum number of tokens",  # google
    "exceeds the available context size",  # llama.cpp
    "exceeded max context length",
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "context window",
    "request exceeds the maximum size",  # anthropic, of a whole request
)


def failure_of(error: Exception, endpoint: Endpoint) -> ModelBusy | ModelRefused:
    """What to raise instead of `error`. The words hold no secret of `endpoint`."""
    match error:
        case ModelConnectionError():
            return ModelBusy(_broken_connection(error))
        case ModelAPIError(retry_after=seconds):
            wait_ms = None if seconds is None else round(seconds * 1000)
            return _of_api(error, endpoint, wait_ms)
        case UserError():
            said = _without_secrets(error.message, endpoint)
            return ModelRefused(f"the request does not suit the model: {said}")
        case UnexpectedModelBehavior() if "ended without content" in error.message:
            return ModelBusy(ENDED_EARLY)
        case httpx2.TimeoutException():
            return ModelBusy("the provider did not answer in time")
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ModelRefused("the address of the provider (base_url) is not valid")
        case httpx2.HTTPError() | httpx2.StreamError() | OSError():
            return ModelBusy("the connection to the provider broke")
        case _:
            return ModelBusy(f"{MALFORMED} ({type(error).__name__})")


def trace_of(error: BaseException) -> str:
    """The errors from the one that reached us to where it began, for the log.

    Only the operating system is quoted: what a provider says may hold a person's words.
    """
    names: list[str] = []
    current: BaseException | None = error
    while current is not None and len(names) < 10:
        words = f" ({excerpt(str(current), 200)})" if isinstance(current, OSError) else ""
        names.append(f"{type(current).__name__}{words}")
        current = current.__cause__ or current.__context__
    return " from ".join(names)


def _of_api(
    error: ModelAPIError, endpoint: Endpoint, wait_ms: int | None
) -> ModelBusy | ModelRefused:
    match error:
        case ModelRateLimitError():
            return ModelBusy("the provider asks for fewer requests", wait_ms)
        case ModelQuotaExceededError():
            return ModelRefused("the account at the provider has no credit left")
        case ModelOverloadedError():
            return ModelBusy("the provider is overloaded", wait_ms)
        case ModelUnavailableError():
            return ModelBusy("the provider is not available at the moment", wait_ms)
        case ModelContextWindowExceededError():
            return ModelOverfull(OVERFULL)
        case ModelHTTPError(status_code=400 | 413 | 422) if _is_overfull(error):
            return ModelOverfull(OVERFULL)
        case ModelRequestRejectedError():
            return ModelRefused(_rejected(error, endpoint))
        case ModelHTTPError(status_code=status):
            if status >= 500 or status in _PASSING:
                return ModelBusy(f"the provider failed with status {status}", wait_ms)
            return ModelRefused(_rejected(error, endpoint))
        case _ if "finish_reason" in error.message:
            return ModelBusy(ENDED_EARLY)
        case _ if error.in_stream:
            return ModelBusy("the provider broke off with an error", wait_ms)
        case _:
            return ModelBusy(MALFORMED, wait_ms)


def _rejected(error: ModelAPIError, endpoint: Endpoint) -> str:
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    match error:
        case ModelAuthenticationError() if status == 403:
            return f"the provider does not allow this key to use {endpoint.name}"
        case ModelAuthenticationError():
            return "the key was refused by the provider"
        case ModelNotFoundError():
            where = ", or base_url is wrong" if endpoint.base_url else ""
            return f'the provider knows no model "{endpoint.model}"{where}'
        case _:
            code = "" if status is None else f" (status {status})"
            said = _without_secrets(_words_in(error.body), endpoint)
            return f"the provider rejected the request{code}{': ' if said else ''}{said}"


def _is_overfull(error: ModelAPIError) -> bool:
    """Whether these are words for a conversation that is too long; servers that imitate an
    interface have no code for it."""
    said = _words_in(error.body).lower()
    return any(words in said for words in _OVERFULL_WORDS)


def _broken_connection(error: ModelConnectionError) -> str:
    if error.phase in ("connect", "pool"):
        return "the provider could not be reached"
    if isinstance(error, ModelTimeoutError):
        return "the provider did not answer in time"
    return ENDED_EARLY if error.phase == "read" else "the connection to the provider broke"


def _words_in(body: object) -> str:
    """What the provider says about its error, wherever it puts it."""
    match body:
        case {"error": {"message": str() as words}} | {"message": str() as words}:
            return words
        case {"error": str() as words} | {"detail": str() as words}:
            return words
        case _:
            return ""


def _without_secrets(text: str, endpoint: Endpoint) -> str:
    secret = endpoint.api_key
    return excerpt(text.replace(secret, "***") if secret else text, 200)
