"""Our transcript as a conversation, before it takes the form of any provider.

A conversation alternates between the user's side and the model's. What people and the gateway say,
and what tools found, is the user's side. Every call is followed by exactly one result, and every
result directly follows its call: providers refuse anything else, for ever.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from koboshi.domain.ids import CallId, TurnId
from koboshi.domain.marks import MARK, unmarked
from koboshi.domain.notes import NOT_AGAIN, dated
from koboshi.domain.transcript import (
    Answer,
    Call,
    HeardMessage,
    HeardNote,
    HeardPicture,
    Message,
    Note,
    Question,
    Reply,
    Result,
    ShownPicture,
    Step,
    Summary,
)

NO_RESULT = f"{MARK} no result of this call was kept; check its effect before you repeat it"
NO_OUTPUT = f"{MARK} it ended and said nothing"
EARLIER = f"{MARK} The conversation began earlier than what you see here."
GO_ON = f"{MARK} Go on."
SUMMED_UP = f"{MARK} What was said and done before this, summed up:"
RECORD = f"{MARK} The record:"
UNANSWERED = f"{MARK} What stands above ended without an answer. {NOT_AGAIN}"
"""Stands between words of two turns where nothing else does: turns of earlier versions have no note
about their end."""

_WIRE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What every provider takes for the id of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOrigin:
    """Who made a reply. Its raw form is understood there and nowhere else."""

    system: str
    url: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What came of a call, under the id that the call goes by."""

    wire_id: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class ModelSaid:
    """What the model said at once: an answer, or a reply with the ids that its calls go by."""

    text: str
    reply: Reply | None = None
    wire_ids: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[tuple[Call, str], ...]:
        """The calls, each with its id."""
        return (
            () if self.reply is None else tuple(zip(self.reply.calls, self.wire_ids, strict=True))
        )


@dataclass(frozen=True, slots=True)
class UsersSide:
    """Results first, then what was said, if anything, then the pictures that it speaks of."""

    returned: tuple[Returned, ...]
    text: str
    pictures: tuple[ShownPicture, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelsSide:
    said: tuple[ModelSaid, ...]


Side: TypeAlias = UsersSide | ModelsSide


def talk_of(steps: Sequence[Step]) -> list[Side]:
    """The conversation that these steps are.

    It begins and ends on the user's side, no text in it is blank, and the sides alternate.
    """
    results = {step.body.call_id: step.body for step in steps if isinstance(step.body, Result)}
    placed = {call.call_id for step in steps for call in _calls_in(step)}
    talk = _Talk()
    for step in _kept_apart(steps):
        match step.body:
            case Message() as message:
                talk.hear(_told(message))
            case HeardPicture() as note:
                talk.hear(_marked(note))
                talk.pictures.append(note.picture)
            case Note() as note:
                talk.hear(_marked(note))
            case Summary(text=text):
                talk.hear(f"{SUMMED_UP}\n{unmarked(text)}" if text.strip() else "")
            case Reply() as reply:
                talk.say_reply(reply, results)
            case Result(call_id=call_id, text=text):
                if call_id not in placed:
                    talk.hear(f"{MARK} The result of an earlier call:\n{text}")
            case Answer(text=text):
                talk.say(ModelSaid(text))
            case Question():
                pass  # the model's own are calls, the gateway's do not concern it
            case _:
                assert_never(step.body)
    return talk.finished()


def picture_address(picture: ShownPicture) -> str:
    """A picture inside a request."""
    return f"data:{picture.media_type};base64,{b64encode(picture.content).decode('ascii')}"


def record_of(steps: Sequence[Step]) -> str:
    """These steps as a record to be read: its reader is not the one who speaks in it."""
    apart = _kept_apart(steps)
    words = "\n\n".join(_recorded(step) for step in apart if step.body.text or _calls_in(step))
    return f"{RECORD}\n\n{words}"


def _kept_apart(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, with a line of ours between messages of two turns that have none between them: the
    model would take them for one request."""
    unanswered: TurnId | None = None
    for step in steps:
        match step.body:
            case Message(words=words) if words.strip():
                if unanswered not in (None, step.turn_id):
                    yield replace(step, body=Note(cause="unanswered", text=UNANSWERED))
                unanswered = step.turn_id
            case Note(text=text) | Answer(text=text) | Summary(text=text) if text.strip():
                unanswered = None
            case Reply(text=text, calls=calls) if text.strip() or calls:
                unanswered = None
            case _:
                pass  # it is not shown, or beside its call
        yield step


@dataclass(slots=True)
class _Talk:
    """A conversation in the making."""

    sides: list[Side] = field(default_factory=list)
    said: list[ModelSaid] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    pictures: list[ShownPicture] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def hear(self, text: str) -> None:
        if text.strip():
            self.heard.append(text)

    def say(self, said: ModelSaid) -> None:
        if not said.wire_ids and not said.text.strip():
            return
        self._close_users_side()
        if not self.said and not self.sides:
            self.sides.append(UsersSide((), EARLIER))
        self.said.append(said)

    def say_reply(self, reply: Reply, results: Mapping[CallId, Result]) -> None:
        wire_ids = tuple(self._wire_id(call) for call in reply.calls)
        said = ModelSaid(reply.text, reply, wire_ids)
        self.say(said)
        self.returned.extend(_return_of(call, wire_id, results) for call, wire_id in said.calls)

    def finished(self) -> list[Side]:
        self._close_users_side()
        if self.said or not self.sides:
            self._close_models_side()
            self.sides.append(UsersSide((), GO_ON))
        return self.sides

    def _wire_id(self, call: Call) -> str:
        """The id that a call goes by: the provider's own, unless it cannot tell calls apart."""
        wire_id = call.provider_id
        if wire_id in self.ids or not _WIRE_ID.fullmatch(wire_id):
            wire_id = f"call_{call.call_id.replace('.', '_')}"
        self.ids.add(wire_id)
        return wire_id

    def _close_users_side(self) -> None:
        if not self.returned and not self.heard:
            return
        self._close_models_side()
        heard, pictures = "\n\n".join(self.heard), tuple(self.pictures)
        self.sides.append(UsersSide(tuple(self.returned), heard, pictures))
        self.returned, self.heard, self.pictures = [], [], []

    def _close_models_side(self) -> None:
        if self.said:
            self.sides.append(ModelsSide(tuple(self.said)))
            self.said = []


def _recorded(step: Step) -> str:
    match step.body:
        case HeardMessage() as message:
            return _told(message)
        case Message(sender=sender, words=words):
            return f"{sender or 'person'} wrote: {unmarked(words)}"
        case Note() as note:
            return _marked(note)
        case Summary(text=text):
            return f"{SUMMED_UP}\n{unmarked(text)}"
        case Reply(text=text, calls=calls):
            used = [f"the assistant called {call.tool} {call.arguments}" for call in calls]
            said = [f"the assistant said: {unmarked(text)}"] if text.strip() else []
            return "\n".join([*said, *used])
        case Result(status=status, text=text):
            return f"result ({status}): {unmarked(text)}"
        case Answer(text=text):
            return f"the assistant answered: {unmarked(text)}"
        case Question(text=text):
            return f"the person was asked: {unmarked(text)}"
        case _:
            assert_never(step.body)


def _calls_in(step: Step) -> tuple[Call, ...]:
    return step.body.calls if isinstance(step.body, Reply) else ()


def _told(message: Message) -> str:
    """A person's words below the line that says when they came and whose they are. A person could
    write our mark; the model must not take their words for ours."""
    words = unmarked(message.words)
    if isinstance(message, HeardMessage) and words.strip():
        return f"{message.heading}\n{words}"
    return words


def _marked(note: Note) -> str:
    text = note.text.strip()
    if text and isinstance(note, HeardNote):
        return dated(text, note.moment)
    return text if not text or text.startswith(MARK) else f"{MARK} {text}"


def _return_of(call: Call, wire_id: str, results: Mapping[CallId, Result]) -> Returned:
    result = results.get(call.call_id)
    text = NO_RESULT if result is None else result.text
    return Returned(wire_id, call.tool, text if text.strip() else NO_OUTPUT)
