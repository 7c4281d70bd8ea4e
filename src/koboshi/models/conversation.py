"""Our transcript as a conversation in the form of the model library.

A conversation alternates between the user's side and the model's. What people and the gateway say,
and what tools found, is the user's side. Every call is followed by exactly one result, and every
result directly follows its call: providers refuse anything else, for ever.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import msgspec
import structlog
from pydantic import ValidationError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from koboshi.domain.ids import CallId
from koboshi.domain.notes import MARK
from koboshi.domain.transcript import (
    Answer,
    Call,
    Message,
    Note,
    Question,
    Reply,
    Result,
    Step,
    Summary,
)
from koboshi.ports.model import Request, ToolSpec

log = structlog.get_logger()

NO_RESULT = f"{MARK} no result of this call was kept; check its effect before you repeat it"
NO_OUTPUT = f"{MARK} it ended and said nothing"
EARLIER = f"{MARK} The conversation began earlier than what you see here."
GO_ON = f"{MARK} Go on."
SUMMED_UP = f"{MARK} What was said and done before this, summed up:"

RECORD = f"{MARK} The record:"

# A person or a program could write our mark; the model must not take their words for ours.
_FALSE_MARK = re.compile(rf"^(\s*){re.escape(MARK)}", re.MULTILINE)

_WIRE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What every provider takes for the id of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who made a reply. Its raw form is understood there and nowhere else."""

    system: str
    url: str

    def made(self, response: ModelResponse) -> bool:
        return (response.provider_name, response.provider_url) == (self.system, self.url)


def messages_of(steps: Sequence[Step], origin: Origin) -> list[ModelMessage]:
    """The conversation that these steps are, for a model at `origin`.

    It begins and ends on the user's side, no text in it is blank, and the sides alternate.
    """
    results = {step.body.call_id: step.body for step in steps if isinstance(step.body, Result)}
    placed = {call.call_id for step in steps for call in _calls_in(step)}
    talk = _Talk()
    for step in steps:
        match step.body:
            case Message(words=words):
                talk.hear(_unmarked(words))
            case Note(text=text):
                talk.hear(_marked(text))
            case Summary(text=text):
                talk.hear(f"{SUMMED_UP}\n{_unmarked(text)}" if text.strip() else "")
            case Reply() as reply:
                ids = talk.wire_ids(reply.calls)
                talk.say(_parts_of(reply, ids, origin))
                talk.receive(_return_of(call, ids[call.call_id], results) for call in reply.calls)
            case Result(call_id=call_id, text=text):
                if call_id not in placed:
                    talk.hear(f"{MARK} The result of an earlier call:\n{text}")
            case Answer(text=text):
                talk.say(_text_parts(text))
            case Question():
                pass  # the model's own are calls, the gateway's do not concern it
            case _:
                assert_never(step.body)
    return talk.finished()


def record_of(steps: Sequence[Step]) -> list[ModelMessage]:
    """These steps as a record to be read, in one message of the user's side: whoever reads it is
    not the one who speaks in it."""
    words = "\n\n".join(_recorded(step) for step in steps if step.body.text or _calls_in(step))
    return [ModelRequest(parts=[UserPromptPart(f"{RECORD}\n\n{words}")])]


def parameters_of(request: Request) -> ModelRequestParameters:
    """The tools and the system prompt of a request."""
    system = request.system.strip()
    return ModelRequestParameters(
        function_tools=[_definition(spec) for spec in request.tools],
        instruction_parts=[InstructionPart(content=system)] if system else None,
    )


def read_raw(raw: str) -> ModelResponse | None:
    """The reply as its provider made it; None if there is none that this version can read."""
    if not raw:
        return None
    try:
        messages = ModelMessagesTypeAdapter.validate_json(raw)
    except ValidationError as error:
        log.info("raw_reply_unreadable", errors=error.error_count())
        return None
    return next((each for each in messages if isinstance(each, ModelResponse)), None)


@dataclass(slots=True)
class _Talk:
    """A conversation in the making."""

    messages: list[ModelMessage] = field(default_factory=list)
    returns: list[ToolReturnPart] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def hear(self, text: str) -> None:
        if text.strip():
            self.heard.append(text)

    def receive(self, returns: Iterable[ToolReturnPart]) -> None:
        self.returns.extend(returns)

    def say(self, parts: Sequence[ModelResponsePart]) -> None:
        if not parts:
            return
        self._close_users_side()
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelResponse):
            self.messages[-1] = replace(last, parts=[*last.parts, *parts])
            return
        if last is None:
            self.messages.append(ModelRequest(parts=[UserPromptPart(EARLIER)]))
        self.messages.append(ModelResponse(parts=list(parts)))

    def wire_ids(self, calls: Sequence[Call]) -> dict[CallId, str]:
        """The id that each call goes by: the provider's own, unless it can not tell calls apart."""
        chosen: dict[CallId, str] = {}
        for call in calls:
            wire_id = call.provider_id
            if wire_id in self.ids or not _WIRE_ID.fullmatch(wire_id):
                wire_id = f"call_{call.call_id.replace('.', '_')}"
            self.ids.add(wire_id)
            chosen[call.call_id] = wire_id
        return chosen

    def finished(self) -> list[ModelMessage]:
        self._close_users_side()
        if not self.messages or isinstance(self.messages[-1], ModelResponse):
            self.messages.append(ModelRequest(parts=[UserPromptPart(GO_ON)]))
        return self.messages

    def _close_users_side(self) -> None:
        """Results first, then what was said: as one message, so that the sides alternate."""
        prompts = [UserPromptPart("\n\n".join(self.heard))] if self.heard else []
        if self.returns or prompts:
            self.messages.append(ModelRequest(parts=[*self.returns, *prompts]))
        self.returns, self.heard = [], []


def _recorded(step: Step) -> str:
    match step.body:
        case Message(sender=sender, words=words):
            return f"{sender or 'person'} wrote: {_unmarked(words)}"
        case Note(text=text):
            return _marked(text)
        case Summary(text=text):
            return f"{SUMMED_UP}\n{_unmarked(text)}"
        case Reply(text=text, calls=calls):
            used = [f"the assistant called {call.tool} {call.arguments}" for call in calls]
            said = [f"the assistant said: {_unmarked(text)}"] if text.strip() else []
            return "\n".join([*said, *used])
        case Result(status=status, text=text):
            return f"result ({status}): {_unmarked(text)}"
        case Answer(text=text):
            return f"the assistant answered: {_unmarked(text)}"
        case Question(text=text):
            return f"the person was asked: {_unmarked(text)}"
        case _:
            assert_never(step.body)


def _calls_in(step: Step) -> tuple[Call, ...]:
    return step.body.calls if isinstance(step.body, Reply) else ()


def _unmarked(text: str) -> str:
    return _FALSE_MARK.sub(r"\1(koboshi)", text)


def _marked(note: str) -> str:
    text = note.strip()
    return text if not text or text.startswith(MARK) else f"{MARK} {text}"


def _text_parts(text: str) -> list[ModelResponsePart]:
    return [TextPart(text)] if text.strip() else []


def _parts_of(reply: Reply, ids: Mapping[CallId, str], origin: Origin) -> list[ModelResponsePart]:
    """What the model said: as its provider made it if it is the same, else rebuilt."""
    response = read_raw(reply.raw)
    if response is not None and origin.made(response) and _has_calls(response, reply.calls):
        wanted = iter(reply.calls)
        return [
            replace(part, tool_call_id=ids[next(wanted).call_id])
            if isinstance(part, ToolCallPart)
            else part
            for part in response.parts
            if not (isinstance(part, TextPart) and not part.content.strip())
        ]
    calls = [
        ToolCallPart(call.tool, call.arguments, tool_call_id=ids[call.call_id])
        for call in reply.calls
    ]
    return [*_text_parts(reply.text), *calls]


def _has_calls(response: ModelResponse, calls: Sequence[Call]) -> bool:
    """Whether the raw form holds just the calls that were stored: those count."""
    made = [part.tool_name for part in response.parts if isinstance(part, ToolCallPart)]
    return made == [call.tool for call in calls]


def _return_of(call: Call, wire_id: str, results: Mapping[CallId, Result]) -> ToolReturnPart:
    result = results.get(call.call_id)
    text = NO_RESULT if result is None else result.text
    return ToolReturnPart(call.tool, text if text.strip() else NO_OUTPUT, tool_call_id=wire_id)


def _definition(spec: ToolSpec) -> ToolDefinition:
    # Not strict: the schema is sent as it is written, and the runtime checks the arguments.
    return ToolDefinition(
        name=spec.name,
        description=spec.description,
        parameters_json_schema=msgspec.json.decode(spec.parameters, type=dict),
        strict=False,
    )
