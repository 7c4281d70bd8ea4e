"""The two interfaces that most servers speak, with the same words for the same things."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.model_servers import anthropic_form, openai_form, responses_form
from tests.fakes.model_servers.server import Answer, Complaint

Called = tuple[str, str, tuple[str, ...]]
"""A call as a stream tells it: its id, its tool, and the pieces of its arguments."""


@dataclass(frozen=True, kw_only=True)
class Form:
    name: str
    """What a model's name begins with."""
    path: str
    """What comes behind the server's address in base_url."""
    complain: Complaint
    reply: Callable[..., Answer]
    """A stream of texts, calls and an ending."""
    error: Callable[..., Answer]
    event: Callable[[str], bytes]
    """An event with this line as its body."""
    stop: str
    calls: str
    length: str

    def text(self, *pieces: str, **more: Any) -> Answer:
        return self.reply(pieces, (), self.stop, **more)


def _openai_reply(
    texts: tuple[str, ...], calls: tuple[Called, ...], finish: str, **more: Any
) -> Answer:
    form = openai_form
    told = [form.call(place, *each[:2], *each[2]) for place, each in enumerate(calls)]
    pieces = (*form.text(*texts), *(piece for each in told for piece in each), *form.end(finish))
    return form.stream(*pieces, **more)


def _anthropic_reply(
    texts: tuple[str, ...], calls: tuple[Called, ...], finish: str, **more: Any
) -> Answer:
    form = anthropic_form
    shown = form.text(0, *texts) if texts else []
    told = [form.call(place, *each[:2], *each[2]) for place, each in enumerate(calls, start=1)]
    pieces = (*shown, *(piece for each in told for piece in each), *form.end(finish))
    return form.stream(*pieces, **more)


def _responses_reply(
    texts: tuple[str, ...], calls: tuple[Called, ...], finish: str, **more: Any
) -> Answer:
    form = responses_form
    said = [form.message(*texts)] if texts else []
    output = [*said, *(form.call(*each[:2], *each[2]) for each in calls)]
    is_whole = finish == "completed"
    pieces = form.events(*output) if is_whole else form.incomplete(finish, *output)
    return Answer(pieces=tuple(pieces), **more)


OPENAI = Form(
    name="openai",
    path="/v1",
    complain=openai_form.complain,
    reply=_openai_reply,
    error=openai_form.error,
    event=lambda line: f"data: {line}\n\n".encode(),
    stop="stop",
    calls="tool_calls",
    length="length",
)
ANTHROPIC = Form(
    name="anthropic",
    path="",
    complain=anthropic_form.complain,
    reply=_anthropic_reply,
    error=anthropic_form.error,
    event=lambda line: f"event: content_block_delta\ndata: {line}\n\n".encode(),
    stop="end_turn",
    calls="tool_use",
    length="max_tokens",
)
RESPONSES = Form(
    name="openai-responses",
    path="/v1",
    complain=responses_form.complain,
    reply=_responses_reply,
    error=openai_form.error,
    event=lambda line: f"event: response.output_text.delta\ndata: {line}\n\n".encode(),
    stop="completed",
    calls="completed",
    length="max_output_tokens",
)
FORMS = (OPENAI, ANTHROPIC)
