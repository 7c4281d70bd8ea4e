"""What a provider may send: whatever it is, it becomes a reply that can be stored, or one of the
errors that a turn knows what to do with."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from koboshi.channels.telegram.outcomes import wait_ms_of
from koboshi.channels.telegram.types import BotAnswer, Parameters
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.models.chat.chunks import ReplyReader, StreamError
from koboshi.models.chat.events import EventReader, LineTooLong
from koboshi.models.chat.failures import complaint_in_stream, complaint_of_answer, failure_of
from koboshi.models.chat.raw import read_raw
from koboshi.models.endpoint import Endpoint, Provider
from koboshi.models.failures import failure_of as library_failure_of
from koboshi.models.replies import reply_of
from koboshi.models.talk import ReplyOrigin
from tests.hostile.wild import JSON, NUMBERS, TEXTS, as_bytes, fuzzed, objects

ORIGIN = ReplyOrigin(system="openai", url="http://localhost")
ENDPOINT = Endpoint(provider=Provider.OPENAI, model="m", api_key="sk-secret-0123456789")
CHARS_MAX = 20_000

FUNCTIONS = objects(name=TEXTS | st.just("pause"), arguments=TEXTS | st.just("{}") | JSON)
CALLS = objects(index=NUMBERS | st.integers(0, 3), id=TEXTS, function=FUNCTIONS, extra_content=JSON)
DELTAS = objects(
    content=TEXTS | st.lists(TEXTS | objects(type=st.just("text"), text=TEXTS), max_size=3),
    refusal=TEXTS,
    reasoning=TEXTS,
    reasoning_content=TEXTS,
    tool_calls=st.lists(CALLS, max_size=3),
)
ENDS = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "error", ""])
CHOICES = objects(delta=DELTAS, finish_reason=ENDS)
CHUNKS = objects(
    choices=st.lists(CHOICES, max_size=2),
    usage=objects(prompt_tokens=NUMBERS, completion_tokens=NUMBERS),
    error=JSON,
)
BODIES = CHUNKS.map(as_bytes) | JSON.map(as_bytes) | st.binary(max_size=40)
HALF = "\ud800"


def chunk(*, calls: object = None, usage: object = None, error: object = None) -> bytes:
    delta = {"content": "hi", "tool_calls": calls}
    choice = {"delta": delta, "finish_reason": "tool_calls" if calls else "stop"}
    return as_bytes({"choices": [choice], "usage": usage, "error": error})


def calling(**function: object) -> list[dict[str, object]]:
    return [{"index": 0, "id": "1", "function": function}]


@fuzzed(40)
@example([chunk(calls=calling(name="pause", arguments={"a": HALF}))])
@example([chunk(calls=calling(name=HALF, arguments="{}"))])
@example([chunk(usage={"prompt_tokens": 10**40, "completion_tokens": -1, "half": HALF})])
@example([chunk(usage={"prompt_tokens": 2**63})])
@example([chunk(error={"code": "1" * 5_000})])
@example([chunk(error={"code": HALF, "message": HALF})])
@given(bodies=st.lists(BODIES, max_size=5))
def test_any_stream_is_a_reply_that_can_be_stored_or_a_known_error(bodies: list[bytes]) -> None:
    shown: list[str] = []
    reader = ReplyReader(shown.append, CHARS_MAX)
    try:
        for body in bodies:
            reader.take(body)
        reply = reader.reply("openai:m", ORIGIN)
    except StreamError as error:
        failure = failure_of(complaint_in_stream(error.body), ENDPOINT)
        assert ENDPOINT.api_key not in failure.reason
    except (ModelBusy, ModelRefused):
        return
    else:
        assert 0 <= reply.tokens_in < 2**63
        assert 0 <= reply.tokens_out < 2**63
        msgspec.json.encode(reply)
        for call in reply.calls:
            assert call.tool
            assert isinstance(msgspec.json.decode(call.arguments), dict)
    "".join(shown).encode()


@fuzzed(40)
@given(pieces=st.lists(st.binary(max_size=60) | st.just(b"data: {}\n\n"), max_size=10))
def test_any_bytes_are_events_or_too_long(pieces: list[bytes]) -> None:
    reader = EventReader(bytes_max=200)
    try:
        bodies = [body for piece in pieces for body in reader.feed(piece)]
    except LineTooLong:
        return
    assert all(len(body) <= 200 for body in bodies)


HEADERS = st.fixed_dictionaries({}, optional={"retry-after": TEXTS, "retry-after-ms": TEXTS})
ERRORS = objects(error=objects(code=TEXTS | NUMBERS, type=TEXTS, message=TEXTS), code=TEXTS)


@fuzzed(30)
@example(status=429, headers={"retry-after": "1" * 5_000}, body=b"")
@example(status=429, headers={"retry-after": "9" * 30}, body=b"")
@example(status=429, headers={"retry-after-ms": "1e300"}, body=b"")
@example(status=429, headers={"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, body=b"")
@example(status=200, headers={}, body=as_bytes({"error": {"message": HALF, "code": "0" * 5_000}}))
@given(
    status=st.integers(100, 999),
    headers=HEADERS,
    body=ERRORS.map(as_bytes) | JSON.map(as_bytes) | st.binary(max_size=40),
)
def test_any_answer_that_is_no_success_says_what_to_do(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    failure = failure_of(complaint_of_answer(status, headers, body), ENDPOINT)

    assert failure.reason
    failure.reason.encode()
    if isinstance(failure, ModelBusy):
        assert failure.retry_after_ms is None or 0 <= failure.retry_after_ms < 2**63


@fuzzed(40)
@given(raw=TEXTS | JSON.map(lambda value: as_bytes([value]).decode()))
def test_what_was_stored_of_a_reply_is_understood_or_left_alone(raw: str) -> None:
    read_raw(raw, ORIGIN, ())


def test_a_stream_of_calls_without_end_is_too_long() -> None:
    """Each is next to nothing, and all of them together fill the memory."""
    reader = ReplyReader(None, CHARS_MAX)

    try:
        for number in range(CHARS_MAX):
            reader.take(chunk(calls=[{"index": number}]))
    except ModelRefused:
        return
    raise AssertionError("it was taken")


@fuzzed(20)
@example(1e308)
@example(1e300)
@example(-5.0)
@given(wait=st.floats(allow_nan=False, allow_infinity=False) | st.none())
def test_no_wait_that_a_platform_asks_for_is_beyond_reckoning(wait: float | None) -> None:
    """It is added to a time and stored."""
    flood = BotAnswer(error_code=429, parameters=Parameters(retry_after=wait))

    assert 0 < wait_ms_of(flood) < 2**53


@pytest.mark.parametrize("wait", [1e308, 1e300, -1.0, 0.5])
def test_no_wait_that_a_library_reads_is_beyond_reckoning(wait: float) -> None:
    failure = library_failure_of(ModelHTTPError(503, "m", retry_after=wait), ENDPOINT)

    assert isinstance(failure, ModelBusy)
    assert failure.retry_after_ms is not None
    assert 0 <= failure.retry_after_ms < 2**53


@pytest.mark.parametrize("count", [2**63, 10**40, -1])
def test_no_count_that_a_library_reads_is_beyond_storing(count: int) -> None:
    response = ModelResponse(
        parts=[TextPart("hi")],
        usage=RequestUsage(input_tokens=count, output_tokens=count),
        finish_reason="stop",
        provider_details={"finish_reason": "stop"},
    )
    reply = reply_of(response, "anthropic:m")

    assert 0 <= reply.tokens_in < 2**63
    assert 0 <= reply.tokens_out < 2**63
