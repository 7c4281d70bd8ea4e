"""The fakes keep the contract: the providers' own libraries read them, and find nothing missing.

The libraries take more than a second to load. Every test process collects this file, and one of
them runs it, so they are loaded by the tests.
"""

from typing import TYPE_CHECKING

import pytest

from tests.fakes.model_servers import anthropic_form, openai_form, responses_form
from tests.fakes.model_servers.server import Answer, serving
from tests.harness.model_streams import STREAMS, stream_in

if TYPE_CHECKING:
    from openai.types.responses import ResponseInputItemParam

OPENAI_STREAMS = [name for name in STREAMS if name.startswith("openai_")]
RESPONSES_STREAMS = [name for name in STREAMS if name.startswith("openai-responses")]
ANTHROPIC_STREAMS = [name for name in STREAMS if name.startswith("anthropic")]


@pytest.mark.parametrize("name", OPENAI_STREAMS)
async def test_openai_reads_the_stream_strictly(name: str) -> None:
    import openai
    from openai.types.chat import ChatCompletionChunk

    async with (
        serving(openai_form.complain) as server,
        openai.AsyncOpenAI(
            api_key="k",
            base_url=f"{server.url}/v1",
            max_retries=0,
            _strict_response_validation=True,
        ) as client,
    ):
        server.answers.append(Answer(pieces=(stream_in(name),)))
        stream = await client.chat.completions.create(
            model="m1",
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]

    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk.model_dump(warnings="none"))
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 18
    assert chunks[-2].choices[0].finish_reason in ("stop", "tool_calls")


@pytest.mark.parametrize("name", RESPONSES_STREAMS)
async def test_openai_reads_the_stream_of_a_response_strictly(name: str) -> None:
    """Issue 13, C19: the fake is held to the provider's own library."""
    import openai
    from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

    async with (
        serving(responses_form.complain) as server,
        openai.AsyncOpenAI(
            api_key="k",
            base_url=f"{server.url}/v1",
            max_retries=0,
            _strict_response_validation=True,
        ) as client,
    ):
        server.answers.append(Answer(pieces=(stream_in(name),)))
        stream = await client.responses.create(
            model="m1",
            input="hello",
            stream=True,
            store=False,
            include=["reasoning.encrypted_content"],
        )
        told = [event async for event in stream]

    for event in told:
        type(event).model_validate(event.model_dump(warnings="none"))
    assert [event.sequence_number for event in told] == list(range(len(told)))
    last = told[-1]
    assert isinstance(last, ResponseCompletedEvent)
    assert last.response.usage is not None
    assert last.response.usage.total_tokens == 18
    done = [event.item for event in told if isinstance(event, ResponseOutputItemDoneEvent)]
    assert done == last.response.output


@pytest.mark.parametrize(
    "told,kind",
    [
        (responses_form.incomplete("max_output_tokens", responses_form.message("I")), "incomplete"),
        (responses_form.failed("server_error", "oh no"), "failed"),
        (responses_form.events(responses_form.refusal("No.")), "completed"),
    ],
)
async def test_openai_knows_the_other_ends_of_a_response(told: list[bytes], kind: str) -> None:
    """Issue 13, C19."""
    import openai

    async with (
        serving(responses_form.complain) as server,
        openai.AsyncOpenAI(
            api_key="k",
            base_url=f"{server.url}/v1",
            max_retries=0,
            _strict_response_validation=True,
        ) as client,
    ):
        server.answers.append(Answer(pieces=tuple(told)))
        items: list[ResponseInputItemParam] = [{"role": "user", "content": "hello"}]
        stream = await client.responses.create(model="m1", input=items, stream=True, store=False)
        events = [event async for event in stream]

    for event in events:
        type(event).model_validate(event.model_dump(warnings="none"))
    assert events[-1].type == f"response.{kind}"


@pytest.mark.parametrize("name", ANTHROPIC_STREAMS)
async def test_anthropic_reads_the_stream_and_puts_the_message_together(name: str) -> None:
    import anthropic
    from anthropic.types import Message, ToolUseBlock

    async with (
        serving(anthropic_form.complain) as server,
        anthropic.AsyncAnthropic(
            api_key="k", base_url=server.url, max_retries=0, _strict_response_validation=True
        ) as client,
    ):
        server.answers.append(Answer(pieces=(stream_in(name),)))
        async with client.messages.stream(
            model="m1",
            max_tokens=100,
            messages=[{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        ) as stream:
            message = await stream.get_final_message()

    Message.model_validate(message.model_dump(warnings="none"))
    assert message.stop_reason in ("end_turn", "tool_use")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (11, 7)
    calls = [block for block in message.content if isinstance(block, ToolUseBlock)]
    assert bool(calls) == (message.stop_reason == "tool_use")


@pytest.mark.parametrize(
    "status,kind",
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
async def test_openai_knows_the_errors(status: int, kind: str) -> None:
    import openai

    async with (
        serving(openai_form.complain) as server,
        openai.AsyncOpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        server.answers.append(openai_form.error(status, "oh no", code="a_code"))
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(
                model="m1",
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                stream_options={"include_usage": True},
            )

    assert isinstance(caught.value, getattr(openai, kind))
    assert caught.value.code == "a_code"


@pytest.mark.parametrize(
    "status,kind",
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (429, "RateLimitError"),
        (529, "InternalServerError"),
    ],
)
async def test_anthropic_knows_the_errors(status: int, kind: str) -> None:
    import anthropic

    async with (
        serving(anthropic_form.complain) as server,
        anthropic.AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0) as client,
    ):
        server.answers.append(anthropic_form.error(status, "oh no", "a_type"))
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(
                model="m1",
                max_tokens=100,
                messages=[{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
                stream=True,
            )

    assert isinstance(caught.value, getattr(anthropic, kind))
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "a_type"


def test_the_strict_reading_would_notice_what_is_missing() -> None:
    from openai.types.chat import ChatCompletionChunk
    from pydantic import ValidationError

    with pytest.raises(ValidationError):
        ChatCompletionChunk.model_validate({"id": "c", "choices": []})
