"""What was said and done in a session, as steps that are only ever appended."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from koboshi.domain.files import Attachment, attachment_words
from koboshi.domain.ids import CallId, EntryId, Epoch, Seq, TurnId


class Effect(StrEnum):
    """What repeating a call would do to the world, declared by its tool."""

    NONE = "none"  # nothing: read, list, search
    REPEATABLE = "repeatable"  # the same again: write a whole file
    RESUMABLE = "resumable"  # it can be taken up by its call id: a command under its runner
    ONCE = "once"  # unknown: never repeated by the gateway

    def is_stricter_than(self, other: "Effect") -> bool:
        """Whether less may be done about a call of this kind after a crash than about `other`."""
        order = (Effect.NONE, Effect.REPEATABLE, Effect.RESUMABLE, Effect.ONCE)
        return order.index(self) > order.index(other)


class Need(StrEnum):
    """Whom a call waits for before it may run."""

    NOBODY = "nobody"
    ANSWER = "answer"  # the call *is* a question to the person
    APPROVAL = "approval"  # a person must allow it first


class Author(StrEnum):
    MODEL = "model"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    choice_id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call as the model proposed it. `arguments` is a JSON object, as text."""

    call_id: CallId
    tool: str
    arguments: str
    effect: Effect
    need: Need = Need.NOBODY
    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    """A call that is not stored yet; the store gives it its id."""

    tool: str
    arguments: str
    effect: Effect
    need: Need = Need.NOBODY
    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Words of a person, and the files that came with them."""

    text: str
    sender: str
    entry_id: EntryId
    sent_ms: int
    files: tuple[Attachment, ...] = ()
    name: str = ""
    """What the sender calls themselves, where others write in the same conversation."""
    command: str = ""
    """Of a schedule that runs a command without a model: the command."""
    is_plain: bool = False
    """Of a reminder: the words are told as they are, without a model."""

    @property
    def words(self) -> str:
        """All of it, as the model is shown it."""
        return "\n".join([self.text, *map(attachment_words, self.files)]).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A sentence from the gateway to the model. Not progress, and never a person's words."""

    cause: str
    text: str
    model: str = ""
    """Of a recording: what wrote it down, and what that took."""
    tokens_in: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardMessage(Message):
    """A message as the model is shown it. `heading` is a line of the gateway: when it was sent, and
    in a group by whom. It is made anew for each request and never stored."""

    heading: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardNote(Note):
    """A note that the model is shown with its time."""

    moment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPicture:
    """A picture as a model is sent it."""

    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardPicture(Note):
    """A note about a picture that the model is shown with it. The picture is read for each request
    and never stored with the step."""

    picture: ShownPicture


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model said, with the calls it proposed.

    A reply without calls ends the turn: it is stored only as its `Answer`, so that "answered but
    still running" cannot be stored. `raw` is the provider's own form, for the next request.
    """

    text: str
    calls: tuple[Call, ...] = ()
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    raw: str = ""


class ResultStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"  # started, and its outcome is not known
    STOPPED = "stopped"  # the turn ended before the call did


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    call_id: CallId
    status: ResultStatus
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSeal:
    """What is stored with the question of an approval."""

    seal: str
    rule_key: str = ""
    """Known again by this where the same is asked for; empty if it cannot be allowed for good."""
    begin: int = 0
    """Where the literal begins in the question's text, in characters."""
    end: int = 0
    asked_by: str = ""
    """For whom the agent works."""
    is_elsewhere: bool = False
    """It is too long for its chat to show whole: a yes counts only where it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asked of a person; the turn waits. The gateway's own take yes or no."""

    author: Author
    text: str
    choices: tuple[Choice, ...] = ()
    call_id: CallId | None = None
    sealed: ApprovalSeal | None = None
    """Of an approval: what a yes is bound to. Questions of earlier versions have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last words of a turn."""

    text: str
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    raw: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Stands for every step up to `covers`: what the model is shown instead of them.

    In the turn that it was made in, it stands only for replies and results: what was said to the
    model there stays as it is until the turn has closed. The next one covers this one.
    """

    text: str
    covers: Seq
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


Body: TypeAlias = Message | Note | Reply | Result | Question | Answer | Summary


class StepKind(StrEnum):
    MESSAGE = "message"
    NOTE = "note"
    REPLY = "reply"
    RESULT = "result"
    QUESTION = "question"
    ANSWER = "answer"
    SUMMARY = "summary"


KIND_OF: dict[type[Body], StepKind] = {
    Message: StepKind.MESSAGE,
    Note: StepKind.NOTE,
    Reply: StepKind.REPLY,
    Result: StepKind.RESULT,
    Question: StepKind.QUESTION,
    Answer: StepKind.ANSWER,
    Summary: StepKind.SUMMARY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the transcript. `seq` grows over all sessions; a session's steps are in order."""

    seq: Seq
    turn_id: TurnId
    epoch: Epoch
    at_ms: int
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """A call and how far it got. Proposed, then started, then finished: one commit each."""

    call: Call
    started_ms: int | None = None
    died_ms: int | None = None
    finished_ms: int | None = None
    skipped_ms: int | None = None
    """It got its result without having run: denied, refused, or its turn was ended first."""
    approved_by: str | None = None
    approved_ms: int | None = None
    seal: str | None = None
    """What the approval is bound to (`domain/approval.py`)."""

    @property
    def is_unresolved(self) -> bool:
        return self.finished_ms is None and self.skipped_ms is None

    @property
    def is_under_way(self) -> bool:
        """Started, and no result: after a crash it is unknown how far it got."""
        return self.started_ms is not None and self.finished_ms is None

    @property
    def waits_for_person(self) -> bool:
        match self.call.need:
            case Need.NOBODY:
                return False
            case Need.ANSWER:
                return True
            case Need.APPROVAL:
                return self.approved_ms is None


class Tail(StrEnum):
    """What a turn's transcript ends with. Notes and the gateway's own questions do not count."""

    TRIGGER = "trigger"  # a person wrote, or a process reported; the model has not replied
    PROPOSED = "proposed"  # calls were proposed; none of the unresolved ones was started
    STARTED = "started"  # a call was started and has no result
    RESULT = "result"  # every call has its result; the model has not gone on
    QUESTION = "question"  # a person was asked and has not answered
    ANSWER = "answer"  # the turn is over


def tail_of(*, last: StepKind | None, is_waiting: bool, unresolved: Iterable[CallRecord]) -> Tail:
    """What the transcript ends with: `last` is the kind of the last step that is no note,
    question or summary, `unresolved` are the calls without a result."""
    if is_waiting:
        return Tail.QUESTION
    if last is StepKind.ANSWER:
        return Tail.ANSWER
    calls = tuple(unresolved)
    if any(record.is_under_way for record in calls):
        return Tail.STARTED
    if calls:
        return Tail.PROPOSED
    if last in (StepKind.RESULT, StepKind.REPLY):
        return Tail.RESULT
    return Tail.TRIGGER


_in_order = json.JSONEncoder(sort_keys=True)


def fingerprint(tool: str, arguments: str) -> str:
    """The same for the same tool with the same arguments, so that a repeat is recognised."""
    # What is no JSON is compared as it is.
    with suppress(ValueError, RecursionError):
        arguments = _in_order.encode(json.loads(arguments))
    return hashlib.sha256(f"{tool}\n{arguments}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastWords:
    """Words of a person, or of an answer, as the transcript has them."""

    seq: Seq
    turn_id: TurnId
    thread: str
    body: Body
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was said in a chat up to the journal line `seq`; the lines themselves are gone."""

    seq: int
    said: tuple[PastWords, ...]
    at_ms: int
    """When this was looked at."""
