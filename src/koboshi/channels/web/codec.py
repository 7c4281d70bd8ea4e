"""Bytes to values and values to bytes, and nothing else.

What a client posts is read strictly: its size is looked at before it is parsed, and a field that
is not known is an error. What the journal tells is written as server-sent events, one JSON object
on one line each.
"""

from collections.abc import Iterable
from mimetypes import guess_type

import msgspec

from koboshi.channels.web.chat_events import (
    DraftLine,
    HintLine,
    Line,
    PlaceLine,
    ResyncLine,
    TypingLine,
    line_of,
    moment,
    said_line,
)
from koboshi.channels.web.limits import WebLimits
from koboshi.domain.approver import SentBy
from koboshi.domain.files import RECEIVED, Attachment, safe_name
from koboshi.domain.ids import ChannelName, Seq, TurnId, shown
from koboshi.domain.inbox import EntryState, Words
from koboshi.domain.route import Route
from koboshi.domain.transcript import PastWords
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.views import EntryView, Event

NOT_A_NAME = "must be {low} to {high} printable characters"


class Unacceptable(Exception):
    """The request is refused: `status` for the protocol, `kind` for programs, the words for
    people."""

    def __init__(
        self, status: int, kind: str, message: str, *, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.retry_after_s = retry_after_s


class PostedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that was uploaded before, and what it is called."""

    file: str
    name: str = ""


class Post(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message as a client posts it. `question` and `choice` answer a question by its button."""

    text: str = ""
    thread: str = ""
    sender: str = "web"
    question: int | None = None
    choice: str | None = None
    files: tuple[PostedFile, ...] = ()
    zone: str = ""
    """The time zone of the person, as Europe/Vienna."""


class Uploaded(msgspec.Struct, frozen=True, kw_only=True):
    """The file is on disk, and waits for the message that names it."""

    file: str
    name: str
    size: int


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The message is on disk."""

    message: str
    state: EntryState
    duplicate: bool


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a message."""

    message: str
    state: str
    turn: str | None = None
    reason: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    message: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer that is not a success."""

    ok: bool = False
    error: Problem


_posts = msgspec.json.Decoder(Post)


def read_post(body: bytes, limits: WebLimits) -> Post:
    """The message in `body`. Raises Unacceptable, with words that say what is wrong with it."""
    if len(body) > limits.body_bytes_max:
        raise too_large(limits.body_bytes_max)
    try:
        post = _posts.decode(body)
    except msgspec.ValidationError as error:
        raise Unacceptable(400, "bad-body", f"the body does not fit: {error}") from error
    except UnicodeDecodeError as error:
        raise Unacceptable(400, "bad-body", f"the body is not valid UTF-8: {error}") from error
    except msgspec.DecodeError as error:
        raise Unacceptable(400, "bad-body", f"the body is not valid JSON: {error}") from error
    check_post(post, limits)
    return post


def check_post(post: Post, limits: WebLimits) -> None:
    """Raises Unacceptable unless the message can be stored."""
    if len(post.text) > limits.message_chars_max:
        message = f"text is longer than {limits.message_chars_max} characters"
        raise Unacceptable(413, "too-large", message)
    if "\0" in post.text:
        raise Unacceptable(400, "bad-body", "text contains a NUL character")
    check_name("thread", post.thread, limits.route_chars_max, may_be_empty=True)
    check_name("sender", post.sender, limits.route_chars_max)
    check_name("zone", post.zone, limits.route_chars_max, may_be_empty=True)
    if len(post.files) > limits.files_max:
        raise Unacceptable(400, "bad-body", f"files has more than {limits.files_max} files")
    if post.choice is None and not post.text.strip() and not post.files:
        raise Unacceptable(400, "bad-body", "text is empty")
    if post.choice is not None:
        check_name("choice", post.choice, limits.route_chars_max)
        if post.question is None and not post.choice.startswith("/"):
            message = "choice needs the number of the question that it answers, as question"
            raise Unacceptable(400, "bad-body", message)
    if post.question is not None and not 0 < post.question < 2**63:
        raise Unacceptable(400, "bad-body", "question is not the number of a question")


def check_name(what: str, name: str, chars_max: int, *, may_be_empty: bool = False) -> None:
    """Raises Unacceptable unless `name` can name something: short, and nothing invisible in it."""
    low = 0 if may_be_empty else 1
    # U+FFFD stands where a path held bytes that are no UTF-8: two such names would be one.
    is_fit = low <= len(name) <= chars_max and name.isprintable() and "\ufffd" not in name
    if not is_fit:
        words = NOT_A_NAME.format(low=low, high=chars_max)
        raise Unacceptable(400, f"bad-{what.lower()}", f"{what} {words}")


def too_large(bytes_max: int) -> Unacceptable:
    return Unacceptable(413, "too-large", f"the body is larger than {bytes_max} bytes")


def external_id(chat: str, key: str) -> str:
    """A key counts within its chat. A chat's name has no slash, so no two pairs meet."""
    return f"{chat}/{key}"


def inbound_of(
    post: Post,
    *,
    channel: ChannelName,
    chat: str,
    key: str,
    now_ms: int,
    sent_by: SentBy,
    files: tuple[Attachment, ...] = (),
) -> Inbound:
    return Inbound(
        sent_by=sent_by,
        zone=post.zone,
        route=Route(channel=channel, chat=chat, thread=post.thread),
        external_id=external_id(chat, key),
        sender=post.sender,
        words=Words(
            text=post.text,
            sent_ms=now_ms,
            question=None if post.question is None else Seq(post.question),
            choice_id=post.choice,
            files=files,
        ),
    )


def attachments_of(
    posted: Iterable[PostedFile], sizes: Iterable[int], channel: ChannelName
) -> tuple[Attachment, ...]:
    """The files of a message, each with a place of its own below the working folder."""
    folder = f"{RECEIVED}/{safe_name(channel.replace(':', '-'), 'web')}"
    return tuple(
        Attachment(
            reference=each.file,
            path=f"{folder}/{each.file[:8]}-{safe_name(each.name, 'file')}",
            kind=guess_type(each.name)[0] or "file",
            size=size,
        )
        for each, size in zip(posted, sizes, strict=True)
    )


def accepted_of(receipt: Receipt) -> Accepted:
    return Accepted(
        message=shown("message", receipt.entry_id),
        state=receipt.state,
        duplicate=receipt.is_duplicate,
    )


def standing_of(entry: EntryView) -> Standing:
    return Standing(
        message=shown("message", entry.entry_id),
        state=entry.state,
        turn=None if entry.turn_id is None else shown("turn", entry.turn_id),
        reason=entry.reason,
    )


def failure_of(refusal: Unacceptable) -> bytes:
    problem = Problem(type=refusal.kind, message=refusal.message)
    return msgspec.json.encode(Failure(error=problem))


def encode_event(event: Event) -> bytes | None:
    """The server-sent event that tells of `event`; None where there is nothing to tell."""
    told = line_of(event)
    return None if told is None else frame(told[0], told[1], event.line.seq)


def frame(kind: str, line: Line, seq: int | None) -> bytes:
    """One server-sent event. JSON has no raw line ends, so the words cannot break out of it."""
    place = b"" if seq is None else b"id: %d\n" % seq
    return b"%sevent: %s\ndata: %s\n\n" % (place, kind.encode(), msgspec.json.encode(line))


def place_frame(seq: int) -> bytes:
    """Tells a follower how far it has been served. It is also what keeps a quiet connection
    open. It carries data: many clients take an event without any for a broken one."""
    return b"id: %d\nevent: place\ndata: %s\n\n" % (seq, msgspec.json.encode(PlaceLine(seq=seq)))


def resync_frames(seq: int, said: Iterable[PastWords], thread: str | None, now_ms: int) -> bytes:
    """What a follower is told whose place is older than what is kept: that it is so, and what was
    said before. The words have no ids of their own: they are all at the place `seq`."""
    begin = ResyncLine(at=moment(now_ms), thread=thread or "", seq=seq)
    lines = [said_line(each) for each in said if thread is None or each.thread == thread]
    return frame("resync", begin, seq) + b"".join(
        frame(kind, line, None) for kind, line in (each for each in lines if each is not None)
    )


def hint_frame(seq: int) -> bytes:
    """Tells that the journal has grown."""
    return b"event: journal\ndata: %s\n\n" % msgspec.json.encode(HintLine(seq=seq))


def typing_frame(route: Route, now_ms: int) -> bytes:
    return frame("typing", TypingLine(at=moment(now_ms), thread=route.thread), None)


def draft_frame(route: Route, turn_id: TurnId, text: str, now_ms: int) -> bytes:
    line = DraftLine(at=moment(now_ms), thread=route.thread, turn=shown("turn", turn_id), text=text)
    return frame("draft", line, None)
