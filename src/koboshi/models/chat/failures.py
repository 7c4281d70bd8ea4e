"""What went wrong at a server that speaks chat completions: in plain words, and whether asking
again can help."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
import msgspec

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
    words_in,
)

CONNECTION_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
"""What a request can end with before or instead of an answer."""

_SPENT = frozenset(
    "insufficient_quota billing_hard_limit_reached credit_balance_exhausted "
    "organization_spend_limit_exceeded project_spend_limit_exceeded "
    "organization_usage_limit_exceeded".split()
)
_OVERLOADED = frozenset({"overloaded", "overloaded_error", "server_is_overloaded"})
_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "server_error": 500,
    "invalid_prompt": 400,
    "bio_policy": 400,
    "cyber_policy": 400,
    "misalignment_policy_violation": 400,
}
"""The status of an error that comes in a stream, whose own status was 200."""

DIGITS_MAX = 13
WAIT_MS_MAX = 10**15
"""Longer than any real wait, and a number that can be added and stored."""

_REFUSED = frozenset({400, 403, 404, 405, 410, 422, 501})
_NAMES_RESPONSES = re.compile(
    r"/responses\b|\bresponses (?:api|endpoint|interface)\b", re.IGNORECASE
)

# Statuses of a moment, although they begin with a 4: time-out, conflict, too early.
_PASSING = frozenset({408, 409, 425})


class SpeaksResponses(ModelRefused):
    """The server says that the model is to be spoken to by the responses interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """An error as the server tells it."""

    status: int | None
    body: object
    wait_ms: int | None = None

    @property
    def codes(self) -> frozenset[str]:
        """What it calls the error, wherever it puts that."""
        match self.body:
            case {"error": dict() as error}:
                pass
            case dict() as error:
                pass
            case _:
                return frozenset()
        return frozenset(str(error[name]) for name in ("code", "type") if error.get(name))


def complaint_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> Complaint:
    """The error that a whole answer is."""
    try:
        told: object = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        told = body.decode("utf-8", "replace")
    return Complaint(status=status, body=told, wait_ms=_wait_in(headers))


def complaint_in_stream(error: object) -> Complaint:
    """The error that came instead of the rest of a reply."""
    told = Complaint(status=None, body=error)
    statuses = (int(code) for code in told.codes if code.isdecimal() and len(code) == 3)
    numbers = [status for status in statuses if 400 <= status < 600]
    known = [_STATUS_OF[code] for code in told.codes if code in _STATUS_OF]
    return Complaint(status=next(iter([*known, *numbers]), None), body=error)


def failure_of(complaint: Complaint, endpoint: Endpoint) -> ModelBusy | ModelRefused:
    """What to raise for it: our words, and behind them the provider's own. They hold no secret of
    `endpoint`."""
    failure = _judged(complaint, endpoint)
    failure.status = complaint.status
    return failure


def _judged(complaint: Complaint, endpoint: Endpoint) -> ModelBusy | ModelRefused:
    codes, status, wait_ms = complaint.codes, complaint.status, complaint.wait_ms
    said = quoted(complaint.body, endpoint)
    if status in _REFUSED and _NAMES_RESPONSES.search(words_in(complaint.body)):
        return SpeaksResponses(f"the model does not speak chat completions{said}")
    if codes & _SPENT or status == 402:
        return ModelRefused(f"{SPENT}{said}", trouble=ModelTrouble.QUOTA)
    if "context_length_exceeded" in codes:
        return ModelOverfull(OVERFULL)
    if status in (400, 413, 422) and is_overfull(complaint.body):
        return ModelOverfull(OVERFULL)
    if codes & _OVERLOADED or status == 529 or (status == 503 and _says_overloaded(complaint)):
        return ModelBusy(f"{OVERLOADED}{said}", wait_ms, trouble=ModelTrouble.OVERLOADED)
    if "model_not_found" in codes or status == 404:
        return ModelRefused(f"{unknown_model(endpoint)}{said}", trouble=ModelTrouble.KEY)
    if "invalid_api_key" in codes or status in (401, 403):
        return ModelRefused(f"{unauthorised(status, endpoint)}{said}", trouble=ModelTrouble.KEY)
    match status:
        case None:
            return ModelBusy(f"the provider broke off with an error{said}", wait_ms)
        case 429:
            return ModelBusy(f"{TOO_FAST}{said}", wait_ms, trouble=ModelTrouble.BUSY)
        case 503:
            return ModelBusy(f"{UNAVAILABLE}{said}", wait_ms)
        case _ if status >= 500 or status in _PASSING:
            return ModelBusy(f"the provider failed with status {status}{said}", wait_ms)
        case _ if status < 400:
            return ModelBusy(MALFORMED, wait_ms)
        case _:
            return ModelRefused(rejected(status, complaint.body, endpoint))


def broken(error: Exception) -> ModelBusy | ModelRefused:
    """What to raise for an error of the connection."""
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return ModelBusy("the provider could not be reached", trouble=ModelTrouble.UNREACHABLE)
        case httpx2.TimeoutException():
            return ModelBusy(
                "the provider did not answer in time", trouble=ModelTrouble.UNREACHABLE
            )
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ModelRefused(
                "the address of the provider (base_url) is not valid", trouble=ModelTrouble.KEY
            )
        case httpx2.ReadError() | httpx2.RemoteProtocolError():
            return ModelBusy(ENDED_EARLY)
        case httpx2.DecodingError() | httpx2.TooManyRedirects():
            return ModelBusy(f"{MALFORMED} ({type(error).__name__})")
        case _:
            return ModelBusy(
                "the connection to the provider broke", trouble=ModelTrouble.UNREACHABLE
            )


def _says_overloaded(complaint: Complaint) -> bool:
    return "overloaded" in words_in(complaint.body).lower()


def _wait_in(headers: Mapping[str, str]) -> int | None:
    """How long the server wants us to wait; None if it does not say, or not clearly."""
    try:
        milliseconds = float(headers.get("retry-after-ms", "-1"))
    except ValueError:
        milliseconds = -1
    if 0 <= milliseconds < float("inf"):
        return round(min(milliseconds, WAIT_MS_MAX))
    words = headers.get("retry-after", "").strip()
    if words.isdecimal():
        return int(words) * 1000 if len(words) < DIGITS_MAX else WAIT_MS_MAX
    try:
        date = parsedate_to_datetime(words)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0, round((date - datetime.now(UTC)).total_seconds() * 1000))
