"""What goes wrong at a provider: whether it is asked again, when, and what the person is told."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from anyio import create_task_group, fail_after, move_on_after

from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from tests.fakes.model_servers import anthropic_form, google_form, openai_form
from tests.fakes.model_servers.server import Answer, Framing, as_json
from tests.models.asking import HELLO, KEY, Line
from tests.models.conftest import Opened, Place
from tests.models.forms import ANTHROPIC, FORMS, OPENAI, Form


@pytest.mark.parametrize("seconds,wait_ms", [("7", 7_000), ("0", 0), ("86400", 86_400_000)])
async def test_a_limit_of_rate_says_when_to_come_back(
    place: Place, seconds: str, wait_ms: int
) -> None:
    model = place.model(place.form.error(429, "slow down", retry_after=seconds))

    with pytest.raises(ModelBusy, match="fewer requests") as caught:
        await model.respond(HELLO)

    assert caught.value.retry_after_ms == wait_ms


async def test_a_limit_of_rate_may_name_a_date(place: Place) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    model = place.model(place.form.error(429, "slow down", retry_after=date))

    with pytest.raises(ModelBusy) as caught:
        await model.respond(HELLO)

    assert caught.value.retry_after_ms is not None
    assert 60_000 < caught.value.retry_after_ms <= 90_000


async def test_a_date_that_has_passed_is_now(place: Place) -> None:
    date = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    model = place.model(place.form.error(429, "slow down", retry_after=date))

    with pytest.raises(ModelBusy) as caught:
        await model.respond(HELLO)

    assert caught.value.retry_after_ms == 0


@pytest.mark.parametrize("words", ["soon", "-5", ""])
async def test_a_time_that_no_one_understands_is_none(place: Place, words: str) -> None:
    model = place.model(place.form.error(429, "slow down", retry_after=words))

    with pytest.raises(ModelBusy) as caught:
        await model.respond(HELLO)

    assert caught.value.retry_after_ms is None


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 529, 599])
async def test_trouble_of_the_provider_is_asked_again(place: Place, status: int) -> None:
    model = place.model(place.form.error(status, "oh no"))

    with pytest.raises(ModelBusy):
        await model.respond(HELLO)


async def test_an_overloaded_provider_is_called_so(place: Place) -> None:
    model = place.model(place.form.error(529, "Overloaded", retry_after="3"))

    with pytest.raises(ModelBusy, match="overloaded") as caught:
        await model.respond(HELLO)

    assert caught.value.retry_after_ms == 3_000


@pytest.mark.parametrize(
    "status,words",
    [
        (400, "the provider rejected the request (status 400): mind your words"),
        (401, "the key was refused by the provider"),
        (402, "the account at the provider has no credit left"),
        (403, "the provider does not allow this key to use"),
        (404, 'the provider knows no model "m1", or base_url is wrong'),
        (413, "the provider rejected the request (status 413): mind your words"),
        (422, "the provider rejected the request (status 422): mind your words"),
    ],
)
async def test_what_asking_again_cannot_mend_is_refused(
    place: Place, status: int, words: str
) -> None:
    model = place.model(place.form.error(status, "mind your words"))

    with pytest.raises(ModelRefused) as caught:
        await model.respond(HELLO)

    assert caught.value.reason.startswith(words)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_no_failure_is_retried_by_the_library(place: Place, status: int) -> None:
    model = place.model(*[place.form.error(status, "no", x_should_retry="true")] * 3)

    with pytest.raises((ModelBusy, ModelRefused)):
        await model.respond(HELLO)

    assert len(place.server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_the_key_is_in_no_words_and_in_no_log(
    place: Place, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    model = place.model(place.form.error(status, f"Incorrect API key provided: {KEY}."))

    with pytest.raises((ModelBusy, ModelRefused)) as caught:
        await model.respond(HELLO)

    assert KEY not in str(caught.value)
    assert KEY not in repr(model)
    assert KEY not in "".join(capsys.readouterr())


OVERFULL = {
    OPENAI.name: openai_form.error(400, "too long", code="context_length_exceeded"),
    ANTHROPIC.name: anthropic_form.error(
        400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"
    ),
}


async def test_a_conversation_that_is_too_long_is_called_so(place: Place) -> None:
    model = place.model(OVERFULL[place.form.name])

    with pytest.raises(ModelOverfull, match="too long for the model"):
        await model.respond(HELLO)


TOO_LONG_ELSEWHERE = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    "prompt too long; exceeded max context length by 12 tokens",
    "the request exceeds the available context size, try increasing it",
    "Prompt is too long",
]


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("words", TOO_LONG_ELSEWHERE)
async def test_servers_that_imitate_an_interface_say_it_in_words(
    place: Place, words: str, status: int
) -> None:
    model = place.model(place.form.error(status, words))

    with pytest.raises(ModelOverfull):
        await model.respond(HELLO)


async def test_google_says_it_in_words_as_well(opened: Opened) -> None:
    words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)"
    line = Line(lambda _: google_form.error(400, words, "INVALID_ARGUMENT"))
    model = opened("google:gemini-test", api_key=KEY, transport=line)

    with pytest.raises(ModelOverfull):
        await model.respond(HELLO)


async def test_a_server_in_trouble_is_not_taken_for_an_overfull_one(place: Place) -> None:
    model = place.model(place.form.error(500, "prompt too long"))

    with pytest.raises(ModelBusy):
        await model.respond(HELLO)


SPENT = {
    OPENAI.name: openai_form.error(429, "You exceeded your quota", code="insufficient_quota"),
    ANTHROPIC.name: anthropic_form.error(
        400, "Your credit balance is too low", "invalid_request_error"
    ),
}


async def test_an_account_without_credit_is_not_asked_again(place: Place) -> None:
    model = place.model(SPENT[place.form.name])

    with pytest.raises(ModelRefused, match="no credit"):
        await model.respond(HELLO)


IN_THE_STREAM = {
    OPENAI.name: openai_form.stream(
        *openai_form.text("Hel"),
        openai_form.event({"error": {"message": "upstream", "type": "overloaded", "code": None}}),
    ),
    ANTHROPIC.name: anthropic_form.stream(
        *anthropic_form.text(0, "Hel"),
        anthropic_form.event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
    ),
}


async def test_an_error_in_the_middle_of_a_stream_is_asked_again(place: Place) -> None:
    model = place.model(IN_THE_STREAM[place.form.name])

    with pytest.raises(ModelBusy, match="overloaded"):
        await model.respond(HELLO)


MALFORMED = [
    "{",
    "nonsense",
    "[]",
    "5",
    "null",
    '"text"',
    "{}",
    '{"choices": 5}',
    '{"choices": [5]}',
    '{"choices": [{"delta": "text"}]}',
    '{"choices": [{"delta": {"tool_calls": 5}}]}',
    '{"choices": [{"delta": {"tool_calls": [{"function": 5}]}}]}',
    '{"choices": [{"delta": {"content": 5}, "finish_reason": 5}]}',
    '{"type": "content_block_delta"}',
    '{"type": "content_block_delta", "index": "x", "delta": {"type": "text_delta", "text": 5}}',
    '{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}}',
    '{"type": "message_start", "message": 5}',
    '{"type": "message_delta", "delta": 5, "usage": 5}',
    '{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": 5, "function": {"name": 5, '
    '"arguments": "{}"}}]}, "finish_reason": "tool_calls"}]}',
    "[" * 100_000,
]


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: line[:40])
async def test_what_is_no_reply_is_asked_again(place: Place, line: str) -> None:
    """Not only broken JSON: the libraries hardly check what they are sent."""
    event = place.form.event(line)
    begin = () if place.form is OPENAI else (anthropic_form.begin(),)
    model = place.model(Answer(pieces=(*begin, event)), Answer(pieces=(event,)))

    for _ in range(2):
        with pytest.raises(ModelBusy):
            await model.respond(HELLO)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(
            pieces=(b"<html>Bad gateway, sorry</html>",), headers=(("Content-Type", "text/html"),)
        ),
        Answer(pieces=(b"   \n",), headers=(("Content-Type", "application/json"),)),
        Answer(pieces=(), headers=()),
        as_json({"ok": True}, status=200),
        Answer(pieces=(b"data: \xff\xfe\n\n",)),
        Answer(pieces=(b"not gzip",), headers=(("Content-Encoding", "gzip"),)),
    ],
    ids=["html", "blank", "nothing", "other JSON", "no text", "no gzip"],
)
async def test_an_answer_of_another_kind_is_asked_again(place: Place, answer: Answer) -> None:
    model = place.model(answer)

    with pytest.raises(ModelBusy):
        await model.respond(HELLO)


@pytest.mark.parametrize("framing", Framing)
@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
async def test_a_connection_that_breaks_is_asked_again(
    place: Place, framing: Framing, resets: bool
) -> None:
    model = place.model(place.form.text("Hello", framing=framing, cut_at=300, resets=resets))

    with pytest.raises(ModelBusy, match="the stream ended early"):
        await model.respond(HELLO)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
async def test_a_provider_that_is_not_there_is_asked_again(form: Form, opened: Opened) -> None:
    model = opened(f"{form.name}:m1", base_url="http://127.0.0.1:9", api_key=KEY)

    with pytest.raises(ModelBusy, match="could not be reached"):
        await model.respond(HELLO)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize(
    "error,words",
    [
        (httpx2.ConnectTimeout("slow"), "could not be reached"),
        (httpx2.PoolTimeout("full"), "could not be reached"),
        (httpx2.ReadTimeout("slow"), "did not answer in time"),
        (httpx2.WriteError("gone"), "connection to the provider broke"),
        (httpx2.RemoteProtocolError("gone"), "the stream ended early"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_each_way_to_lose_the_connection_is_asked_again(
    form: Form, opened: Opened, error: httpx2.TransportError, words: str
) -> None:
    def fail(_: object) -> Answer:
        raise error

    model = opened(f"{form.name}:m1", api_key=KEY, transport=Line(fail))

    with pytest.raises(ModelBusy, match=words):
        await model.respond(HELLO)


async def test_a_provider_that_does_not_begin_is_given_up(place: Place) -> None:
    model = place.model(place.form.text("Hello", pause_s=30), first_s=0.1)

    with fail_after(60), pytest.raises(ModelBusy, match=r"did not begin to reply within 0\.1"):
        await model.respond(HELLO)


async def test_a_provider_that_falls_silent_is_given_up(place: Place) -> None:
    begun = place.form.text("Hello", "there").pieces[:4]
    model = place.model(Answer(pieces=(b"".join(begun), b""), pause_s=0.2), idle_s=0.05)

    with fail_after(60), pytest.raises(ModelBusy, match="fell silent"):
        await model.respond(HELLO)


async def test_a_provider_that_drips_for_ever_is_given_up(place: Place) -> None:
    drip = place.form.text(*["x"] * 1_000, pause_s=0.02)
    model = place.model(drip, total_s=0.5)

    with fail_after(60), pytest.raises(ModelBusy, match=r"did not finish its reply within 0\.5"):
        await model.respond(HELLO)


async def test_a_slow_reply_is_a_reply(place: Place) -> None:
    model = place.model(place.form.text("Hel", "lo", pause_s=0.02), idle_s=5, first_s=5)

    assert (await model.respond(HELLO)).text == "Hello"


async def test_a_stopped_turn_ends_the_request_at_once(place: Place) -> None:
    model = place.model(place.form.text("Hello", pause_s=30))

    with fail_after(60), move_on_after(0.3) as scope:
        await model.respond(HELLO)

    assert scope.cancelled_caught


async def test_a_failed_request_does_not_spoil_the_next(place: Place) -> None:
    form = place.form
    model = place.model(
        form.text("Hello", cut_at=100), form.error(500, "oh no"), form.text("Hello again")
    )

    for _ in range(2):
        with pytest.raises(ModelBusy):
            await model.respond(HELLO)

    assert (await model.respond(HELLO)).text == "Hello again"


async def test_a_closed_model_asks_nothing(place: Place) -> None:
    model = place.model(place.form.text("Hello"), place.form.text("again"))
    await model.respond(HELLO)

    await model.aclose()
    await model.aclose()

    with pytest.raises(ModelBusy, match="stopping"):
        await model.respond(HELLO)
    assert len(place.server.requests) == 1


async def test_closing_ends_the_connections(place: Place) -> None:
    model = place.model(place.form.text("Hello"))
    await model.respond(HELLO)
    assert not place.server.is_quiet.is_set()

    await model.aclose()

    with fail_after(60):
        await place.server.is_quiet.wait()


async def test_closing_in_the_middle_of_a_request_ends_it(place: Place) -> None:
    """At shutdown the turns are cancelled first; this is for the one that is not."""
    model = place.model(place.form.text("Hello", "there", pause_s=0.2))
    outcome: list[str] = []

    async def ask() -> None:
        try:
            outcome.append((await model.respond(HELLO)).text)
        except ModelBusy as error:
            outcome.append(type(error).__name__)

    async with create_task_group() as tasks:
        tasks.start_soon(ask)
        await place.server.has_asked.wait()
        await model.aclose()

    assert outcome == ["ModelBusy"]
