"""What a chat's journal tells, as the events that followers get."""

from datetime import UTC, datetime
from urllib.parse import quote

import msgspec
from msgspec import structs

from koboshi.domain.files import safe_name
from koboshi.domain.ids import shown
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.reasons import why_dropped
from koboshi.domain.story import words_of_lines
from koboshi.domain.transcript import (
    KIND_OF,
    Answer,
    Call,
    Message,
    Note,
    PastWords,
    Reply,
    Result,
    Summary,
)
from koboshi.ports.views import Event, JournalLine, Shown

STEP_CHARS_MAX = 16_000
"""The most that an event tells of a step. The transcript has all of it."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    label: str


class ShownCall(msgspec.Struct, frozen=True, kw_only=True):
    call: str
    tool: str
    arguments: str


class ShownFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was sent. It is fetched from `address`, on this gateway, as all of the API is."""

    name: str
    size: int
    address: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What all events have in common."""

    at: str
    thread: str
    turn: str | None = None


class MessageLine(Line, frozen=True, kw_only=True):
    """`message`: a person's words were stored."""

    message: str
    sender: str
    text: str
    files: tuple[ShownFile, ...] = ()


class EntryLine(Line, frozen=True, kw_only=True):
    """`entry`: something else arrived, or what had arrived was dropped."""

    message: str
    event: str
    state: str | None = None
    reason: str | None = None
    words: str = ""
    """Why it was dropped, for people."""


class StepLine(Line, frozen=True, kw_only=True):
    """`step`: the agent did something on the way to its answer. Long texts are cut."""

    kind: str
    text: str
    calls: tuple[ShownCall, ...] = ()
    call: str | None = None
    status: str | None = None
    took_ms: int | None = None
    """How long the call ran, of a result."""


class DeliveryLine(Line, frozen=True, kw_only=True):
    """`answer`, `question`, `notice` or `progress`: words for the person, each part once."""

    delivery: str
    cause: str
    part: int
    parts: int
    text: str
    choices: tuple[Option, ...] = ()
    question: int | None = None
    may_be_duplicate: bool = False
    file: ShownFile | None = None
    literal: tuple[int, ...] | None = None
    """Of an approval: which characters of the text will run or be written, from the first up to
    the second, counted in code points."""


class TurnLine(Line, frozen=True, kw_only=True):
    """`turn`: a turn went from one state to another."""

    state: str
    event: str
    before: str | None = None
    rule: str | None = None
    reason: str | None = None
    words: str = ""
    """What happened, for people."""


class ProcessLine(Line, frozen=True, kw_only=True):
    """`process`: a command was started (`begun`), or has ended. Its output is at
    `/api/v1/processes/{process}/log`."""

    process: str
    event: str
    state: str | None = None
    command: str = ""


class TypingLine(Line, frozen=True, kw_only=True):
    """`typing`: a turn is at work. It has no id: it is not in the journal."""


class DraftLine(Line, frozen=True, kw_only=True):
    """`draft`: the words of a turn so far, while they grow. It has no id: the answer follows."""

    text: str


class HintLine(msgspec.Struct, frozen=True, kw_only=True):
    """`journal`: it has grown up to `seq`."""

    seq: int


class PlaceLine(msgspec.Struct, frozen=True, kw_only=True):
    """`place`: all of the chat up to `seq` has been told."""

    seq: int


class ResyncLine(Line, frozen=True, kw_only=True):
    """`resync`: events between your place and `seq` are not kept any more. Forget what you have
    shown: what people said and were answered follows, then everything behind `seq`."""

    seq: int


LINES: dict[str, type[Line]] = {
    "resync": ResyncLine,
    "message": MessageLine,
    "entry": EntryLine,
    "step": StepLine,
    "answer": DeliveryLine,
    "question": DeliveryLine,
    "notice": DeliveryLine,
    "progress": DeliveryLine,
    "turn": TurnLine,
    "process": ProcessLine,
    "typing": TypingLine,
    "draft": DraftLine,
}
"""The types of events and what their data is."""


def line_of(event: Event) -> tuple[str, Line] | None:
    """The type of the event and its data.

    The answer of a turn and its questions are steps as well. They are told when they are
    delivered, not twice.
    """
    line = event.line
    if event.delivery is not None:
        is_news = line.after == DeliveryState.DELIVERED
        return _delivery_line(event, event.delivery) if is_news else None
    match event.body:
        case Message() as message if line.event != "dropped":
            return "message", MessageLine(
                at=moment(line.at_ms),
                thread=event.route.thread,
                turn=_turn(line),
                message=shown("message", message.entry_id),
                sender=message.sender,
                text=message.text,
                files=_received(event.route.chat, message),
            )
        case Reply() | Result() | Note() | Summary() as body:
            return "step", _step_line(event, body)
        case _:
            return _plain_line(event)


def _plain_line(event: Event) -> tuple[str, Line] | None:
    line = event.line
    at, thread = moment(line.at_ms), event.route.thread
    if line.subject == "turn" and line.after is not None and line.after != line.before:
        return "turn", TurnLine(
            at=at,
            thread=thread,
            turn=shown("turn", line.number),
            state=line.after,
            event=line.event,
            before=line.before,
            rule=line.rule,
            reason=line.reason,
            words=words_of_lines([line])[0],
        )
    if line.subject == "message":
        return "entry", EntryLine(
            at=at,
            thread=thread,
            turn=_turn(line),
            message=shown("message", line.number),
            event=line.event,
            state=line.after,
            reason=line.reason,
            words=why_dropped(line.reason) if line.event == "dropped" else "",
        )
    if line.subject == "process":
        is_new = line.event == "begun"
        return "process", ProcessLine(
            at=at,
            thread=thread,
            turn=_turn(line),
            process=shown("process", line.number),
            event=line.event,
            state=line.after,
            command=_cut(line.reason or "") if is_new else "",
        )
    return None


def _step_line(event: Event, body: Reply | Result | Note | Summary) -> StepLine:
    step = StepLine(
        at=moment(event.line.at_ms),
        thread=event.route.thread,
        turn=_turn(event.line),
        kind=KIND_OF[type(body)],
        text=_cut(body.text),
    )
    match body:
        case Reply(calls=calls):
            return structs.replace(step, calls=tuple(_call(call) for call in calls))
        case Result(call_id=call, status=status):
            return structs.replace(step, call=call, status=status, took_ms=event.took_ms)
        case Note() | Summary():
            return step


def _call(call: Call) -> ShownCall:
    return ShownCall(call=call.call_id, tool=call.tool, arguments=_cut(call.arguments))


def _cut(text: str) -> str:
    return text if len(text) <= STEP_CHARS_MAX else text[: STEP_CHARS_MAX - 1] + "…"


def _delivery_line(event: Event, delivery: Shown) -> tuple[str, DeliveryLine]:
    return delivery_kind(delivery), DeliveryLine(
        at=moment(event.line.at_ms),
        thread=event.route.thread,
        turn=_turn(event.line),
        delivery=shown("delivery", delivery.delivery_id),
        cause=delivery.cause,
        part=delivery.part,
        parts=delivery.parts,
        text=delivery.text,
        choices=tuple(
            Option(id=choice.choice_id, label=choice.label) for choice in delivery.choices
        ),
        question=delivery.question,
        may_be_duplicate=delivery.may_be_duplicate,
        file=_file(event.route.chat, delivery),
        literal=delivery.literal,
    )


def _received(chat: str, message: Message) -> tuple[ShownFile, ...]:
    """The files that a person sent along. Each can be fetched again while its message is there."""
    base = f"/api/v1/sessions/{quote(chat, safe='')}/uploads"
    return tuple(
        ShownFile(name=name, size=each.size, address=f"{base}/{each.reference}?name={quote(name)}")
        for each in message.files
        for name in (each.path.rpartition("/")[2].partition("-")[2] or "file",)
    )


def _file(chat: str, delivery: Shown) -> ShownFile | None:
    if delivery.file is None:
        return None
    name, place = delivery.file.name, shown("delivery", delivery.delivery_id)
    address = f"/api/v1/sessions/{quote(chat, safe='')}/files/{place}"
    return ShownFile(name=safe_name(name, "file"), size=delivery.file.size, address=address)


def delivery_kind(delivery: Shown) -> str:
    """What a delivery is to the person: a question, an answer, how a turn goes, or another notice
    of the gateway."""
    if delivery.choices or delivery.question is not None:
        return "question"
    origin = delivery.cause.partition(":")[0]
    if origin == "progress":
        return "progress"
    return "answer" if origin in ("step", "answer") else "notice"


def moment(at_ms: int) -> str:
    """A time as programs and people can both read it: UTC, to the millisecond."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def said_line(said: PastWords) -> tuple[str, Line] | None:
    """An event for words whose own line is not kept any more."""
    at, turn = moment(said.at_ms), shown("turn", said.turn_id)
    match said.body:
        case Message() as message:
            return "message", MessageLine(
                at=at,
                thread=said.thread,
                turn=turn,
                message=shown("message", message.entry_id),
                sender=message.sender,
                text=message.text,
            )
        case Answer(text=text):
            return "answer", DeliveryLine(
                at=at,
                thread=said.thread,
                turn=turn,
                delivery=f"step-{said.seq}",
                cause=f"step:{said.seq}",
                part=1,
                parts=1,
                text=text,
            )
        case _:
            return None


def _turn(line: JournalLine) -> str | None:
    return None if line.turn_id is None else shown("turn", line.turn_id)
